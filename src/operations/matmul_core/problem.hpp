// SPDX-License-Identifier: Apache-2.0
// A call of a product or of its gradients after validation. matmul, linear and their gradients
// share all of their inside; MatmulSlots says which operand is where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "abi/shared.h"
#include "operations/common/eight_bits.hpp"
#include "operations/common/ways.hpp"
#include "tessera/record.hpp"

namespace tessera::operations::matmul {

struct MatmulSlots {
  std::size_t a = 0, b = 1, bias = 2;
  std::size_t addend = kNoOperand, gate = kNoOperand;
  std::size_t residual = kNoOperand, output = kNoOperand;  // forward
  std::size_t scale_a = kNoOperand, scale_b = kNoOperand;  // forward
  std::size_t scale = kNoOperand;                          // forward: of rows of codes
  // Backward. A gradient has the shape and dtype of what it is the gradient of.
  std::size_t grad_output = kNoOperand, grad_a = kNoOperand, grad_b = kNoOperand;
  std::size_t grad_bias = kNoOperand, grad_addend = kNoOperand, grad_gate = kNoOperand;
  // a is [..., k], b is [n, k]: there are no batches of b and no options for transposes.
  bool linear = false;
  bool backward() const { return grad_output != kNoOperand; }
};

MatmulSlots matmul_slots();
MatmulSlots matmul_backward_slots();
MatmulSlots linear_slots();
MatmulSlots linear_backward_slots();

// Names of activations as the option has them, and what kernels make of one.
const std::vector<std::string>& activation_names();
struct Activation {
  abi::u32 kind = 0;    // MATMUL_NONE ... of args.h
  bool paired = false;  // of two columns the even one is activated and multiplies the odd one
};

struct MatmulProblem {
  MatmulSlots slots{};
  std::int64_t m = 0, k = 0;
  std::int64_t columns = 0;  // of the product
  std::int64_t n = 0;        // of the output: half of that where columns are paired
  Shape batch{};             // leading axes of the output, to which those of a and b broadcast
  bool transpose_a = false, transpose_b = false;
  Activation activation{};
  double alpha = 1, beta = 1;
  DType output = DType::kF32;
  bool quantised = false;  // rows of output are codes, each with a scale
  Scaling scale_a{}, scale_b{};

  // Is the gradient of the sums another tensor than that of the output?
  bool shapes_gradient(const Problem& problem) const {
    return activation.kind != 0 || problem.has(slots.gate);
  }
};

void validate_matmul(Problem& problem, const MatmulSlots& slots);
void reference_matmul(const Problem& problem, std::span<HostTensor> tensors);
Workload matmul_workload(const MatmulSlots& slots);

// The ways to compute it, in the order in which their rules are asked when nothing is tuned.
std::vector<Way> matmul_ways(const MatmulSlots& slots);

}  // namespace tessera::operations::matmul
