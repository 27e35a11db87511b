// SPDX-License-Identifier: Apache-2.0
// What     o[i] = sum_j p[i,j] v[j], p[i,:] = softmax of score(q[i] . k[j]), visible j; lse.
// Who      Group (x, y, z): BLOCK_Q rows, the last first; head; batch. Each sub-group ROWS of them.
// Memory   k and v once per query tile, q once.
// Numerics Products of DTYPE, sums in float; base-2 softmax with running maximum; weights are
//          rounded to DTYPE for their product with v; one rounding of the output to DTYPE.
// Assumes  COOPERATIVE_VALID; full sub-groups of LANES; the device has the shape MATRIX_M x
//          MATRIX_N x MATRIX_K for sub-groups with float sums; lengths below 2^30; ALIGNED is no
//          lie; operands below 2^32 elements.
//
// Who holds which element of a matrix is the driver's secret. Outputs stay in matrices for all
// steps. With REGISTERS=1 scores and weights do, too: maxima of rows and the weights' change into a
// left operand are VK_NV_cooperative_matrix2's. With REGISTERS=0 they go through local memory,
// where a lane has whole rows or parts of them, and a factor per row comes back as a matrix that is
// loaded with a stride of 0: each of its columns is the same. Loops over arrays of matrices have
// constant bounds and one level: NVIDIA's driver moves arrays to memory where it can't unroll.
//
// A value that is not finite reaches all rows of a group if one of them sees its key, else none.
#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_KHR_shader_subgroup_vote : require
#include "abi/shared.h"
#if DTYPE == DTYPE_F16
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#define ELEMENT float16_t
#else
#extension GL_EXT_bfloat16 : require
#define ELEMENT bfloat16_t
#endif
#if REGISTERS
#extension GL_NV_cooperative_matrix2 : require
#endif
#include "lib/prelude.glsl"
#include "operations/attention/args.h"
#include "operations/attention/cooperative.def"
#include "operations/attention/cooperative.h"
#define SCRATCH_BINDING 5
#if POLICY
#include "operations/attention/policy_args.h"
BUFFER_ARGS(AttentionCall, 12);
#include "attention/policy.glsl"
#define CALL args.core
#else
#include "operations/attention/score.h"
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
shared float factors[BLOCK_Q];  // one number per row, on its way to a matrix

uint item, lane, own;         // own: this sub-group's place in memory
uint q_base, k_base, v_base;  // element 0 of this (batch, head)
// Rows from there on are never read: memory may hold NaN there, and 0 * NaN would show.
int end_row, end_key;
uint head, batch;
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
void fetch(int first) {
  [[unroll]] for (uint n = 0u; n < K_COPIES; ++n) {
    const uint at = item + n * WG_X;
    const int key = first + int(at / K_VECTORS);
    copies[n] =
        key < end_key
            ? load_key(k_base + uint(key) * CALL.k_stride_row, at % K_VECTORS * 8u, HEAD_DIM)
            : uvec4(0u);
  }
  [[unroll]] for (uint n = 0u; n < V_COPIES; ++n) {
    const uint at = item + n * WG_X;
    const int key = first + int(at / V_VECTORS);
    copies[K_COPIES + n] =
        key < end_key
            ? load_value(v_base + uint(key) * CALL.v_stride_row, at % V_VECTORS * 8u, VALUE_DIM)
            : uvec4(0u);
  }
}

void store(uint keys) {
  [[unroll]] for (uint n = 0u; n < K_COPIES; ++n) {
    const uint at = item + n * WG_X;
    if (at < BLOCK_K * K_VECTORS)
      memory[keys + at / K_VECTORS * K_STRIDE + at % K_VECTORS] = copies[n];
  }
  [[unroll]] for (uint n = 0u; n < V_COPIES; ++n) {
    const uint at = item + n * WG_X;
    if (at < BLOCK_K * V_VECTORS)
      memory[keys + K_AREA + at / V_VECTORS * V_STRIDE + at % V_VECTORS] = copies[K_COPIES + n];
  }
}

// The sub-group's query rows from vector `first` on, as much as its own place holds.
void stage_queries(int first_row, uint first) {
  for (uint at = lane; at < ROWS * S_VECTORS; at += LANES) {
    const int row = first_row + int(at / S_VECTORS);
    const uint vector = at % S_VECTORS;
    memory[own + at / S_VECTORS * S_STRIDE + vector] =
        row < end_row
            ? load_query(q_base + uint(row) * CALL.q_stride_row, (first + vector) * 8u, HEAD_DIM)
            : uvec4(0u);
  }
}

// BLOCK_K columns of the sub-group's output, from its own place.
void write_outputs(int first_row, uint first_column) {
  const uint base = CALL.o_offset + batch * CALL.o_stride_batch + head * CALL.o_stride_head;
  for (uint at = lane; at < ROWS * S_VECTORS / 2u; at += LANES) {
    const uint line = at / (S_VECTORS / 2u), group = at % (S_VECTORS / 2u);
    const int row = first_row + int(line);
    const uint column = first_column + group * 8u;
    if (row >= end_row || column >= VALUE_DIM) continue;
    const uint from = own + line * S_STRIDE + group * 2u;
    const vec4 low = uintBitsToFloat(memory[from]), high = uintBitsToFloat(memory[from + 1u]);
    const uint to = base + uint(row) * CALL.o_stride_row + column;
    if (ALIGNED != 0u) {
      o8[to / 8u] = uvec4(store_scalar4(low), store_scalar4(high));
    } else {
      [[unroll]] for (uint c = 0u; c < 4u; ++c) {
        if (column + c < VALUE_DIM) o[to + c] = store_scalar(low[c]);
        if (column + 4u + c < VALUE_DIM) o[to + 4u + c] = store_scalar(high[c]);
      }
    }
  }
}

#if DTYPE == DTYPE_F16
uint narrow_weights(vec2 x) { return packFloat2x16(f16vec2(x)); }
#else
uint narrow_weights(vec2 x) { return narrow(x.x) | narrow(x.y) << 16; }
#endif

// Keys [first, end) are seen by some row of the tile, [common_first, common_end) by all of them.
struct Interval {
  int first, end, common_first, common_end;
};

#if POLICY
Interval interval_of(int first_row, int last_row) {
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

// What the map of tiles says about the tile at key `first`.
uint tile_state(int row, int first) {
  if ((RULE(features) & POLICY_MAP) == 0u) return MAP_SOME;
  return map_words[RULE(map) + batch * RULE(map_stride_batch) +
                   head / RULE(mask.group) * RULE(map_stride_head) +
                   uint(row) / BLOCK_Q * RULE(map_stride_row) + uint(first) / BLOCK_K];
}
#else
Interval interval_of(int first_row, int last_row) {
  return Interval(max(first_row + args.band_low, 0),
                  min(last_row + 1 + args.band_high, int(args.kv_len)), last_row + args.band_low,
                  min(first_row + 1 + args.band_high, int(args.kv_len)));
}
#define MAP_SOME 1u
#define MAP_NOTHING 0u
uint tile_state(int row, int first) { return MAP_SOME; }
#endif

// The first step from `first` on that some row may see.
int next_step(int first_row, int first) {
  while (first < end_key && tile_state(first_row, first) == MAP_NOTHING) first += int(BLOCK_K);
  return first;
}

#if REGISTERS
float larger(const in float a, const in float b) { return max(a, b); }
float added(const in float a, const in float b) { return a + b; }
float hidden(const in uint row, const in uint column, const in float x, const in int first_row,
             const in int first_key) {
  const int key = first_key + int(column), away = key - first_row - int(row);
  return away >= CALL.band_low && away <= CALL.band_high && key < int(CALL.kv_len) ? x
                                                                                  : MASKED_SCORE;
}
#endif

void main() {
  lane = gl_SubgroupInvocationID;
  item = gl_SubgroupID * LANES + lane;
  own = OWN_BEGIN + gl_SubgroupID * OWN_AREA;
  // Under a causal mask the last tiles take longest, so they start first.
  const int first_row = int((gl_NumWorkGroups.x - 1u - gl_WorkGroupID.x) * BLOCK_Q);
  const int own_row = first_row + int(gl_SubgroupID * ROWS);
  end_row = min(first_row + int(BLOCK_Q), int(CALL.q_len));
  head = gl_WorkGroupID.y;
  batch = gl_WorkGroupID.z;
  const uint kv_head = head / CALL.group;
  const Interval at = interval_of(first_row, end_row - 1);
  end_key = at.end;
  q_base = CALL.q_offset + batch * CALL.q_stride_batch + head * CALL.q_stride_head;
  k_base = CALL.k_offset + batch * CALL.k_stride_batch + kv_head * CALL.k_stride_head;
  v_base = CALL.v_offset + batch * CALL.v_stride_batch + kv_head * CALL.v_stride_head;
  const float inner = CAPPED != 0u ? CALL.scale / CALL.soft_cap : CALL.scale * LOG2_E;
  const float outer = CALL.soft_cap * LOG2_E;

  LEFT query[ROW_TILES * HEAD_STEPS];
  const uint steps = 8u * S_VECTORS / MATRIX_K;  // of the features that this place holds at a time
  [[unroll]] for (uint d = 0u; d < HEAD_STEPS; ++d) {
    if (d % steps == 0u) {
      subgroupBarrier();
      stage_queries(own_row, d * MATRIX_K / 8u);
      subgroupBarrier();
    }
    [[unroll]] for (uint r = 0u; r < ROW_TILES; ++r)
        coopMatLoad(query[r * HEAD_STEPS + d], memory,
                    own + r * MATRIX_M * S_STRIDE + d % steps * MATRIX_K / 8u, S_STRIDE, kRowMajor);
  }
  barrier();

  SUM total[ROW_TILES * VALUE_TILES];
  [[unroll]] for (uint i = 0u; i < ROW_TILES * VALUE_TILES; ++i) total[i] = SUM(0.0);
#if REGISTERS
  SUM row_max[ROW_TILES], row_sum[ROW_TILES];
  [[unroll]] for (uint r = 0u; r < ROW_TILES; ++r) {
    row_max[r] = SUM(LOWEST_MAXIMUM);
    row_sum[r] = SUM(0.0);
  }
#else
  // Rows row_at + LANES i of the sub-group, keys 8 (part + PARTS g) + 0..7 of the step.
  const uint row_at = lane % ROWS, part = lane / ROWS;
  float row_max[ITEM_ROWS], row_sum[ITEM_ROWS];
  [[unroll]] for (uint i = 0u; i < ITEM_ROWS; ++i) {
    row_max[i] = LOWEST_MAXIMUM;
    row_sum[i] = 0.0;
  }
#endif

  uint buffer_at = 0u;
  int first = next_step(first_row, at.first / int(BLOCK_K) * int(BLOCK_K));
  if (first < end_key) {
    fetch(first);
    store(buffer_at);
  }
  barrier();
  while (first < end_key) {
    const int next = next_step(first_row, first + int(BLOCK_K));
    if (PREFETCH != 0u && next < end_key) fetch(next);

    SUM score[ROW_TILES * KEY_TILES];
    [[unroll]] for (uint i = 0u; i < ROW_TILES * KEY_TILES; ++i) score[i] = SUM(0.0);
    [[unroll]] for (uint d = 0u; d < HEAD_STEPS; ++d) {
      [[unroll]] for (uint n = 0u; n < KEY_TILES; ++n) {
        RIGHT key_part;
        coopMatLoad(key_part, memory, buffer_at + n * MATRIX_N * K_STRIDE + d * MATRIX_K / 8u,
                    K_STRIDE, kColumnMajor);
        [[unroll]] for (uint r = 0u; r < ROW_TILES; ++r) score[r * KEY_TILES + n] =
            coopMatMulAdd(query[r * HEAD_STEPS + d], key_part, score[r * KEY_TILES + n]);
      }
    }

    const bool all_visible = first >= at.common_first && first + int(BLOCK_K) <= at.common_end;
#if REGISTERS
    [[unroll]] for (uint r = 0u; r < ROW_TILES; ++r) {
      SUM top = row_max[r];
      [[unroll]] for (uint n = 0u; n < KEY_TILES; ++n) {
        SUM part = score[r * KEY_TILES + n] * inner;
        if (CAPPED != 0u)
          [[unroll]] for (int i = 0; i < part.length(); ++i) part[i] =
              outer * saturating_tanh(part[i]);
        if (!all_visible)
          coopMatPerElementNV(part, part, hidden, own_row + int(r * MATRIX_M),
                              first + int(n * MATRIX_N));
        [[unroll]] for (int i = 0; i < part.length(); ++i) top[i] = max(top[i], part[i]);
        score[r * KEY_TILES + n] = part;
      }
      coopMatReduceNV(top, top, gl_CooperativeMatrixReduceRowNV, larger);
      SUM rescale;
      bool rose = false;
      [[unroll]] for (int i = 0; i < top.length(); ++i) {
        if (top[i] <= row_max[r][i] + LAG) top[i] = row_max[r][i];
        rose = rose || top[i] > row_max[r][i];
        rescale[i] = exp2(row_max[r][i] - top[i]);
      }
      row_max[r] = top;
      if (subgroupAny(rose)) {
        row_sum[r] = row_sum[r] * rescale;
        [[unroll]] for (uint n = 0u; n < VALUE_TILES; ++n) total[r * VALUE_TILES + n] =
            total[r * VALUE_TILES + n] * rescale;
      }
      [[unroll]] for (uint n = 0u; n < KEY_TILES; ++n) {
        SUM weight;
        [[unroll]] for (int i = 0; i < weight.length(); ++i) weight[i] =
            exp2(score[r * KEY_TILES + n][i] - top[i]);
        row_sum[r] = row_sum[r] + weight;
#if DTYPE == DTYPE_BF16
        // Drivers may cut off bits when they narrow.
        [[unroll]] for (int i = 0; i < weight.length(); ++i) weight[i] =
            uintBitsToFloat(narrow(weight[i]) << 16);
#endif
        score[r * KEY_TILES + n] = weight;
      }
    }
#else
    [[unroll]] for (uint r = 0u; r < ROW_TILES; ++r) {
      [[unroll]] for (uint n = 0u; n < KEY_TILES; ++n)
          coopMatStore(score[r * KEY_TILES + n], memory,
                       own + r * MATRIX_M * S_STRIDE + n * MATRIX_N / 4u, S_STRIDE, kRowMajor);
    }
    subgroupBarrier();
    bool rose = false;
    vec4 part_score[ITEM_ROWS * ITEM_GROUPS * 2u];
    [[unroll]] for (uint i = 0u; i < ITEM_ROWS; ++i) {
      const uint line = own + (row_at + LANES * i) * S_STRIDE;
      const int row = own_row + int(row_at + LANES * i);
      float top = row_max[i];
#if POLICY
      const uint features = args.policy.features;
      const bool hides =
          (features & POLICY_HIDES) != 0u && tile_state(first_row, first) != MAP_ALL;
      const bool plain = all_visible && !hides && (features & POLICY_ADDS) == 0u && CAPPED == 0u;
      RowPolicy policy;
      if (row < end_row) policy = policy_row(batch, head, uint(row));
#endif
      [[unroll]] for (uint g = 0u; g < ITEM_GROUPS * 2u; ++g) {
        const uint column = (part + PARTS * (g / 2u)) * 8u + g % 2u * 4u;
        vec4 x = uintBitsToFloat(memory[line + column / 4u]);
#if POLICY
        if (plain) {
          x *= inner;
        } else {
          [[unroll]] for (int c = 0; c < 4; ++c) {
            const int key = first + int(column) + c;
            x[c] = row < end_row && policy_sees(policy, key)
                       ? policy_score(policy, key, x[c] * CALL.scale).x
                       : MASKED_SCORE;
          }
        }
#else
        x *= inner;
        if (CAPPED != 0u)
          [[unroll]] for (int c = 0; c < 4; ++c) x[c] = outer * saturating_tanh(x[c]);
        if (!all_visible) {
          [[unroll]] for (int c = 0; c < 4; ++c) {
            const int key = first + int(column) + c, away = key - row;
            if (away < args.band_low || away > args.band_high || key >= int(args.kv_len))
              x[c] = MASKED_SCORE;
          }
        }
#endif
        top = max(top, max(max(x.x, x.y), max(x.z, x.w)));
        part_score[i * ITEM_GROUPS * 2u + g] = x;
      }
      [[unroll]] for (uint away = ROWS; away < LANES; away *= 2u) top =
          max(top, subgroupShuffleXor(top, away));
#if POLICY
      if ((features & POLICY_UNNORMALIZED) == 0u)
#endif
        if (top <= row_max[i] + LAG) top = row_max[i];
      const float rescale = exp2(row_max[i] - top);
      rose = rose || top > row_max[i];
      row_max[i] = top;
      row_sum[i] *= rescale;
      if (part == 0u) factors[gl_SubgroupID * ROWS + row_at + LANES * i] = rescale;
    }
    // Weights lie where scores did: all lanes must have read theirs.
    subgroupBarrier();
    [[unroll]] for (uint i = 0u; i < ITEM_ROWS; ++i) {
      const uint line = own + (row_at + LANES * i) * S_STRIDE;
      [[unroll]] for (uint g = 0u; g < ITEM_GROUPS; ++g) {
        const uint from = (i * ITEM_GROUPS + g) * 2u;
        vec4 low = exp2(part_score[from] - row_max[i]);
        vec4 high = exp2(part_score[from + 1u] - row_max[i]);
        row_sum[i] += ((low.x + low.y) + (low.z + low.w)) + ((high.x + high.y) + (high.z + high.w));
#if POLICY
        const uint row = uint(own_row) + row_at + LANES * i;
        if ((args.policy.features & POLICY_DROPOUT) != 0u && int(row) < end_row) {
          const RowPolicy policy = policy_row(batch, head, row);
          const int key = first + int((part + PARTS * g) * 8u);
          [[unroll]] for (int c = 0; c < 4; ++c) {
            low[c] *= policy_keep(policy, key + c);
            high[c] *= policy_keep(policy, key + 4 + c);
          }
        }
#endif
        memory[line + part + PARTS * g] = uvec4(narrow_weights(low.xy), narrow_weights(low.zw),
                                                narrow_weights(high.xy), narrow_weights(high.zw));
      }
    }
    subgroupBarrier();
    if (subgroupAny(rose)) {
      [[unroll]] for (uint r = 0u; r < ROW_TILES; ++r) {
        SUM rescale;
        coopMatLoad(rescale, factors, gl_SubgroupID * ROWS + r * MATRIX_M, 0u, kColumnMajor);
        [[unroll]] for (uint n = 0u; n < VALUE_TILES; ++n) total[r * VALUE_TILES + n] =
            total[r * VALUE_TILES + n] * rescale;
      }
    }
#endif

    [[unroll]] for (uint j = 0u; j < KEY_STEPS; ++j) {
      LEFT weight[ROW_TILES];
      [[unroll]] for (uint r = 0u; r < ROW_TILES; ++r) {
#if REGISTERS
        weight[r] = LEFT(score[r * KEY_TILES + j]);
#else
        coopMatLoad(weight[r], memory, own + r * MATRIX_M * S_STRIDE + j * MATRIX_K / 8u, S_STRIDE,
                    kRowMajor);
#endif
      }
      [[unroll]] for (uint n = 0u; n < VALUE_TILES; ++n) {
        RIGHT value_part;
        coopMatLoad(value_part, memory,
                    buffer_at + K_AREA + j * MATRIX_K * V_STRIDE + n * MATRIX_N / 8u, V_STRIDE,
                    kRowMajor);
        [[unroll]] for (uint r = 0u; r < ROW_TILES; ++r) total[r * VALUE_TILES + n] =
            coopMatMulAdd(weight[r], value_part, total[r * VALUE_TILES + n]);
      }
    }

    if (BUFFERS == 1u) barrier();
    if (BUFFERS == 2u) buffer_at = K_AREA + V_AREA - buffer_at;
    if (next < end_key) {
      if (PREFETCH == 0u) fetch(next);
      store(buffer_at);
    }
    barrier();
    first = next;
  }

  // A row that saw nothing has row_sum 0; a NaN in row_sum must show in both results.
#if REGISTERS
  [[unroll]] for (uint r = 0u; r < ROW_TILES; ++r) {
    SUM sum, norm, lse;
    coopMatReduceNV(sum, row_sum[r], gl_CooperativeMatrixReduceRowNV, added);
    [[unroll]] for (int i = 0; i < sum.length(); ++i) {
      norm[i] = sum[i] == 0.0 ? 0.0 : 1.0 / sum[i];
      lse[i] = sum[i] == 0.0 ? uintBitsToFloat(0xff800000u) : (row_max[r][i] + log2(sum[i])) * LN_2;
    }
    [[unroll]] for (uint n = 0u; n < VALUE_TILES; ++n) total[r * VALUE_TILES + n] =
        total[r * VALUE_TILES + n] * norm;
    if (CALL.write_lse != 0u)
      coopMatStore(lse, memory, own + r * MATRIX_M * S_STRIDE, S_STRIDE, kRowMajor);
  }
  subgroupBarrier();
  if (CALL.write_lse != 0u) {
    for (uint at = lane; at < ROWS; at += LANES) {
      const int row = own_row + int(at);
      if (row < end_row)
        log_sum_exp[CALL.lse_offset + batch * CALL.lse_stride_batch + head * CALL.lse_stride_head +
                    uint(row)] = uintBitsToFloat(memory[own + at * S_STRIDE].x);
    }
  }
  subgroupBarrier();
#else
  [[unroll]] for (uint i = 0u; i < ITEM_ROWS; ++i) {
    [[unroll]] for (uint away = ROWS; away < LANES; away *= 2u) row_sum[i] +=
        subgroupShuffleXor(row_sum[i], away);
    const int row = own_row + int(row_at + LANES * i);
#if POLICY
    const vec2 all = policy_sinks(head, row_max[i], row_sum[i]);
    const float shrink = exp2(row_max[i] - all.x);
    const float norm = all.y == 0.0                                         ? 0.0
                       : (args.policy.features & POLICY_UNNORMALIZED) != 0u ? shrink
                                                                            : shrink / all.y;
#else
    const vec2 all = vec2(row_max[i], row_sum[i]);
    const float norm = all.y == 0.0 ? 0.0 : 1.0 / all.y;
#endif
    if (part != 0u) continue;
    factors[gl_SubgroupID * ROWS + row_at + LANES * i] = norm;
    if (CALL.write_lse != 0u && row < end_row)
      log_sum_exp[CALL.lse_offset + batch * CALL.lse_stride_batch + head * CALL.lse_stride_head +
                  uint(row)] =
          all.y == 0.0 ? uintBitsToFloat(0xff800000u) : (all.x + log2(all.y)) * LN_2;
  }
  subgroupBarrier();
  [[unroll]] for (uint r = 0u; r < ROW_TILES; ++r) {
    SUM norm;
    coopMatLoad(norm, factors, gl_SubgroupID * ROWS + r * MATRIX_M, 0u, kColumnMajor);
    [[unroll]] for (uint n = 0u; n < VALUE_TILES; ++n) total[r * VALUE_TILES + n] =
        total[r * VALUE_TILES + n] * norm;
  }
#endif

  // By way of local memory, BLOCK_K columns at a time: only there is known which element is where.
  [[unroll]] for (uint n = 0u; n < VALUE_TILES; ++n) {
    const uint tile = n % KEY_TILES;
    [[unroll]] for (uint r = 0u; r < ROW_TILES; ++r)
        coopMatStore(total[r * VALUE_TILES + n], memory,
                     own + r * MATRIX_M * S_STRIDE + tile * MATRIX_N / 4u, S_STRIDE, kRowMajor);
    if (tile + 1u == KEY_TILES || n + 1u == VALUE_TILES) {
      subgroupBarrier();
      write_outputs(own_row, (n - tile) * MATRIX_N);
      subgroupBarrier();
    }
  }
}
