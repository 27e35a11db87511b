// SPDX-License-Identifier: Apache-2.0
// The passes that read tables, in front of those that move rows.
#pragma once

#include <cstdint>
#include <vector>

#include "operations/kv_cache/problem.hpp"

namespace tessera::operations::kv_cache {

// append_to_cache: where each token goes, in the second of two lists in scratch. Behind them is a
// word for each slot of the pool; those of slots that are written to are used. Then come the
// boundaries of sequences.
std::vector<Pass> places_passes();
std::uint64_t places_bytes(const Problem& problem, const Config& config);
std::vector<Pass> pairs_passes();  // copy_pages: four lists in scratch, and a word for each page

}  // namespace tessera::operations::kv_cache
