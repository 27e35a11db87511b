// SPDX-License-Identifier: Apache-2.0
// The counter-based generator of abi/philox.h on the host: Philox4x32-10 (Salmon et al.,
// Parallel random numbers: as easy as 1, 2, 3; SC'11).
#pragma once

#include <array>
#include <cstdint>

namespace tessera::operations {

inline std::array<std::uint32_t, 4> philox4x32_10(std::array<std::uint32_t, 4> counter,
                                                  std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {
        static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key = {key[0] + 0x9E3779B9U, key[1] + 0xBB67AE85U};
  }
  return counter;
}

// The block of number `number` of a seed.
inline std::array<std::uint32_t, 4> philox_block(std::uint64_t seed, std::uint64_t number) {
  return philox4x32_10(
      {static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number >> 32), 0, 0},
      {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
}

}  // namespace tessera::operations
