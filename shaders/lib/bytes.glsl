// SPDX-License-Identifier: Apache-2.0
// Elements of 8 bits and less in buffers; abi/storage.h has what their bits mean. Buffers are read by
// words, which needs no 8-bit access; they end at a multiple of 4 bytes.
#ifndef TESSERA_LIB_BYTES_GLSL
#define TESSERA_LIB_BYTES_GLSL
#include "lib/prelude.glsl"
#include "abi/storage.h"

// The bits of element i of a buffer `words` of uint.
#define LOAD_BYTE(words, i) ((words[(i) / 4u] >> ((i) % 4u * 8u)) & 0xffu)
#define LOAD_HALF_BYTE(words, i) ((words[(i) / 8u] >> ((i) % 8u * 4u)) & 0xfu)

// Other items may store the other bytes of the word at the same time.
#define STORE_BYTE(bits, words, i)                                \
  {                                                               \
    const uint byte_shift = (i) % 4u * 8u;                        \
    atomicAnd(words[(i) / 4u], ~(0xffu << byte_shift));           \
    atomicOr(words[(i) / 4u], (bits) << byte_shift);              \
  }
// Element i of four bits alone, in the same way.
#define STORE_HALF_BYTE(bits, words, i)                           \
  {                                                               \
    const uint half_shift = (i) % 8u * 4u;                        \
    atomicAnd(words[(i) / 8u], ~(0xfu << half_shift));            \
    atomicOr(words[(i) / 8u], (bits) << half_shift);              \
  }

#endif  // TESSERA_LIB_BYTES_GLSL
