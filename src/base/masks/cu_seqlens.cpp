// SPDX-License-Identifier: Apache-2.0
#include "tessera/cu_seqlens.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "base/system/out_of_memory.hpp"
#include "tessera/error.hpp"

namespace tessera {
namespace {

using Index = std::int32_t;

// Calls visit(sequence, length) for each sequence of checked cu_seqlens.
template <class Visit>
void for_each_sequence(std::span<const Index> cu_seqlens, Visit visit) {
  if (cu_seqlens.empty()) throw InvalidArgument("cu_seqlens is empty; it must hold at least the 0");
  if (cu_seqlens[0] != 0) {
    throw InvalidArgument("cu_seqlens[0] must be 0, not " + std::to_string(cu_seqlens[0]));
  }
  for (std::size_t n = 1; n < cu_seqlens.size(); ++n) {
    if (cu_seqlens[n] < cu_seqlens[n - 1]) {
      throw InvalidArgument("cu_seqlens must not decrease, but cu_seqlens[" + std::to_string(n) +
                            "] is " + std::to_string(cu_seqlens[n]) + " after " +
                            std::to_string(cu_seqlens[n - 1]));
    }
    visit(static_cast<Index>(n - 1), cu_seqlens[n] - cu_seqlens[n - 1]);
  }
}

// Calls visit(sequence, position) for each token.
template <class Visit>
void for_each_token(std::span<const Index> cu_seqlens, Visit visit) {
  for_each_sequence(cu_seqlens, [&](Index sequence, Index length) {
    for (Index position = 0; position < length; ++position) visit(sequence, position);
  });
}

std::vector<Index> chunk_counts(std::span<const Index> cu_seqlens, Index chunk_size) {
  if (chunk_size <= 0) {
    throw InvalidArgument("chunk_size must be greater than 0, not " + std::to_string(chunk_size));
  }
  std::vector<Index> counts = sequence_lengths(cu_seqlens);
  for (Index& count : counts) count = count / chunk_size + (count % chunk_size != 0 ? 1 : 0);
  return counts;
}

}  // namespace

std::vector<Index> sequence_lengths(std::span<const Index> cu_seqlens) try {
  std::vector<Index> lengths;
  for_each_sequence(cu_seqlens, [&](Index, Index length) { lengths.push_back(length); });
  return lengths;
} catch (...) {
  rethrow_as_error();
}

std::vector<Index> sequence_lengths_from_mask(std::int64_t batch,
                                              std::span<const std::uint8_t> mask) try {
  const auto rows = static_cast<std::size_t>(std::max<std::int64_t>(batch, 0));
  if (batch < 0 || (rows == 0 ? !mask.empty() : mask.size() % rows != 0)) {
    throw InvalidArgument("a mask of " + std::to_string(mask.size()) +
                          " elements does not make the rows of batch " + std::to_string(batch));
  }
  std::vector<Index> lengths(rows);
  for (std::size_t b = 0; b < rows; ++b) {
    const auto row = mask.subspan(b * (mask.size() / rows), mask.size() / rows);
    const std::ptrdiff_t visible = std::ssize(row) - std::ranges::count(row, 0);
    if (visible > std::numeric_limits<Index>::max()) {
      throw InvalidArgument("row " + std::to_string(b) + " of the mask has " +
                            std::to_string(visible) + " tokens, more than 32 bits can count");
    }
    lengths[b] = static_cast<Index>(visible);
  }
  return lengths;
} catch (...) {
  rethrow_as_error();
}

std::vector<Index> cu_seqlens_from_lengths(std::span<const Index> lengths) try {
  std::vector<Index> cu_seqlens{0};
  cu_seqlens.reserve(lengths.size() + 1);
  for (std::size_t n = 0; n < lengths.size(); ++n) {
    Index end = 0;
    if (lengths[n] < 0) {
      throw InvalidArgument("lengths[" + std::to_string(n) + "] must not be negative, but is " +
                            std::to_string(lengths[n]));
    }
    if (__builtin_add_overflow(cu_seqlens.back(), lengths[n], &end)) {
      throw InvalidArgument("the lengths up to lengths[" + std::to_string(n) + "], " +
                            std::to_string(lengths[n]) + ", add up to more than 32 bits can count");
    }
    cu_seqlens.push_back(end);
  }
  return cu_seqlens;
} catch (...) {
  rethrow_as_error();
}

std::vector<Index> cu_seqlens_from_mask(std::int64_t batch,
                                        std::span<const std::uint8_t> mask) try {
  return cu_seqlens_from_lengths(sequence_lengths_from_mask(batch, mask));
} catch (...) {
  rethrow_as_error();
}

std::vector<Index> position_ids(std::span<const Index> cu_seqlens) try {
  std::vector<Index> ids;
  for_each_token(cu_seqlens, [&](Index, Index position) { ids.push_back(position); });
  return ids;
} catch (...) {
  rethrow_as_error();
}

std::vector<Index> sequence_ids(std::span<const Index> cu_seqlens) try {
  std::vector<Index> ids;
  for_each_token(cu_seqlens, [&](Index sequence, Index) { ids.push_back(sequence); });
  return ids;
} catch (...) {
  rethrow_as_error();
}

std::vector<std::array<Index, 2>> token_indices(std::span<const Index> cu_seqlens) try {
  std::vector<std::array<Index, 2>> indices;
  for_each_token(cu_seqlens, [&](Index sequence, Index position) {
    indices.push_back({sequence, position});
  });
  return indices;
} catch (...) {
  rethrow_as_error();
}

std::vector<std::array<Index, 2>> chunk_indices(std::span<const Index> cu_seqlens,
                                                Index chunk_size) try {
  return token_indices(chunk_offsets(cu_seqlens, chunk_size));  // chunks are tokens of this list
} catch (...) {
  rethrow_as_error();
}

std::vector<Index> chunk_offsets(std::span<const Index> cu_seqlens, Index chunk_size) try {
  return cu_seqlens_from_lengths(chunk_counts(cu_seqlens, chunk_size));
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
