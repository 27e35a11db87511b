// SPDX-License-Identifier: Apache-2.0
// Part of attention/cooperative/forward: operands, local memory, and tiles of keys and values on
// their way from the one to the other.
#ifndef TESSERA_ATTENTION_COOPERATIVE_TILES_GLSL
#define TESSERA_ATTENTION_COOPERATIVE_TILES_GLSL
#include "lib/prelude.glsl"
#include "operations/attention_core/cooperative/forward.def"
#include "operations/attention_core/cooperative/forward.h"
#include "lib/cooperative/elements.glsl"
#include "lib/cooperative/products.glsl"
#include "attention/core/forward_call.glsl"

layout(std430, binding = 0) readonly buffer Queries { scalar q[]; };
layout(std430, binding = 0) readonly buffer QueryVectors { uvec4 q8[]; };
layout(std430, binding = 1) readonly buffer Keys { scalar k[]; };
layout(std430, binding = 1) readonly buffer KeyVectors { uvec4 k8[]; };
layout(std430, binding = 2) readonly buffer Values { scalar v[]; };
layout(std430, binding = 2) readonly buffer ValueVectors { uvec4 v8[]; };
layout(std430, binding = 3) writeonly buffer Output { scalar o[]; };
layout(std430, binding = 3) writeonly buffer OutputVectors { uvec4 o8[]; };
layout(std430, binding = 4) writeonly buffer LogSumExp { float log_sum_exp[]; };
#if POLICY
layout(std430, binding = SCRATCH_BINDING) readonly buffer Map { uint map_words[]; };
#endif

// The running maximum of a row follows when it lags by more: a weight is at most exp2(LAG), which
// both types hold, and most steps rescale nothing. Outputs that are not normalised would show it.
#define LAG 8.0
shared uvec4 memory[ATTN_COOPERATIVE_VECTORS];

uint item, lane, own;         // own: this sub-group's place in memory
uint q_base, k_base, v_base;  // element 0 of this (batch, head)
int first_row, own_row;       // of the group, of the sub-group
// Rows from there on are never read: memory may hold NaN there, and 0 * NaN would show.
int end_row, end_key;
uint head, batch;
float inner, outer;  // a score in base 2 is inner x, or outer tanh(inner x) where it is capped
uvec4 copies[ATTN_K_COPIES + ATTN_V_COPIES];  // this item's share of the step on its way

#include "attention/core/key_rows.glsl"
#if PAGED
#include "attention/core/work.glsl"
#endif

COOPERATIVE_LOAD_EIGHT(load_query, q, q8)
COOPERATIVE_LOAD_EIGHT(load_key, k, k8)
COOPERATIVE_LOAD_EIGHT(load_value, v, v8)

#if POLICY
// A part of a value; zeros if it is not finite and no row of the group sees its key: else rows would be
// computed again for the sake of padding.
uvec4 without_unseen(uvec4 x, int key) {
  if ((RULE(features) & POLICY_HIDES) == 0u || !has_nonfinite(x)) return x;
  for (int row = first_row; row < end_row; ++row)
    if (policy_sees(policy_row(batch, head, uint(row)), key)) return x;
  return uvec4(0u);
}
#else
#define without_unseen(x, key) (x)
#endif

// fetch: this item's share of a step, to registers. store: from there to a buffer.
void fetch_keys(int first) {
  [[unroll]] for (uint n = 0u; n < ATTN_K_COPIES; ++n) {
    const uint at = item + n * WG_X;
    const int key = first + int(at / ATTN_K_VECTORS);
    copies[n] = key < end_key ? load_key(k_base + key_at(uint(key), CALL.k_stride_row, CALL.k_stride_batch),
                                         at % ATTN_K_VECTORS * 8u, HEAD_DIM)
                              : uvec4(0u);
  }
}

void fetch_values(int first) {
  [[unroll]] for (uint n = 0u; n < ATTN_V_COPIES; ++n) {
    const uint at = item + n * WG_X;
    const int key = first + int(at / ATTN_V_VECTORS);
    copies[ATTN_K_COPIES + n] = uvec4(0u);
    if (key < end_key)
      copies[ATTN_K_COPIES + n] = without_unseen(
          load_value(v_base + key_at(uint(key), CALL.v_stride_row, CALL.v_stride_batch),
                     at % ATTN_V_VECTORS * 8u, VALUE_DIM), key);
  }
}

void store_keys(uint buffer_at) {
  [[unroll]] for (uint n = 0u; n < ATTN_K_COPIES; ++n) {
    const uint at = item + n * WG_X;
    if (at < BLOCK_K * ATTN_K_VECTORS)
      memory[buffer_at + at / ATTN_K_VECTORS * ATTN_K_STRIDE + at % ATTN_K_VECTORS] = copies[n];
  }
}

void store_values(uint buffer_at) {
  [[unroll]] for (uint n = 0u; n < ATTN_V_COPIES; ++n) {
    const uint at = item + n * WG_X;
    if (at < BLOCK_K * ATTN_V_VECTORS)
      memory[buffer_at + ATTN_K_AREA + at / ATTN_V_VECTORS * ATTN_V_STRIDE + at % ATTN_V_VECTORS] =
          copies[ATTN_K_COPIES + n];
  }
}

// Keys [first, end) are seen by some row of the tile, [common_first, common_end) by all of them.
struct Interval {
  int first, end, common_first, common_end;
};

#if POLICY
Interval interval_of(int last_row) {
  Interval at = Interval(INDEX_MAX, 0, 0, INDEX_MAX);
  for (int row = first_row; row <= last_row; ++row) {
    const ivec4 entry = ROW_ENTRY(RULE(rows) + batch * CORE(q_len) + uint(row));
    at.common_first = max(at.common_first, entry.x);
    at.common_end = min(at.common_end, entry.y);
#if PAGED
    if (PAGED_HIDES(entry.w)) at.common_end = 0;
#endif
    if (entry.x >= entry.y) continue;
    at.first = min(at.first, entry.x);
    at.end = max(at.end, entry.y);
  }
  return at;
}

#else
Interval interval_of(int last_row) {
  return Interval(max(first_row + args.band_low, 0),
                  min(last_row + 1 + args.band_high, int(args.kv_len)), last_row + args.band_low,
                  min(first_row + 1 + args.band_high, int(args.kv_len)));
}
#endif

#endif  // TESSERA_ATTENTION_COOPERATIVE_TILES_GLSL
