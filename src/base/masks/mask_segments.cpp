// SPDX-License-Identifier: Apache-2.0
// Segment ids from masks and masks from segment ids.
#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "base/masks/mask_checks.hpp"
#include "base/masks/mask_view.hpp"
#include "base/system/out_of_memory.hpp"
#include "tessera/mask.hpp"

namespace tessera {
namespace {

// Ids of the rows of a matrix with one byte per element, 0 or 1, by first occurrence.
void append_row_ids(std::vector<std::int32_t>& ids, std::string_view matrix, std::int64_t rows,
                    std::int64_t columns) {
  std::unordered_map<std::string_view, std::int32_t> seen;
  for (std::int64_t n = 0; n < rows; ++n) {
    const std::string_view row =
        matrix.substr(static_cast<std::size_t>(n * columns), static_cast<std::size_t>(columns));
    if (row.find('\1') == std::string_view::npos) {
      ids.push_back(-1);
    } else {
      ids.push_back(seen.emplace(row, static_cast<std::int32_t>(seen.size())).first->second);
    }
  }
}

// One byte per element of head h, 0 or 1.
std::string matrix_of(const DenseMask& mask, std::int64_t b, std::int64_t h) {
  const auto size = static_cast<std::size_t>(mask.q_len * mask.kv_len);
  const auto first = static_cast<std::size_t>(b * mask.heads + h) * size;
  std::string matrix(size, '\0');
  for (std::size_t n = 0; n < size; ++n) matrix[n] = mask.values[first + n] != 0 ? '\1' : '\0';
  return matrix;
}

std::string transposed(const std::string& matrix, std::int64_t rows, std::int64_t columns) {
  std::string result;
  result.reserve(matrix.size());
  for (std::int64_t j = 0; j < columns; ++j) {
    for (std::int64_t i = 0; i < rows; ++i) {
      result += matrix[static_cast<std::size_t>(i * columns + j)];
    }
  }
  return result;
}

}  // namespace

QueryKeyIds mask_to_segment_ids(const DenseMask& mask, bool per_head) try {
  check_dense(mask);
  QueryKeyIds ids;
  for (std::int64_t b = 0; b < mask.batch; ++b) {
    const std::string first = mask.heads > 0 ? matrix_of(mask, b, 0) : std::string();
    for (std::int64_t h = 0; h < mask.heads; ++h) {
      const std::string matrix = matrix_of(mask, b, h);
      if (!per_head && h > 0) {
        if (matrix == first) continue;
        refuse_mask("head " + std::to_string(h) + " of batch " + std::to_string(b) +
                    " differs from head 0, so one row of segment ids cannot stand for all heads; "
                    "ask for ids per head");
      }
      append_row_ids(ids.q, matrix, mask.q_len, mask.kv_len);
      append_row_ids(ids.kv, transposed(matrix, mask.q_len, mask.kv_len), mask.kv_len, mask.q_len);
    }
  }
  return ids;
} catch (...) {
  rethrow_as_error();
}

DenseMask segment_ids_to_mask(std::int64_t batch, const QueryKeyIds& ids) try {
  return MaskSpec::from_segments(batch, ids).to_dense();
} catch (...) {
  rethrow_as_error();
}

std::vector<std::uint8_t> segment_valid_mask(std::span<const std::int32_t> ids) try {
  std::vector<std::uint8_t> mask(ids.size());
  std::ranges::transform(ids, mask.begin(), [](std::int32_t id) { return id >= 0 ? 1 : 0; });
  return mask;
} catch (...) {
  rethrow_as_error();
}

std::vector<std::int32_t> positions_from_segments(std::int64_t batch,
                                                  std::span<const std::int32_t> ids,
                                                  std::int32_t padding) try {
  const auto len = static_cast<std::size_t>(row_length("the list of ids", ids.size(), batch));
  std::vector<std::int32_t> positions(ids.size());
  for (std::size_t n = 0; n < ids.size(); ++n) {
    const bool starts = n % len == 0 || ids[n] != ids[n - 1];
    positions[n] = ids[n] < 0 ? padding : starts ? 0 : positions[n - 1] + 1;
  }
  return positions;
} catch (...) {
  rethrow_as_error();
}

std::vector<std::int32_t> chunk_segment_ids(std::int64_t batch, std::span<const std::int32_t> ids,
                                            std::int64_t chunk_size) try {
  const auto len = static_cast<std::size_t>(row_length("the list of ids", ids.size(), batch));
  if (chunk_size <= 0) {
    refuse_mask("the chunk size must be greater than 0, not " + std::to_string(chunk_size));
  }
  std::vector<std::int32_t> chunks(ids.size());
  for (std::size_t n = 0; n < ids.size(); ++n) {
    const auto position = static_cast<std::int64_t>(n % len);
    chunks[n] = ids[n] < 0 ? -1 : static_cast<std::int32_t>(position / chunk_size + 1);
  }
  return chunks;
} catch (...) {
  rethrow_as_error();
}

bool is_block_diagonal(const DenseMask& mask) try {
  const QueryKeyIds ids = mask_to_segment_ids(mask, true);
  if (mask.values.empty()) return true;
  const DenseMask shown = segment_ids_to_mask(mask.batch * mask.heads, ids);
  return std::ranges::equal(mask.values, shown.values,
                            [](std::uint8_t a, std::uint8_t b) { return (a != 0) == (b != 0); });
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
