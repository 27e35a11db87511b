// SPDX-License-Identifier: Apache-2.0
// What attention/tile/backward_keys and attention/tile/backward_queries share: products of tiles,
// and what a (row, key) pair adds to the gradients. The including shader has defined BLOCK_OWN, the
// rows of its group, BLOCK_STEP, the rows of the other kind that it takes at a time, and
// SCRATCH_BINDING, after which follow the policies (POLICY=1), then the arguments.
//
//              BLOCK_STEP rows of the other kind                 features
//            +----------------------------------+         +----------------------+
//  BLOCK_OWN | two products, added up by        | weights | sums of weighted     |
//  rows      | SLICE_D features: q.k and do.v   | to      | rows, added up by    |
//            | weights, gradients of logits     | shared  | SLICE_STEP rows      |
//            +----------------------------------+  memory +----------------------+
//  Item (lane_own, lane_step): rows lane_own + ATTN_LANES_OWN r of both, columns
//  4 (lane_step + ATTN_LANES_STEP g) + 0..3 of both.
#ifndef TESSERA_ATTENTION_TILE_BACKWARD_GLSL
#define TESSERA_ATTENTION_TILE_BACKWARD_GLSL
#include "lib/tiles/products.glsl"
#include "operations/attention_core/core/backward_args.h"
#include "operations/attention_core/core/score.h"
#include "operations/attention_core/tile/backward.def"
#include "operations/attention_core/tile/backward.h"
#if POLICY
BUFFER_ARGS(AttentionBackwardCall, SCRATCH_BINDING + 7);
#include "attention/core/policy.glsl"
#else
BUFFER_ARGS(AttentionBackwardCall, SCRATCH_BINDING + 1);
#endif

layout(std430, binding = 0) readonly buffer Queries { scalar q[]; };
layout(std430, binding = 0) readonly buffer QueryVectors { scalar4 q4[]; };
layout(std430, binding = 1) readonly buffer Keys { scalar k[]; };
layout(std430, binding = 1) readonly buffer KeyVectors { scalar4 k4[]; };
layout(std430, binding = 2) readonly buffer Values { scalar v[]; };
layout(std430, binding = 2) readonly buffer ValueVectors { scalar4 v4[]; };
layout(std430, binding = 3) readonly buffer OutputGradient { scalar g[]; };
layout(std430, binding = 3) readonly buffer OutputGradientVectors { scalar4 g4[]; };
layout(std430, binding = 4) readonly buffer LogSumExp { float log_sum_exp[]; };
layout(std430, binding = SCRATCH_BINDING) buffer Scratch { float scratch[]; };

shared vec4 memory[ATTN_TILE_BACKWARD_VECTORS];
// seen[c]: a row of this group sees row c of the step; seen[SOME_HIDDEN]: some pair is hidden.
#define SOME_HIDDEN BLOCK_STEP
shared uint seen[BLOCK_STEP + 1u];
shared int range[2];

uint item, lane_own, lane_step;
uint batch, head;
uint q_base, k_base, v_base, g_base, lse_base, delta_base;  // element 0 of this (batch, head)
// Rows from there on are never read: memory may hold NaN there.
int end_row, end_key;
float weight[ITEM_ROWS * ATTN_ITEM_STEPS];    // q.k, then p with dropout
float gradient[ITEM_ROWS * ATTN_ITEM_STEPS];  // do.v, then du

// Four features of a row; zero where there is none.
#define LOAD_ROWS(name, elements, vectors, base, stride, features, end) \
  vec4 name(int row, uint feature) {                                    \
    vec4 x = vec4(0.0);                                                 \
    if (row >= end) return x;                                           \
    const uint at = base + uint(row) * stride;                          \
    TILE_LOAD_FOUR(x, elements, vectors, at, feature, features)         \
    return x;                                                           \
  }
LOAD_ROWS(load_query, q, q4, q_base, args.core.q_stride_row, HEAD_DIM, end_row)
LOAD_ROWS(load_key, k, k4, k_base, args.core.k_stride_row, HEAD_DIM, end_key)
LOAD_ROWS(load_value, v, v4, v_base, args.core.v_stride_row, VALUE_DIM, end_key)
LOAD_ROWS(load_gradient, g, g4, g_base, args.gradient.do_stride_row, VALUE_DIM, end_row)

// stage: this item's share of a slice of both kinds of rows, to shared memory, by way of registers
// so that all loads are on their way at once. Rows 4 i to 4 i + 3 of the step are columns of one
// item. They go to rows i, i + BLOCK_STEP / 4, ... of the tile: so lanes read neighbouring rows.
//
// name(...): product[r][c] = own row r . row c of the step. Begins after a barrier, ends with one.
#define MULTIPLY(name, stage, add, product, load_own, load_step, slices)                                 \
  void stage(int own_first, int step_first, uint slice) {                                                \
    const uint copy_row = item / ATTN_SLICE_VECTORS, vector = item % ATTN_SLICE_VECTORS;                 \
    const uint feature = slice * SLICE_D + vector * 4u;                                                  \
    vec4 copies[ATTN_OWN_COPIES + ATTN_STEP_COPIES];                                                     \
    [[unroll]] for (uint n = 0u; n < ATTN_OWN_COPIES; ++n)                                               \
      copies[n] = load_own(own_first + int(copy_row + n * ATTN_COPY_ROWS), feature);                     \
    [[unroll]] for (uint n = 0u; n < ATTN_STEP_COPIES; ++n)                                              \
      copies[ATTN_OWN_COPIES + n] = load_step(step_first + int(copy_row + n * ATTN_COPY_ROWS), feature); \
    [[unroll]] for (uint n = 0u; n < ATTN_OWN_COPIES; ++n) {                                             \
      const uint row = copy_row + n * ATTN_COPY_ROWS;                                                    \
      if (row < BLOCK_OWN) memory[row * ATTN_SLICE_STRIDE + vector] = copies[n];                         \
    }                                                                                                    \
    [[unroll]] for (uint n = 0u; n < ATTN_STEP_COPIES; ++n) {                                            \
      const uint row = copy_row + n * ATTN_COPY_ROWS, slot = row % 4u * (BLOCK_STEP / 4u) + row / 4u;    \
      if (row < BLOCK_STEP)                                                                              \
        memory[ATTN_OWN_AREA + slot * ATTN_SLICE_STRIDE + vector] = copies[ATTN_OWN_COPIES + n];         \
    }                                                                                                    \
  }                                                                                                      \
  TILE_ADD_DOTS(add, memory, product, ITEM_ROWS, ATTN_ITEM_STEPS, ATTN_SLICE_VECTORS, ATTN_LANES_OWN,    \
                ATTN_SLICE_STRIDE, ATTN_LANES_STEP, ATTN_SLICE_STRIDE, BLOCK_STEP / 4u)                  \
  void name(int own_first, int step_first) {                                                             \
    [[unroll]] for (uint i = 0u; i < ITEM_ROWS * ATTN_ITEM_STEPS; ++i) product[i] = 0.0;                 \
    for (uint slice = 0u; slice < slices; ++slice) {                                                     \
      stage(own_first, step_first, slice);                                                               \
      barrier();                                                                                         \
      add(lane_own * ATTN_SLICE_STRIDE, ATTN_OWN_AREA + lane_step * ATTN_SLICE_STRIDE);                  \
      barrier();                                                                                         \
    }                                                                                                    \
  }

#define STORE_WEIGHTS(name, weights)                                                 \
  void name() {                                                                      \
    const uint to = lane_own * ATTN_WEIGHT_STRIDE + lane_step;                       \
    [[unroll]] for (uint r = 0u; r < ITEM_ROWS; ++r) {                               \
      [[unroll]] for (uint h = 0u; h < ATTN_ITEM_STEPS / 4u; ++h) {                  \
        const uint w = r * ATTN_ITEM_STEPS + h * 4u;                                 \
        memory[to + ATTN_LANES_OWN * r * ATTN_WEIGHT_STRIDE + ATTN_LANES_STEP * h] = \
            vec4(weights[w], weights[w + 1u], weights[w + 2u], weights[w + 3u]);     \
      }                                                                              \
    }                                                                                \
  }

// name(...): sum[r] += weight[r][c] row c of the step, for the weights in shared memory. A row that
// nobody in the group saw counts as zeros, for it may hold NaN; one that some saw reaches those that
// give it a weight. 16 ITEM_ROWS VECTORS multiply-adds for ITEM_ROWS + 4 VECTORS reads. Begins and
// ends with a barrier.
#define ADD_ROWS(name, sum, VECTORS, STRIDE, load, end)                                                \
  TILE_ADD_ROWS(name##_slice, tile_add_product, memory, sum, ITEM_ROWS, VECTORS, SLICE_STEP,           \
                ATTN_LANES_OWN, ATTN_WEIGHT_STRIDE, ATTN_LANES_STEP, STRIDE)                           \
  TILE_ADD_ROWS(name##_seen_slice, tile_add_seen_product, memory, sum, ITEM_ROWS, VECTORS,             \
                SLICE_STEP, ATTN_LANES_OWN, ATTN_WEIGHT_STRIDE, ATTN_LANES_STEP, STRIDE)               \
  void name(int step_first) {                                                                          \
    uint weight_at = lane_own * ATTN_WEIGHT_STRIDE;                                                    \
    const uint tile = ATTN_WEIGHT_AREA + lane_step;                                                    \
    const uint slices =                                                                                \
        min((uint(end - step_first) + SLICE_STEP - 1u) / SLICE_STEP, BLOCK_STEP / SLICE_STEP);         \
    barrier();                                                                                         \
    const bool every = seen[SOME_HIDDEN] == 0u;                                                        \
    for (uint slice = 0u; slice < slices; ++slice, weight_at += SLICE_STEP / 4u) {                     \
      vec4 copies[ATTN_ROW_COPIES * VECTORS];                                                          \
      [[unroll]] for (uint n = 0u; n < ATTN_ROW_COPIES * VECTORS; ++n) {                               \
        const uint row = lane_own + n / VECTORS * ATTN_LANES_OWN, column = slice * SLICE_STEP + row;   \
        copies[n] = vec4(0.0);                                                                         \
        if (row < SLICE_STEP && seen[column] != 0u)                                                    \
          copies[n] =                                                                                  \
              load(step_first + int(column), (lane_step + n % VECTORS * ATTN_LANES_STEP) * 4u);        \
      }                                                                                                \
      [[unroll]] for (uint n = 0u; n < ATTN_ROW_COPIES * VECTORS; ++n) {                               \
        const uint row = lane_own + n / VECTORS * ATTN_LANES_OWN;                                      \
        if (row < SLICE_STEP) memory[tile + row * STRIDE + n % VECTORS * ATTN_LANES_STEP] = copies[n]; \
      }                                                                                                \
      barrier();                                                                                       \
      if (every) {                                                                                     \
        name##_slice(weight_at, tile);                                                                 \
      } else {                                                                                         \
        name##_seen_slice(weight_at, tile);                                                            \
      }                                                                                                \
      barrier();                                                                                       \
    }                                                                                                  \
  }

// name(to, ...): the group's rows of a gradient, factor times the sums.
#define STORE_ROWS(name, elements, vectors, sum, VECTORS, FEATURES)                    \
  void name(uint to, uint stride, float factor, int first, int end) {                  \
    [[unroll]] for (uint r = 0u; r < ITEM_ROWS; ++r) {                                 \
      const int row = first + int(lane_own + ATTN_LANES_OWN * r);                      \
      if (row >= end) continue;                                                        \
      const uint at = to + uint(row) * stride;                                         \
      [[unroll]] for (uint i = 0u; i < VECTORS; ++i) {                                 \
        const uint column = (lane_step + ATTN_LANES_STEP * i) * 4u;                    \
        const vec4 x = sum[r * VECTORS + i] * factor;                                  \
        if (ALIGNED != 0u) {                                                           \
          if (column < FEATURES) vectors[(at + column) / 4u] = store_scalar4(x);       \
        } else {                                                                       \
          [[unroll]] for (uint f = 0u; f < 4u; ++f)                                    \
            if (column + f < FEATURES) elements[at + column + f] = store_scalar(x[f]); \
        }                                                                              \
      }                                                                                \
    }                                                                                  \
  }

// What a query row brings to all of its pairs.
struct Row {
#if POLICY
  RowPolicy policy;
  int peak;          // the key whose score is the shift, where weights aren't divided by their sum
  float peak_delta;  // what its gradient loses
  float less;        // weights are exp2(score - shift - less)
#else
  int first, end;  // the keys that it sees
#endif
  float shift;  // weights are exp2(score - shift)
  float delta;
};

// A row that saw nothing sees nothing here: its log_sum_exp is -inf.
Row load_row(int index) {
  Row row;
  const bool exists = index < int(args.core.q_len);
  float lse = 0.0;
  if (exists) lse = log_sum_exp[lse_base + uint(index)];
  const bool counts = exists && floatBitsToUint(lse) != 0xff800000u;
  row.delta = 0.0;
  if (counts) row.delta = scratch[delta_base + uint(index)];
#if POLICY
  row.shift = policy_exponent(lse);
  row.less = 0.0;
  row.policy = policy_row(batch, head, counts ? uint(index) : 0u);
  if (!counts) row.policy.end = row.policy.first;
  row.peak = -1;
  row.peak_delta = 0.0;
  const uint features = args.policy.features;
  if (counts && (features & (POLICY_UNNORMALIZED | POLICY_ADDS)) != 0u) {
    const ivec4 peak =
        policy_rows[args.gradient.peaks + (batch * args.core.heads + head) * args.core.q_len +
                    uint(index)];
    row.shift = intBitsToFloat(peak.x);
    row.less = intBitsToFloat(peak.z);
    row.peak = peak.y;
  }
  if ((features & POLICY_UNNORMALIZED) != 0u) {
    row.peak_delta = row.delta;
    row.delta = 0.0;
  }
#else
  row.shift = lse * LOG2_E;
  const int kv_len = int(args.core.kv_len);
  row.first = index + args.core.band_low;
  row.end = counts ? min(index + args.core.band_high + 1, kv_len) : 0;
#endif
  return row;
}

// A pair's weight in the gradient of the value, and the gradients of its scaled logit and bias.
struct Pair {
  bool seen;
  float weight, logit, bias;
};

// q_dot_k, weight_gradient = do.v
Pair pair_of(Row row, int key, float q_dot_k, float weight_gradient) {
  Pair pair = Pair(false, 0.0, 0.0, 0.0);
  const float scale = args.core.scale;
#if POLICY
  if (!policy_sees(row.policy, key)) return pair;
  const vec2 score = policy_score(row.policy, key, scale * q_dot_k);
  if (score.x == MASKED_SCORE) return pair;
  const float keep = policy_keep(row.policy, key);
#else
  if (key < row.first || key >= row.end) return pair;
  const float cap = args.core.soft_cap, keep = 1.0;
  vec2 score = vec2(scale * LOG2_E * q_dot_k, 1.0);
  if (cap > 0.0) {
    const float t = saturating_tanh(scale / cap * q_dot_k);
    score = vec2(cap * LOG2_E * t, 1.0 - t * t);
  }
#endif
#if POLICY
  const float p = exp2(policy_weight_exponent(score.x, row.shift, row.less));
#else
  const float p = exp2(score.x - row.shift);
#endif
  float gradient_here = p * (keep * weight_gradient - row.delta);
#if POLICY
  if (key == row.peak) gradient_here -= row.peak_delta;
#endif
  pair.seen = true;
  pair.weight = keep * p;
  pair.logit = gradient_here * score.y;
  pair.bias = pair.logit;
#if POLICY
  if ((args.policy.features & POLICY_BIAS_AFTER_CAP) != 0u) pair.bias = gradient_here;
#endif
  return pair;
}

// Before the loops over pairs. The text of the policies is long and shall not stand once per pair:
// with them the loops stay loops, over copies, so that the products themselves stay in registers.
// Unrolled, PoCL took 5 times as long to compile it.
#if POLICY
#define EACH_PAIR [[dont_unroll]]
#else
#define EACH_PAIR [[unroll]]
#endif
#define PAIRS (ITEM_ROWS * ATTN_ITEM_STEPS)

void place_item() {
  item = gl_LocalInvocationIndex;
  lane_own = item / ATTN_LANES_STEP;
  lane_step = item % ATTN_LANES_STEP;
  batch = gl_WorkGroupID.z;
}

// Where the rows of a query head, and of its keys and values, begin.
void enter_head(uint query_head) {
  head = query_head;
  q_base = args.core.q_offset + batch * args.core.q_stride_batch + head * args.core.q_stride_head;
  g_base = args.gradient.do_offset + batch * args.gradient.do_stride_batch +
           head * args.gradient.do_stride_head;
  lse_base =
      args.core.lse_offset + batch * args.core.lse_stride_batch + head * args.core.lse_stride_head;
  delta_base = args.gradient.delta + (batch * args.core.heads + head) * args.core.q_len;
  const uint kv_head = head / args.core.group;
  k_base =
      args.core.k_offset + batch * args.core.k_stride_batch + kv_head * args.core.k_stride_head;
  v_base =
      args.core.v_offset + batch * args.core.v_stride_batch + kv_head * args.core.v_stride_head;
}

// Rows or keys [range[0], range[1]) are all that this group has to do with; empty at first.
void clear_range() {
  if (item == 0u) {
    range[0] = INDEX_MAX;
    range[1] = 0;
  }
  barrier();
}

#endif  // TESSERA_ATTENTION_TILE_BACKWARD_GLSL
