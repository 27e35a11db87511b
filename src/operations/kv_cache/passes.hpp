// SPDX-License-Identifier: Apache-2.0
// The passes that read tables, in front of those that move rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "operations/kv_cache/problem.hpp"
#include "operations/kv_cache/tables_args.h"

namespace tessera::operations::kv_cache {

// append_to_cache: where each token goes, in the second of two lists in scratch. Behind them is a
// word for each slot of the pool; those of slots that are written to are used. Then come the
// boundaries of sequences.
std::vector<Pass> places_passes();
std::uint64_t places_bytes(const Problem& problem, const Config& config);

// Whether one work-group finds the places of all tokens, its size, and what it is told.
inline constexpr std::uint32_t kFewItems = 128;  // as many as any device of Vulkan has
bool are_few(const Problem& problem);
abi::CacheFewArgs few_arguments(const Problem& problem);
inline constexpr std::size_t kFewErrorsAt =
    offsetof(abi::CacheFewArgs, places) + offsetof(abi::CachePlacesArgs, errors);

std::vector<Pass> pairs_passes();  // copy_pages: four lists in scratch, and a word for each page

}  // namespace tessera::operations::kv_cache
