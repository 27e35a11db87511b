// SPDX-License-Identifier: Apache-2.0
// Forward and backward calls as products: every gradient is one more product of views, so that a
// way to multiply serves all of them. A stage is a product that a record of an operation may need;
// whether a call does, and what it multiplies, product_of() says.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "operations/matmul_core/core/args.h"
#include "operations/matmul_core/problem.hpp"

namespace tessera::operations::matmul {

// What a kernel is bound to.
enum Role : std::size_t {
  kA,
  kB,
  kBias,
  kAddend,
  kGate,
  kResidual,
  kResult,
  kBeside,
  kScaleA,
  kScaleB,
  kRoles
};

struct View {
  bool present = false;
  DType dtype = DType::kF32;
  std::int64_t offset = 0, row = 0, column = 0;
};

// An axis around the matrices: of batches, or one whose products are added up.
struct OuterAxis {
  std::int64_t size = 1;
  bool summed = false;
  std::array<std::int64_t, kRoles> steps{};
};

// result = finish(sum over summed axes and k of a[m, k] b[k, n]). Neighbouring axes that lie alike
// are one; axes that continue the rows of a matrix have become rows.
struct Product {
  std::int64_t m = 0, n = 0, k = 0;
  std::vector<OuterAxis> axes{};
  std::array<View, kRoles> views{};
  abi::u32 features = 0;  // MATMUL_… but for those that views tell
  double alpha = 1, beta = 1;
  abi::u32 scale_rows = 1, scale_columns = 1;  // that share an element of a scale
  abi::u32 blocks = MATMUL_BLOCKS_NONE;        // of terms
  bool whole = false;                          // the result is integers

  std::int64_t batches() const;
  std::int64_t sums() const;
  std::int64_t terms() const { return sums() * k; }
  bool is_empty() const { return m == 0 || n == 0 || batches() == 0; }
};

enum class Step : std::uint8_t {
  kForward,
  kShape,  // the gradient of the sums, from that of the output
  kGradA,
  kGradB,
  kGradBias,
  kGradAddend,
};

struct Stage {
  std::string name{};
  Step step = Step::kForward;
  bool turned = false;                      // the transposed product: b' a'
  bool shaped = false;                      // backward: the gradient of the sums is in scratch
  bool rounds = false;                      // to the storage type of the call, there
  std::array<std::size_t, kRoles> slots{};  // bindings: slots, kScratch, kNoOperand
};

// Every stage of a record, in the order in which they run. `rounds`: matrix units multiply
// gradients of the call's storage type.
std::vector<Stage> stages(const MatmulSlots& slots, bool rounds = false);
// Nothing where the call has no such product, or has it the other way round.
std::optional<Product> product_of(const Problem& problem, const Stage& stage);
// All that a call has.
std::vector<Product> products_of(const Problem& problem, bool rounds = false);

// Scratch begins with a vector of ones, which sums of rows and columns are products with; then come
// the gradients of the sums where the call has such a tensor; then a way's own.
bool needs_ones(const Problem& problem);
std::uint64_t scratch_of_stages(const Problem& problem);  // in floats, a multiple of 4

}  // namespace tessera::operations::matmul
