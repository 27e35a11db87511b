// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10 (Salmon et al., Parallel random numbers: as easy as 1, 2, 3; SC'11): words of the
// block with counter (low, high, 0, 0) and key (seed_low, seed_high). A counter-based generator has
// no state, so any tiling, forward or backward, draws the same number for the same element.
// For OpenCL C and GLSL; WORD is a 32-bit unsigned integer or a vector of them.
#ifndef TESSERA_ABI_PHILOX_H
#define TESSERA_ABI_PHILOX_H

#ifndef WORD
#define WORD u32
#endif
// A WORD of one number.
#ifndef WORD_OF
#define WORD_OF(x) (x)
#endif
// Of the product of two WORDs.
#ifndef HIGH_WORD
#define HIGH_WORD(a, b) mul_hi(a, b)
#endif

// Declares the words c0 to c3 of the block.
#define PHILOX_BLOCK(low, high, seed_low, seed_high)                                 \
  const WORD multiplier0 = WORD_OF(0xD2511F53u), multiplier1 = WORD_OF(0xCD9E8D57u); \
  WORD c0 = low, c1 = high, c2 = WORD_OF(0u), c3 = WORD_OF(0u);                      \
  for (u32 round = 0u; round < 10u; ++round) {                                       \
    const WORD high0 = HIGH_WORD(c0, multiplier0), low0 = c0 * multiplier0;          \
    const WORD high1 = HIGH_WORD(c2, multiplier1), low1 = c2 * multiplier1;          \
    c0 = high1 ^ c1 ^ WORD_OF(seed_low + round * 0x9E3779B9u);                       \
    c2 = high0 ^ c3 ^ WORD_OF(seed_high + round * 0xBB67AE85u);                      \
    c1 = low1;                                                                       \
    c3 = low0;                                                                       \
  }

FUNCTION WORD philox_word(WORD low, WORD high, u32 seed_low, u32 seed_high) {
  PHILOX_BLOCK(low, high, seed_low, seed_high)
  return c0;
}

#endif  // TESSERA_ABI_PHILOX_H
