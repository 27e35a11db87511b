// SPDX-License-Identifier: Apache-2.0
// Dropout of attention weights, bit for bit.
//
// Weight (b, h, i, j) has number n = ((b heads + h) q_len + i) kv_len + j, 64 bits. Its random word
// is word 0 of Philox4x32-10 (Salmon et al., Parallel random numbers: as easy as 1, 2, 3; SC'11)
// with counter (n mod 2^32, n / 2^32, 0, 0) and key (seed mod 2^32, seed / 2^32). It is dropped
// when the word is below floor(probability 2^32); the others are multiplied by 1 / (1 -
// probability).
#pragma once

#include <cmath>
#include <cstdint>

#include "operations/common/philox.hpp"

namespace tessera::operations::attention {

using operations::philox4x32_10;

inline std::uint32_t dropout_word(std::uint64_t seed, std::uint64_t number) {
  return philox_block(seed, number)[0];
}

inline std::uint32_t dropout_threshold(double probability) {
  return static_cast<std::uint32_t>(std::floor(probability * 0x1p32));
}

}  // namespace tessera::operations::attention
