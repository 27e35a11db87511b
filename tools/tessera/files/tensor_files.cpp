// SPDX-License-Identifier: Apache-2.0
#include "tessera/files/tensor_files.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "base/printable.hpp"

namespace tessera::tool {

static_assert(std::endian::native == std::endian::little, "both formats are written as they lie");

namespace {

struct TypeInfo {
  std::string_view name;
  std::size_t bytes;
  bool floating;
};

const TypeInfo& info(ElementType type) {
  static constexpr std::array<TypeInfo, 15> kTypes{{{"bool", 1, false},
                                                    {"i8", 1, false},
                                                    {"u8", 1, false},
                                                    {"i16", 2, false},
                                                    {"u16", 2, false},
                                                    {"i32", 4, false},
                                                    {"u32", 4, false},
                                                    {"i64", 8, false},
                                                    {"u64", 8, false},
                                                    {"f16", 2, true},
                                                    {"bf16", 2, true},
                                                    {"f32", 4, true},
                                                    {"f64", 8, true},
                                                    {"e4m3fn", 1, true},
                                                    {"e5m2", 1, true}}};
  return kTypes.at(static_cast<std::size_t>(type));
}

}  // namespace

std::size_t size_of(ElementType type) { return info(type).bytes; }
std::string_view to_string(ElementType type) { return info(type).name; }
bool is_floating(ElementType type) { return info(type).floating; }

std::optional<std::uint64_t> checked_bytes(ElementType type, const Shape& shape) {
  constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  std::uint64_t bytes = size_of(type);
  bool empty = false;
  for (const std::int64_t dimension : shape) {
    if (dimension < 0) return std::nullopt;
    if (dimension == 0) {
      empty = true;
    } else {
      if (bytes > kLargest / static_cast<std::uint64_t>(dimension)) return std::nullopt;
      bytes *= static_cast<std::uint64_t>(dimension);
    }
  }
  return empty ? 0 : bytes;
}

std::string quote(std::string_view text) {
  constexpr std::size_t kLongest = 200;
  if (text.size() <= kLongest) return "'" + printable(text) + "'";
  // A cut inside a UTF-8 sequence would leave half a character.
  std::size_t end = kLongest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;
  return "'" + printable(text.substr(0, end)) + "…'";
}

}  // namespace tessera::tool
