// SPDX-License-Identifier: Apache-2.0
#include "base/masks/mask_checks.hpp"

#include <algorithm>
#include <utility>

#include "base/tensors/checked.hpp"
#include "tessera/error.hpp"

namespace tessera {

void refuse_mask(const std::string& sentence) { throw InvalidArgument("mask: " + sentence); }

void check_index(const char* name, std::int64_t index, std::int64_t size) {
  if (index >= 0 && index < size) return;
  refuse_mask("index " + std::string(name) + " must be at least 0 and below " +
              std::to_string(size) + ", not " + std::to_string(index));
}

void check_per_batch(const char* name, std::size_t count, std::int64_t batch) {
  if (count == 1 || std::cmp_equal(count, batch)) return;
  refuse_mask(std::string(name) + " must hold 1 or batch = " + std::to_string(batch) +
              " values, not " + std::to_string(count));
}

void check_count(const char* name, std::size_t count, std::int64_t rows, std::int64_t len) {
  if (checked_mul(rows, len) == static_cast<std::int64_t>(count)) return;
  refuse_mask(std::string(name) + " must hold " + std::to_string(rows) + " x " +
              std::to_string(len) + " values, not " + std::to_string(count));
}

void check_dense(const DenseMask& mask) {
  const auto extents = {mask.batch, mask.heads, mask.q_len, mask.kv_len};
  const bool negative = std::ranges::any_of(extents, [](std::int64_t n) { return n < 0; });
  if (!negative && checked_product(extents) == std::ssize(mask.values)) return;
  refuse_mask("a dense mask [" + std::to_string(mask.batch) + ", " + std::to_string(mask.heads) +
              ", " + std::to_string(mask.q_len) + ", " + std::to_string(mask.kv_len) +
              "] cannot hold " + std::to_string(mask.values.size()) + " values");
}

std::int64_t row_length(const char* name, std::size_t count, std::int64_t batch) {
  if (batch > 0 && count % static_cast<std::size_t>(batch) == 0) {
    return static_cast<std::int64_t>(count) / batch;
  }
  refuse_mask(std::string(name) + " has " + std::to_string(count) +
              " values, which do not make the rows of batch " + std::to_string(batch));
}

}  // namespace tessera
