// SPDX-License-Identifier: Apache-2.0
// The elements of tensors in host memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/system/parallel.hpp"
#include "tessera/tensor.hpp"

namespace tessera::kernel {

// Elements at equal distances in memory: `flat` is the first one's row-major number, `element` its
// index in memory, offset included.
struct Run {
  std::size_t flat, element, count, stride;
};

// Calls visit(run) for the runs that elements [begin, end) are made of, row-major.
template <class Visit>
void for_each_run(const TensorSpec& spec, std::int64_t begin, std::int64_t end, Visit visit) {
  if (begin >= end) return;
  Shape extents, strides;  // axes that go on where the next one ends are one
  for (std::size_t axis = 0; axis < spec.shape.size(); ++axis) {
    const std::int64_t extent = spec.shape[axis], stride = spec.strides[axis];
    if (extent == 1) continue;
    if (!extents.empty() && strides.back() == stride * extent) {
      extents.back() *= extent;
      strides.back() = stride;
    } else {
      extents.push_back(extent);
      strides.push_back(stride);
    }
  }
  if (extents.empty()) extents = strides = {1};
  const std::size_t last = extents.size() - 1;
  Shape index(extents.size());
  std::int64_t element = spec.offset, before = begin;
  for (std::size_t axis = extents.size(); axis-- > 0; before /= extents[axis]) {
    index[axis] = before % extents[axis];
    element += index[axis] * strides[axis];
  }
  for (std::int64_t flat = begin; flat < end;) {
    const std::int64_t count = std::min(extents[last] - index[last], end - flat);
    visit(Run{.flat = static_cast<std::size_t>(flat),
              .element = static_cast<std::size_t>(element),
              .count = static_cast<std::size_t>(count),
              .stride = static_cast<std::size_t>(strides[last])});
    flat += count;
    index[last] += count;
    element += count * strides[last];
    for (std::size_t axis = last; axis > 0 && index[axis] == extents[axis]; --axis) {
      element += strides[axis - 1] - extents[axis] * strides[axis];
      index[axis] = 0;
      ++index[axis - 1];
    }
  }
}

// All of them, on several threads where there are many elements.
template <class Visit>
void for_all_runs(const TensorSpec& spec, Visit visit) {
  constexpr std::int64_t kBlock = 1 << 17;  // even, so that none begins within a byte of a row
  const std::int64_t count = spec.elements();
  parallel_for(static_cast<std::size_t>((count + kBlock - 1) / kBlock), [&](std::size_t block) {
    const std::int64_t begin = static_cast<std::int64_t>(block) * kBlock;
    for_each_run(spec, begin, std::min(begin + kBlock, count), visit);
  });
}

// Calls visit(flat, element) for every element, row-major.
template <class Visit>
void for_each_element(const TensorSpec& spec, Visit visit) {
  for_each_run(spec, 0, spec.elements(), [&](const Run& run) {
    for (std::size_t i = 0; i < run.count; ++i) visit(run.flat + i, run.element + i * run.stride);
  });
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

// Of whole bytes, one behind the other.
inline void copy_elements(DType dtype, const std::byte* from, std::size_t from_element,
                          std::byte* to, std::size_t to_element, std::size_t count) {
  const std::size_t size = size_of(dtype);
  std::memcpy(to + to_element * size, from + from_element * size, count * size);
}

// Bit by bit.
inline void copy_element(DType dtype, const std::byte* from, std::size_t from_element,
                         std::byte* to, std::size_t to_element) {
  if (is_packed(dtype)) return store_nibble(to, to_element, load_nibble(from, from_element));
  copy_elements(dtype, from, from_element, to, to_element, 1);
}

}  // namespace tessera::kernel
