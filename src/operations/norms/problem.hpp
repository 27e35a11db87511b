// SPDX-License-Identifier: Apache-2.0
// A call of rms_norm, layer_norm or one of their gradients after validation. The four operations
// share all of their inside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "operations/common/ways.hpp"
#include "tessera/record.hpp"

namespace tessera::operations::norms {

// Operands by slot. A gradient stands where its tensor does in the forward operations.
enum Slot : std::size_t {
  kInput,
  kWeight,
  kBias,
  kResidual,
  kOutput,
  kSum,
  kScale,  // of quantised outputs
  kGradOutput = kOutput,
  kGradSum = kSum,
  kGradInput = kScale,
  kGradWeight,
  kGradBias,
  kGradResidual,
};

struct NormProblem {
  bool centered = false;  // layer_norm
  bool backward = false;
  std::int64_t rows = 0, dim = 0;
  double epsilon = 0;
  Shape leading{};           // of input
  Shape residual_leading{};  // as many axes as leading, 1 where residual broadcasts

  bool residual_broadcasts() const { return residual_leading != leading; }
  // The row of the residual that joins row `row` of the input.
  std::int64_t residual_row(std::int64_t row) const;
};

void validate_norm(Problem& problem, bool centered);
void validate_norm_backward(Problem& problem, bool centered);
void reference_norm(const Problem& problem, std::span<HostTensor> tensors);
void reference_norm_backward(const Problem& problem, std::span<HostTensor> tensors);
Workload norm_workload(bool backward);

// The dtypes of input and output in forward calls: equal ones by their own names, and every storage
// type with the 8-bit ones that an output may be quantised to, such as "f16_i8".
const std::vector<StorageTypes>& norm_types();
bool is_quantised(DType output);
double largest_code(DType output);  // of a quantised one
// A row's scale is its largest magnitude, or this where all are smaller, over the largest code: the
// scale and what it is the inverse of are normal floats then, which devices that flush others keep.
inline constexpr double kLeastLargest = 0x1p-100;

// The ways to compute a norm, in the order in which their rules are asked when nothing is tuned.
std::vector<Way> norm_ways(bool backward);
Way cpu_way(bool backward);
Way rows_way(bool backward);
Way quantised_cpu_way();
Way quantised_way();

}  // namespace tessera::operations::norms
