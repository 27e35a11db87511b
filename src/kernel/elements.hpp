// SPDX-License-Identifier: Apache-2.0
// The elements of tensors in host memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tessera/tensor.hpp"

namespace tessera::kernel {

// Calls visit(flat, element) for every element, row-major; `element` is the index in memory, offset
// included.
template <class Visit>
void for_each_element(const TensorSpec& spec, Visit visit) {
  const std::size_t rank = spec.shape.size();
  const std::int64_t count = spec.elements();
  std::vector<std::int64_t> index(rank, 0);
  std::int64_t element = spec.offset;
  for (std::int64_t flat = 0; flat < count; ++flat) {
    visit(static_cast<std::size_t>(flat), static_cast<std::size_t>(element));
    for (std::size_t axis = rank; axis-- > 0;) {
      element += spec.strides[axis];
      if (++index[axis] < spec.shape[axis]) break;
      element -= spec.strides[axis] * spec.shape[axis];
      index[axis] = 0;
    }
  }
}

// The half byte of a packed element.
inline unsigned load_nibble(const std::byte* data, std::size_t element) {
  const auto byte = std::to_integer<unsigned>(data[element / 2]);
  return (element % 2 == 0 ? byte : byte >> 4) & 0xFU;
}

inline void store_nibble(std::byte* data, std::size_t element, unsigned value) {
  const unsigned shift = element % 2 == 0 ? 0 : 4;
  const auto other = std::to_integer<unsigned>(data[element / 2]) & (0xF0U >> shift);
  data[element / 2] = static_cast<std::byte>(other | (value & 0xFU) << shift);
}

// Bit by bit.
inline void copy_element(DType dtype, const std::byte* from, std::size_t from_element,
                         std::byte* to, std::size_t to_element) {
  if (is_packed(dtype)) return store_nibble(to, to_element, load_nibble(from, from_element));
  const std::size_t size = size_of(dtype);
  std::memcpy(to + to_element * size, from + from_element * size, size);
}

}  // namespace tessera::kernel
