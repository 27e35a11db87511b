// SPDX-License-Identifier: Apache-2.0
// The one place that turns a TensorSpec, which anybody may have made by hand, into addresses.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "tessera/tensor.hpp"

namespace tessera {

// Who asks, for messages: "flash_attention: key f32[2, 3] has a negative stride along axis 0".
struct Whose {
  std::string_view call{};  // "flash_attention"; may be empty
  std::string_view name = "tensor";
};

// Bytes [begin, end) of a buffer; none if both are 0.
struct ByteRange {
  std::uint64_t begin = 0, end = 0;
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

inline constexpr std::uint64_t kAnyBuffer = std::numeric_limits<std::uint64_t>::max();

// Where the elements lie. Nothing about them can overflow from then on: their number and the bytes
// that they take, apart or in the buffer, fit 63 bits. Throws InvalidArgument for what is no spec,
// and where elements lie outside of a buffer of `buffer_bytes`.
ByteRange byte_range(const TensorSpec& spec, Whose whose, std::uint64_t buffer_bytes = kAnyBuffer);

// For what is written to, after byte_range(): throws InvalidArgument unless in the order of strides
// each axis steps over all of those before it, so that no two elements share memory.
void check_distinct_elements(const TensorSpec& spec, Whose whose);
bool has_distinct_elements(const TensorSpec& spec);  // whether it would return

}  // namespace tessera
