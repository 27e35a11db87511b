// SPDX-License-Identifier: Apache-2.0
// What sequence_start and sequence_end raise.
#include <algorithm>

#include "operations/attention_core/core/spans_args.h"
#include "operations/attention_core/problem.hpp"

namespace tessera::operations::attention {

std::vector<Raised> raises_of_spans(const Problem& problem, std::span<HostTensor> tensors) {
  const auto& call = problem.as<AttentionProblem>();
  const std::vector<double> starts = tensors[call.slots.sequence_start].read(),
                            ends = tensors[call.slots.sequence_end].read();
  const auto keys = static_cast<double>(call.kv_len);
  std::vector<Raised> raised;
  for (std::uint32_t n = 0; n < starts.size(); ++n) {
    const double start = std::clamp(starts[n], 0.0, keys);
    if (start != starts[n]) raised.push_back({.error = SPANS_BAD_START, .index = n});
    if (ends[n] < start || ends[n] > keys) raised.push_back({.error = SPANS_BAD_END, .index = n});
  }
  return raised;
}

}  // namespace tessera::operations::attention
