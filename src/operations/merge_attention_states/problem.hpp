// SPDX-License-Identifier: Apache-2.0
// A call of merge_attention_states or of its gradients after validation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "operations/common/ways.hpp"
#include "tessera/record.hpp"

namespace tessera::operations::attention_states {

// Operands by slot. Backward a gradient of what was written stands where that does.
enum Slot : std::size_t {
  kOutputs,
  kSums,
  kOther,
  kOtherSum,
  kOutput,
  kMerged,
  kGradOutputs,
  kGradSums,
  kGradOther,
  kGradOtherSum,
};

struct StatesProblem {
  bool backward = false;
  bool batched = false;  // log-sum-exps are [batch, heads, seq], else [tokens, heads]
  std::int64_t parts = 0, batch = 1, seq = 0, heads = 0, dim = 0;
  bool has_other = false;
  std::int64_t rows() const { return batch * seq * heads; }
};

// Where a row of part p lies: in outputs, whose rows are (batch, seq, head), or in log-sum-exps.
struct StateStrides {
  std::int64_t offset = 0, part = 0, batch = 0, token = 0, head = 0;
};
StateStrides strides_of(const Problem& problem, std::size_t slot);

void validate_states(Problem& problem, bool backward);
void reference_states(const Problem& problem, std::span<HostTensor> tensors);
Workload states_workload(bool backward);
Way states_way(bool backward);

}  // namespace tessera::operations::attention_states
