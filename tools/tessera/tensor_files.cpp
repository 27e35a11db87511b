// SPDX-License-Identifier: Apache-2.0
#include "tensor_files.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

namespace tessera::tool {

static_assert(std::endian::native == std::endian::little, "both formats are written as they lie");

namespace {

struct TypeInfo {
  std::string_view name;
  std::size_t bytes;
  bool floating;
};

const TypeInfo& info(ElementType type) {
  static constexpr std::array<TypeInfo, 13> kTypes{{{"bool", 1, false},
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
                                                    {"f64", 8, true}}};
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
  std::string result = "'";
  for (const char c : text.substr(0, kLongest)) {
    const auto code = static_cast<unsigned char>(c);
    result += code < 0x20 || code == 0x7f ? '?' : c;
  }
  // A cut inside a UTF-8 sequence would leave half a character.
  if (text.size() > kLongest) {
    while (!result.empty() && (static_cast<unsigned char>(result.back()) & 0xc0U) == 0x80U) {
      result.pop_back();
    }
    if ((static_cast<unsigned char>(result.back()) & 0x80U) != 0) result.pop_back();
    result += "…";
  }
  return result + "'";
}

}  // namespace tessera::tool
