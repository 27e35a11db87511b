// SPDX-License-Identifier: Apache-2.0
// What lengths, tables of pages and query_start_loc say, whatever is in them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "operations/attention_core/problem.hpp"

namespace tessera::operations::attention {

struct PagedSequence {
  std::int64_t first_row = 0, rows = 0, keys = 0;
  std::vector<std::int64_t> pages{};  // those of its keys; -1 = none of the pool
};

// All that the table has lines for; those from num_seqs on have neither rows nor keys.
std::vector<PagedSequence> paged_sequences(const Problem& problem,
                                           std::span<const HostTensor> tensors);

}  // namespace tessera::operations::attention
