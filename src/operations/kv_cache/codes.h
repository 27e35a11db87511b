// SPDX-License-Identifier: Apache-2.0
// How elements of caches are quantised. Text for OpenCL C and GLSL.
#ifndef TESSERA_OPERATIONS_KV_CACHE_CODES_H
#define TESSERA_OPERATIONS_KV_CACHE_CODES_H
#include "abi/storage.h"

// Of rows whose largest magnitude is `peak`; 1 where a device may lose it.
FUNCTION float cache_scale(float peak, float largest) {
  const float scale = rounded_quotient(peak, largest);
  return scale >= 1.17549435e-38f ? scale : 1.0f;
}

// Integers are symmetric: they end at -largest.
FUNCTION u32 cache_code(u32 type, float x, float largest) {
  if (type == TO_U32(DTYPE_E4M3FN)) return to_e4m3fn(x);
  if (type == TO_U32(DTYPE_E5M2)) return to_e5m2(x);
  const u32 bits = TO_U32(to_integer(x, -largest, largest));
  return bits & (type == TO_U32(DTYPE_I4) ? 0xfu : 0xffu);
}

// Where row (page, slot, a) of `at` begins.
FUNCTION INDEX cache_row(STRUCT(CacheRows) at, u32 page, u32 slot, u32 a) {
  return TO_INDEX(at.offset) + TO_INDEX(page) * at.outer + TO_INDEX(slot) * at.inner +
         TO_INDEX(a) * at.axis0;
}

#endif  // TESSERA_OPERATIONS_KV_CACHE_CODES_H
