// SPDX-License-Identifier: Apache-2.0
#include "base/hash.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tessera {

std::string hash128(std::span<const std::byte> bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * sizeof canonical.digest);
  for (const unsigned char byte : canonical.digest) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

std::string hash128(std::string_view text) {
  return hash128(std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace tessera
