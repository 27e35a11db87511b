// SPDX-License-Identifier: Apache-2.0
// What     Of each chunk of a sequence what it makes of an empty state, keys decayed to its end times values, and the factors
//          of key dims over it. With GOES_BACK=1 the same of the gradient of the state: queries decayed from its beginning,
//          which stand for keys, times gradients of outputs.
// Who      A work-group owns a chunk in a head, an item eight key dims of four tokens, a sub-group MATRIX_M value dims.
// Memory   Keys, values and decays once; to scratch states in floats, transposed.
// Numerics Float sums of products of DTYPE; keys times factors are rounded to that. Chunks with factors above 1 or with what
//          is not finite are marked.
// Assumes  RECUR_COOP_VALID; full sub-groups of LANES; the device has the shape for sub-groups with float sums; rows at
//          multiples of 16 bytes; operands and scratch below 2^31 elements.
//
// Loops over arrays of matrices have constant bounds: NVIDIA's driver moves arrays to memory where it can't unroll.
#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#include "lib/cooperative/element.glsl"
#define RECUR_OUTPUTS 0
#define RECUR_AREA RECUR_COOP_STATES_AREA
#include "recurrence/cooperative/chunks.glsl"

const uint KEY_TILES = RECUR_COOP_STATE_KEYS / MATRIX_N;
shared uint mark;

COOPERATIVE_SUM sum[KEY_TILES];
COOPERATIVE_ADD_TILES(add_tiles, memory, sum, 1u, KEY_TILES, 1u, 0u, VALUE_STRIDE, 0u, KEY_STRIDE)

void store_factors(vec4 low, vec4 high) {
  scratch_vectors[CHUNK_FACTORS(chunk) / 4u + 2u * eight] = low;
  scratch_vectors[CHUNK_FACTORS(chunk) / 4u + 2u * eight + 1u] = high;
}

// Queries decayed from the chunk's beginning, their own step among them.
void store_queries() {
  vec4 low = vec4(1.0), high = low;
  [[dont_unroll]] for (uint p = 0u; p < part; ++p) {
    low *= totals[TOTAL(p)];
    high *= totals[TOTAL(p) + 1u];
  }
  [[unroll]] for (uint t = 0u; t < PART; ++t) {
    low *= factor[2u * t];
    high *= factor[2u * t + 1u];
    store_eight(t, key[t], low, high);
  }
  if (part == PARTS - 1u) store_factors(low, high);
}

// Keys decayed to the chunk's end.
void store_keys() {
  vec4 low = vec4(1.0), high = low;
  [[dont_unroll]] for (uint p = part + 1u; p < PARTS; ++p) {
    low *= totals[TOTAL(p)];
    high *= totals[TOTAL(p) + 1u];
  }
  [[unroll]] for (uint n = 1u; n <= PART; ++n) {
    const uint t = PART - n;
    store_eight(t, key[t], low, high);
    low *= factor[2u * t];
    high *= factor[2u * t + 1u];
  }
  if (part == 0u) store_factors(low, high);
}

// Whether the gradient of the first state is all of what f16 holds little of: queries that have decayed much at once.
bool begins_small() {
#if DTYPE == DTYPE_F16
  const float least = 0.015625;
  return RECUR_HAS(RECUR_GRAD_INITIAL) && any(lessThan(min(factor[0], factor[1]), vec4(least)));
#else
  return false;
#endif
}

void main() {
  if (!find_chunk()) return;
  if (item == 0u) {
    mark = 0u;
    if (GOES_BACK == 0u && first == 0u) UNIT_MARK(unit) = 0u;
  }
  if (count == 0u) return;
  if (part < PARTS) load_part();
  if (GOES_BACK != 0u && first == 0u && part == 0u) odd = odd || begins_small();
  copy_values(RECUR_COOP_KEY_AREA);
  barrier();
  if (odd) mark = 1u;
  if (part < PARTS) {
    if (GOES_BACK != 0u) {
      store_queries();
    } else {
      store_keys();
    }
  }
  barrier();
  if (item == 0u) CHUNK_MARK(chunk) = mark;
  const uint steps = KEY_DIM / RECUR_COOP_STATE_KEYS;
  [[dont_unroll]] for (uint n = gl_SubgroupID; n < VALUE_DIM / MATRIX_M * steps; n += RECUR_COOP_SUBGROUPS) {
    const uint row = n / steps * MATRIX_M, column = n % steps * RECUR_COOP_STATE_KEYS;
    [[unroll]] for (uint i = 0u; i < KEY_TILES; ++i) sum[i] = COOPERATIVE_SUM(0.0);
    [[dont_unroll]] for (uint k = 0u; k < TOKENS; k += MATRIX_K)
      add_tiles(RECUR_COOP_KEY_AREA + k * VALUE_STRIDE, row, k * KEY_STRIDE, column);
    [[unroll]] for (uint i = 0u; i < KEY_TILES; ++i)
      coopMatStore(sum[i], scratch_floats, CHUNK_STATE(chunk) + row * KEY_DIM + column + i * MATRIX_N, KEY_DIM, kRowMajor);
  }
}
