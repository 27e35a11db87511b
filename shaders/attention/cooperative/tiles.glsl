// SPDX-License-Identifier: Apache-2.0
// Part of attention/cooperative/forward: operands, local memory, and tiles of keys and values on
// their way from the one to the other.
#ifndef TESSERA_ATTENTION_COOPERATIVE_TILES_GLSL
#define TESSERA_ATTENTION_COOPERATIVE_TILES_GLSL
#include "lib/prelude.glsl"
#include "operations/attention_core/args.h"
#include "operations/attention_core/cooperative/forward.def"
#include "operations/attention_core/cooperative/forward.h"
#define SCRATCH_BINDING 5
#if POLICY
#include "operations/attention_core/policy_args.h"
BUFFER_ARGS(AttentionCall, 12);
#include "attention/core/policy.glsl"
#define CALL args.core
#else
#include "operations/attention_core/score.h"
PUSH_ARGS(AttentionArgs);
#define CALL args
#endif

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

#define LEFT coopmat<ELEMENT, gl_ScopeSubgroup, MATRIX_M, MATRIX_K, gl_MatrixUseA>
#define RIGHT coopmat<ELEMENT, gl_ScopeSubgroup, MATRIX_K, MATRIX_N, gl_MatrixUseB>
#define SUM coopmat<float, gl_ScopeSubgroup, MATRIX_M, MATRIX_N, gl_MatrixUseAccumulator>
// The running maximum of a row follows when it lags by more: a weight is at most exp2(LAG), which
// both types hold, and most steps rescale nothing. Outputs that are not normalised would show it.
#define LAG 8.0
const int kRowMajor = gl_CooperativeMatrixLayoutRowMajor;
const int kColumnMajor = gl_CooperativeMatrixLayoutColumnMajor;

shared uvec4 memory[COOPERATIVE_VECTORS];

uint item, lane, own;         // own: this sub-group's place in memory
uint q_base, k_base, v_base;  // element 0 of this (batch, head)
int first_row, own_row;       // of the group, of the sub-group
// Rows from there on are never read: memory may hold NaN there, and 0 * NaN would show.
int end_row, end_key;
uint head, batch;
float inner, outer;  // a score in base 2 is inner x, or outer tanh(inner x) where it is capped
uvec4 copies[K_COPIES + V_COPIES];  // this item's share of the step on its way

// Eight features of a row; zero where there is none.
#define LOAD_FEATURES(name, elements, vectors)                                           \
  uvec4 name(uint at, uint feature, uint features) {                                     \
    uvec4 x = uvec4(0u);                                                                 \
    if (ALIGNED != 0u) {                                                                 \
      if (feature < features) x = vectors[(at + feature) / 8u];                          \
    } else {                                                                             \
      [[unroll]] for (uint i = 0u; i < 8u; ++i) if (feature + i < features) x[i / 2u] |= \
          uint(elements[at + feature + i]) << i % 2u * 16u;                              \
    }                                                                                    \
    return x;                                                                            \
  }
LOAD_FEATURES(load_query, q, q8)
LOAD_FEATURES(load_key, k, k8)
LOAD_FEATURES(load_value, v, v8)

// fetch: this item's share of a step, to registers. store: from there to a buffer.
void fetch_keys(int first) {
  [[unroll]] for (uint n = 0u; n < K_COPIES; ++n) {
    const uint at = item + n * WG_X;
    const int key = first + int(at / K_VECTORS);
    copies[n] = key < end_key ? load_key(k_base + uint(key) * CALL.k_stride_row,
                                         at % K_VECTORS * 8u, HEAD_DIM)
                              : uvec4(0u);
  }
}

void fetch_values(int first) {
  [[unroll]] for (uint n = 0u; n < V_COPIES; ++n) {
    const uint at = item + n * WG_X;
    const int key = first + int(at / V_VECTORS);
    copies[K_COPIES + n] = key < end_key ? load_value(v_base + uint(key) * CALL.v_stride_row,
                                                      at % V_VECTORS * 8u, VALUE_DIM)
                                         : uvec4(0u);
  }
}

void store_keys(uint buffer_at) {
  [[unroll]] for (uint n = 0u; n < K_COPIES; ++n) {
    const uint at = item + n * WG_X;
    if (at < BLOCK_K * K_VECTORS)
      memory[buffer_at + at / K_VECTORS * K_STRIDE + at % K_VECTORS] = copies[n];
  }
}

void store_values(uint buffer_at) {
  [[unroll]] for (uint n = 0u; n < V_COPIES; ++n) {
    const uint at = item + n * WG_X;
    if (at < BLOCK_K * V_VECTORS)
      memory[buffer_at + K_AREA + at / V_VECTORS * V_STRIDE + at % V_VECTORS] =
          copies[K_COPIES + n];
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
