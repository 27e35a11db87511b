// SPDX-License-Identifier: Apache-2.0
// What gradients of delta rules by chunks of products with rounded factors may be off by, beside
// what float arithmetic is off by step by step.
#pragma once

#include <cstddef>
#include <vector>

namespace tessera::operations::recurrence {

// A chunk on the way back (cl_kernels/recurrence/mma/delta_back.cl, delta_gradients.cl). As in
// DeltaRounding, what a computed gradient c_t of a change is off by, tokens before it are computed
// from what it should be or is: an error of the weight of its key alone.
class DeltaGradientRounding {
 public:
  struct Token {
    const double *query = nullptr, *key = nullptr, *grad_output = nullptr;
    double beta = 0, decay = 1;          // the factor that all key dims share
    std::vector<double> change{};        // u, of each column
    std::vector<double> change_slope{};  // c, known behind slopes()
  };
  // `unit`, `lost`: of a factor that is rounded to the storage type, relative and near 0.
  DeltaGradientRounding(std::size_t keys, std::size_t columns, double scale, double unit,
                        double lost);

  std::vector<Token>& tokens() { return tokens_; }

  // Bounds of the errors of c, a row of columns for each token; `dstate` is the gradient of the
  // state behind the chunk.
  std::vector<std::vector<double>> slopes(const std::vector<double>& dstate) const;
  // By how much columns of the gradient of the state are off before the chunk, as norms: what
  // shares of queries and keys lose near 0, which are rounded when they have decayed.
  double lost() const;

  // Bounds of the errors of a chunk's gradients, of rounded states and changes.
  struct Bounds {
    std::vector<double> query, key;   // rows of key dims
    std::vector<double> beta, decay;  // numbers
  };
  Bounds gradients(const std::vector<double>& state, const std::vector<double>& dstate) const;

 private:
  double between(std::size_t first, std::size_t last) const;  // factors behind one, up to the other

  std::size_t keys_, columns_;
  double scale_, unit_, lost_;
  std::vector<Token> tokens_;
};

}  // namespace tessera::operations::recurrence
