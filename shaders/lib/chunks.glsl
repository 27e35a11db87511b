// SPDX-License-Identifier: Apache-2.0
// Chunks of a row: 16 bytes of elements where ALIGNED says that all of them lie at multiples of that, which is two
// vectors of four 16-bit elements; else one vector of four. A chunk on its way to being used is four words as they were
// read, so that a kernel may ask for them early and convert them late. `chunks` is one more view of a binding, and
// `column` what lib/columns.glsl made of the others.
#ifndef TESSERA_LIB_CHUNKS_GLSL
#define TESSERA_LIB_CHUNKS_GLSL
#include "lib/columns.glsl"

#if DTYPE == DTYPE_F32
#define LOAD_CHUNK(name, column, chunks) \
  uvec4 name(uint at, uint left) { return floatBitsToUint(column(at, left)); }
#define STORE_CHUNK(name, column, chunks) \
  void name(vec4 first, vec4 second, uint at, uint left) { column(first, at, left); }
#else
#define LOAD_CHUNK(name, column, chunks)             \
  uvec4 name(uint at, uint left) {                   \
    if (ALIGNED != 0u) return chunks[at / 8u];       \
    return floatBitsToUint(column(at, left));        \
  }
#define STORE_CHUNK(name, column, chunks)                            \
  void name(vec4 first, vec4 second, uint at, uint left) {           \
    if (ALIGNED != 0u) {                                             \
      chunks[at / 8u] = uvec4(narrow4(first), narrow4(second));      \
      return;                                                        \
    }                                                                \
    column(first, at, left);                                         \
  }
#endif

// Vector i of a chunk.
vec4 chunk_vector(uvec4 chunk, uint i) {
#if DTYPE != DTYPE_F32
  if (ALIGNED != 0u) return widen4(i == 0u ? chunk.xy : chunk.zw);
#endif
  return uintBitsToFloat(chunk);
}

#endif  // TESSERA_LIB_CHUNKS_GLSL
