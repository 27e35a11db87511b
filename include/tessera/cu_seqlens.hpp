// SPDX-License-Identifier: Apache-2.0
// Host helpers for packed sequences. cu_seqlens [sequences + 1] holds where each sequence starts,
// from 0, and last the total number of tokens: sequence n is [cu[n], cu[n + 1]). Sequences of
// length 0 keep their number everywhere.
//
// All of these throw InvalidArgument where cu_seqlens does not start with 0 or decreases, a length
// or a chunk size is out of range, or a total does not fit into 32 bits.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "tessera/export.hpp"

namespace tessera {

// lengths[n] = cu_seqlens[n + 1] - cu_seqlens[n]
TESSERA_API std::vector<std::int32_t> sequence_lengths(std::span<const std::int32_t> cu_seqlens);

// The number of elements that are not 0 in each row of mask [batch, len].
TESSERA_API std::vector<std::int32_t> sequence_lengths_from_mask(
    std::int64_t batch, std::span<const std::uint8_t> mask);

TESSERA_API std::vector<std::int32_t> cu_seqlens_from_lengths(
    std::span<const std::int32_t> lengths);

TESSERA_API std::vector<std::int32_t> cu_seqlens_from_mask(std::int64_t batch,
                                                           std::span<const std::uint8_t> mask);

// Per token, its position in its sequence: 0 to length - 1.
TESSERA_API std::vector<std::int32_t> position_ids(std::span<const std::int32_t> cu_seqlens);

// Per token, the number of its sequence.
TESSERA_API std::vector<std::int32_t> sequence_ids(std::span<const std::int32_t> cu_seqlens);

// Per token {sequence, position}.
TESSERA_API std::vector<std::array<std::int32_t, 2>> token_indices(
    std::span<const std::int32_t> cu_seqlens);

// Per chunk {sequence, chunk in the sequence}; a sequence has ceil(length / chunk_size) chunks.
TESSERA_API std::vector<std::array<std::int32_t, 2>> chunk_indices(
    std::span<const std::int32_t> cu_seqlens, std::int32_t chunk_size);

// Where the chunks of each sequence start in chunk_indices, and last their number: [sequences + 1].
TESSERA_API std::vector<std::int32_t> chunk_offsets(std::span<const std::int32_t> cu_seqlens,
                                                    std::int32_t chunk_size);

}  // namespace tessera
