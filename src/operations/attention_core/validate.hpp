// SPDX-License-Identifier: Apache-2.0
// What the checks of the attention operations share.
#pragma once

#include <algorithm>
#include <string>

#include "operations/attention_core/problem.hpp"
#include "operations/common/validate.hpp"
#include "tessera/error.hpp"

namespace tessera::operations::attention {

// Operands of masks, biases, lengths, segments: checks them, and sets features, policies, packed
// and sequences.
void check_policies(const Problem& problem, AttentionProblem& call);

// So that i + INDEX_MAX does not overflow 32 bits.
inline constexpr std::int64_t kMaxLength = std::int64_t{1} << 30;

void require_contiguous_rows(const Problem& problem, std::size_t slot);  // if the call has it
// [batch, rows, heads, dim], or [rows, heads, dim] of packed sequences.
void require_rows(const Problem& problem, std::size_t slot, bool may_be_packed);
void require_dim(const Problem& problem, std::size_t slot);
void require_groups(const Problem& problem, const AttentionProblem& call);
// The dtype of keys and values, and that of codes there are scales.
void check_stored(const Problem& problem, AttentionProblem& call);
// The options of the family that the operation has.
void parse_options(const Problem& problem, AttentionProblem& call);
// The band of key - row, or of key - position where the kernels have a table of rows.
void set_band(AttentionProblem& call);
// Everything that changes the kernel or its speed; lengths in buckets. A pinned number of splits
// leaves the batch out, so that every batch gets the same configuration.
std::string make_key(const Problem& problem, const AttentionProblem& call);

}  // namespace tessera::operations::attention
