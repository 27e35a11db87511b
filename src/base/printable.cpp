// SPDX-License-Identifier: Apache-2.0
#include "base/printable.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace tessera {
namespace {

struct Decoded {
  std::uint32_t code = 0;
  std::size_t bytes = 0;  // 0 = no UTF-8
};

// The character that the text begins with, in its shortest form and no surrogate.
Decoded decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t bytes = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (bytes == 0 || first > 0xf4 || text.size() < bytes) return {};
  std::uint32_t code = first & (0x7fU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) return {};
    code = code << 6U | (byte(i) & 0x3fU);
  }
  constexpr std::array<std::uint32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast.at(bytes) || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return {};
  return {code, bytes};
}

bool obeyed(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200e ||
         code == 0x200f || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

std::string escaped(std::uint32_t code) {
  if (code == '\n') return "\\n";
  if (code == '\r') return "\\r";
  if (code == '\t') return "\\t";
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), code < 0x80 ? "\\x%02x" : "\\u%04x",
                static_cast<unsigned>(code));
  return text.data();
}

std::string escape(std::string_view text, std::string_view kept) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    Decoded next = decode(text);
    if (next.bytes == 0) {
      std::array<char, 8> byte{};
      std::snprintf(byte.data(), byte.size(), "\\x%02x",
                    static_cast<unsigned>(static_cast<unsigned char>(text.front())));
      result += byte.data();
      next.bytes = 1;
    } else if (obeyed(next.code) && kept.find(text.front()) == std::string_view::npos) {
      result += escaped(next.code);
    } else {
      result += text.substr(0, next.bytes);
    }
    text.remove_prefix(next.bytes);
  }
  return result;
}

}  // namespace

std::string printable(std::string_view text) { return escape(text, ""); }
std::string printable_lines(std::string_view text) { return escape(text, "\n\t"); }

}  // namespace tessera
