// SPDX-License-Identifier: Apache-2.0
// What delta rules by chunks of products with rounded factors may be off by, beside what float
// arithmetic is off by step by step.
#pragma once

#include <cstddef>
#include <vector>

namespace tessera::operations::recurrence {

double product_of(const double* x, const double* y, std::size_t count);
double norm_of(const double* row, std::size_t count);

// Of a factor that is kept as the sum of two bfloat16 or two f16, and of a product of two such,
// less that of their low halves.
inline constexpr double kDeltaSplit = 0x1p-16;

// Chunks in which something is not finite are taken step by step.
void keep_finite(std::vector<double>& bounds);

// A chunk is a system of equations with a unit lower triangle, for the changes u of all tokens at
// once (cl_kernels/recurrence/mma/delta.clh). Whatever a computed u_t is off by, the tokens behind
// it are computed from what it should be or is: the state is off by key_t times that, and goes on
// from there. So it is an error of the weight of the key of token t alone, and everything here is
// bounded by magnitudes of the terms that are added up, of chunks that begin where kernels' do.
class DeltaRounding {
 public:
  // `unit`, `lost`: of a factor that is rounded to the storage type, relative and near 0.
  DeltaRounding(std::size_t keys, std::size_t columns, double unit, double lost);

  struct Token {
    const double *query = nullptr, *key = nullptr, *value = nullptr;
    double beta = 0, decay = 1;  // the factor that all key dims share
  };
  // Of the next token; `state` is the one before it: bounds of its change's error, for each column.
  std::vector<double> change(const Token& token, const std::vector<double>& state);
  // Of its output, without the scale; `change` is the exact one.
  std::vector<double> output(const Token& token, const std::vector<double>& change);
  // By how much columns of the state are off behind the token, as norms: what its key's change
  // loses near 0, which does not decay before the chunk ends.
  double lost() const;

 private:
  struct Earlier {
    const double* key = nullptr;
    double norm = 0, decay = 1;             // of the key; from this token to the present one
    std::vector<double> solution{};         // of units of the chunk's tokens, times beta
    std::vector<double> missing{}, sums{};  // magnitudes of each column
    std::vector<double> change{};
  };
  void begin(const std::vector<double>& state);

  std::size_t keys_, columns_;
  double unit_, lost_;
  std::vector<double> before_;  // the state before the chunk, decayed
  std::vector<double> norms_;   // of its columns
  std::vector<Earlier> chunk_;
};

}  // namespace tessera::operations::recurrence
