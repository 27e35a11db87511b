// SPDX-License-Identifier: Apache-2.0
#include "operations/attention_core/hopper/problem.hpp"

#include <algorithm>

#include "kernel/gpu.hpp"

namespace tessera::operations::attention {

void set_groups(std::vector<Config>& configs, const DeviceProfile& profile) {
  if (profile.compute_units == 0) return;
  for (Config& config : configs) config.set(kHopperGroups, profile.compute_units);
}

Span seeing_rows(const AttentionProblem& call) {
  if (call.kv_len == 0) return {};
  const std::int64_t first = std::clamp<std::int64_t>(-call.band_high, 0, call.q_len);
  return {first, std::clamp(call.kv_len - call.band_low, first, call.q_len)};
}

Span seen_keys(const AttentionProblem& call) {
  if (call.q_len == 0) return {};
  if (call.policies) return {0, call.kv_len};  // the device knows more
  return {call.first_key(0), call.last_key(call.q_len - 1)};
}

Refusal rejects_rows(const Problem& problem, std::size_t slot, const TensorSpec& rows) {
  bool fits = rows.offset % 8 == 0;
  for (const std::size_t axis : {0, 1, 2}) {
    fits =
        fits && (rows.shape[axis] <= 1 || (rows.strides[axis] > 0 && rows.strides[axis] % 8 == 0));
  }
  if (fits) return std::nullopt;
  return problem.operation->operands[slot].name + " " + rows.to_string() +
         " has an offset or a stride that is no positive multiple of 8 elements";
}

Refusal rejects_layout(const Problem& problem, std::initializer_list<std::size_t> slots) {
  for (const std::size_t slot : slots) {
    if (const Refusal no = rejects_rows(problem, slot, with_batch(problem.spec(slot)))) return no;
  }
  return std::nullopt;
}

Refusal rejects_local_bytes(std::uint32_t bytes) {
  if (bytes <= kernel::kHopperLocalBytes) return std::nullopt;
  return "needs " + std::to_string(bytes) + " bytes of work-group memory, and Hopper has " +
         std::to_string(kernel::kHopperLocalBytes);
}

Refusal rejects_policies(const Problem& problem) {
  const AttentionProblem& call = call_of(problem);
  if (call.policies || call.features != 0 || problem.has(call.slots.weights))
    return "takes causal masks, windows and a soft cap, and no other policy";
  return std::nullopt;
}

}  // namespace tessera::operations::attention
