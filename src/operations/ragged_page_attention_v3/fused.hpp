// SPDX-License-Identifier: Apache-2.0
// ragged_page_attention_v3 as calls of two other operations: append_to_cache, which writes the new
// keys and values, and ragged_page_attention, which attends.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tessera/record.hpp"

namespace tessera::operations::attention {

enum FusedSlot : std::size_t {
  kQueries,
  kKeys,
  kValues,
  kCache,
  kLengths,
  kTables,
  kStarts,
  kDistribution,
  kOutput,
  kLogSumExp,
  kSinks,
  kScale,
  kValueCache,
  kValueScale,
};

// Where keys or values are kept, and the scales of their codes: by turns with the others in one
// cache, or in one of their own.
struct CacheSide {
  std::size_t cache, scale;
  bool by_turns;
};
CacheSide side_of(const Problem& problem, bool values);

CallStep append_step(const Problem& problem);
CallStep attend_step(const Problem& problem);

// A step as a call of its own, on tensors of the caller.
struct FusedCall {
  Problem problem;
  std::vector<HostTensor> tensors;
};
// `scratch`: what scaled_reference() made.
FusedCall fused_call(const CallStep& step, const Problem& problem, std::span<HostTensor> tensors,
                     std::byte* scratch = nullptr);

// Those of attend_step(), by the names that its operands have here.
std::vector<ErrorKind> attend_errors();

void reference_fused(const Problem& problem, std::span<HostTensor> tensors);
std::vector<Raised> raises_of_fused(const Problem& problem, std::span<HostTensor> tensors);
std::vector<std::size_t> written_by_fused(const Problem& problem, std::span<HostTensor> tensors,
                                          std::size_t slot);
Workload fused_workload();

}  // namespace tessera::operations::attention
