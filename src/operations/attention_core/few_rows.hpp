// SPDX-License-Identifier: Apache-2.0
// What ways for few query rows have in common: those of a kv head's group and of a sequence share
// its keys, and are packed.
#pragma once

#include <cstdint>
#include <string>

#include "operations/attention_core/launch.hpp"

namespace tessera::operations::attention {

// Query rows of a sequence: at most, and below which the ways are the untuned choice.
inline constexpr std::int64_t kMostFewRows = 64, kFewRows = 16;
// `others`: which variants are for more, with the verb.
Refusal rejects_many_rows(const Problem& problem, const std::string& others);

// Of a kv head and a sequence.
std::int64_t packed_rows(const Problem& problem);
// Work-groups with `rows` of them.
AttentionTiling few_rows_tiling(const Problem& problem, const Config& config, std::uint32_t rows);
Dim3 few_rows_groups(const Problem& problem, const Config& config, std::uint32_t rows);

}  // namespace tessera::operations::attention
