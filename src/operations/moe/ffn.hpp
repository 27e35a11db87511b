// SPDX-License-Identifier: Apache-2.0
// Calls of moe_ffn and its gradients after validation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "abi/shared.h"
#include "operations/common/ways.hpp"
#include "operations/moe/problem.hpp"
#include "tessera/record.hpp"

namespace tessera::operations::moe {

struct FfnSlots {
  std::size_t input = 0, gate_up = 0, down = 0;
  std::size_t logits = kNoOperand, bias = kNoOperand;  // forward
  std::size_t ids = 0, slots = 0, weights = 0, offsets = 0, counts = kNoOperand;
  std::size_t balance = kNoOperand, z = kNoOperand;
  std::size_t output = kNoOperand;  // backward its gradient
  std::size_t grad_input = kNoOperand, grad_weights = kNoOperand;
  std::size_t grad_gate_up = kNoOperand, grad_down = kNoOperand;
  bool backward() const { return grad_input != kNoOperand; }
};
FfnSlots ffn_slots();
FfnSlots ffn_backward_slots();

struct FfnProblem {
  FfnSlots slots{};
  RouteProblem route{};  // forward
  std::int64_t tokens = 0, top_k = 0, experts = 0;
  std::int64_t rows = 0;  // of all experts
  std::int64_t hidden = 0, inner = 0;
  abi::u32 activation = 0;  // MATMUL_NONE ... of matmul_core
  bool gated = true;        // else gate_up has the columns of up alone
  bool transposed = false;  // matrices lie as [experts, out, in]
};

void validate_ffn(Problem& problem, const FfnSlots& slots);
std::int64_t ffn_columns(const FfnProblem& call);  // of gate_up
// Those of route that a call of moe_ffn passes on.
Options route_options(const Problem& problem);

void reference_ffn(const Problem& problem, std::span<HostTensor> tensors);
Workload ffn_workload(const FfnSlots& slots);
Way ffn_way(const FfnSlots& slots);
Way ffn_hopper_way(const FfnSlots& slots);  // forward
std::vector<Operation> ffn_operations(std::vector<OptionInfo> route_options);

}  // namespace tessera::operations::moe
