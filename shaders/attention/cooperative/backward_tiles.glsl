// SPDX-License-Identifier: Apache-2.0
// Part of attention/cooperative/backward: operands, local memory, and rows of the other kind on their way from the one
// to the other.
#ifndef TESSERA_ATTENTION_COOPERATIVE_BACKWARD_TILES_GLSL
#define TESSERA_ATTENTION_COOPERATIVE_BACKWARD_TILES_GLSL
#include "lib/prelude.glsl"
#include "operations/attention_core/cooperative/backward.def"
#include "operations/attention_core/cooperative/backward.h"
#include "lib/cooperative/elements.glsl"
#include "lib/cooperative/products.glsl"
#include "attention/core/exact_weight.glsl"
#define PAIR_WEIGHT(exponent) exact_weight(exponent, 0.0)
#include "attention/core/gradients.glsl"

layout(std430, binding = 0) readonly buffer QueryVectors { uvec4 q8[]; };
layout(std430, binding = 1) readonly buffer KeyVectors { uvec4 k8[]; };
layout(std430, binding = 2) readonly buffer ValueVectors { uvec4 v8[]; };
layout(std430, binding = 3) readonly buffer OutputGradientVectors { uvec4 g8[]; };
#if OWN_KEYS
layout(std430, binding = 5) writeonly buffer KeyGradient { scalar dk[]; };
layout(std430, binding = 5) writeonly buffer KeyGradientVectors { uvec4 dk8[]; };
layout(std430, binding = 6) writeonly buffer ValueGradient { scalar dv[]; };
layout(std430, binding = 6) writeonly buffer ValueGradientVectors { uvec4 dv8[]; };
#else
layout(std430, binding = 5) writeonly buffer QueryGradient { scalar dq[]; };
layout(std430, binding = 5) writeonly buffer QueryGradientVectors { uvec4 dq8[]; };
#endif

shared uvec4 memory[ATTN_BACK_VECTORS];
// Of query rows, those of a step or the group's own: shifts, then deltas; and where the keys that they see begin and end.
shared float numbers[2u * ATTN_BACK_NUMBERS];
#if !REGISTERS
shared int intervals[2u * ATTN_BACK_NUMBERS];
#endif

uint lane, place;                 // place: this sub-group's own in memory
int own_first, own_row, own_end;  // of the group, of the sub-group, behind the group's last
int step_end;                     // behind the last row of the other kind
// Of the arguments, what each step asks for: from their buffer it comes too late.
uint head_stride, value_stride;  // of rows of the other kind
int q_len, kv_len, band_low, band_high;
#if POLICY
uint rows_base;  // of the table of rows
#endif
float inner, outer;  // a score in base 2 is inner x, or outer tanh(inner x) where it is capped
uvec4 copies[ATTN_BACK_HEAD_COPIES + ATTN_BACK_VALUE_COPIES];  // this item's share of the step on its way
// Where an item's share of a step lies behind the step's first vector, of aligned operands.
uint places[ATTN_BACK_HEAD_COPIES + ATTN_BACK_VALUE_COPIES];

COOPERATIVE_LOAD_EIGHT(load_query, q, q8)
COOPERATIVE_LOAD_EIGHT(load_key, k, k8)
COOPERATIVE_LOAD_EIGHT(load_value, v, v8)
COOPERATIVE_LOAD_EIGHT(load_gradient, g, g8)

// What a query row brings to its pairs, as it lies in memory: numbers are made of it later, for nothing that is under way
// shall be waited for.
struct RawRow {
  float log_sum_exp, delta;
#if POLICY
  ivec2 keys;
#endif
};
RawRow copied_row;

RawRow raw_row(int index) {
  const uint at = uint(min(index, q_len - 1));
#if POLICY
  return RawRow(log_sum_exp[lse_base + at], scratch[delta_base + at], policy_rows[rows_base + at].xy);
#else
  return RawRow(log_sum_exp[lse_base + at], scratch[delta_base + at]);
#endif
}

// Weights are exp2(score - shift). A row that saw nothing sees nothing here: its log_sum_exp is -inf.
struct Numbers {
  float shift, delta;
  ivec2 keys;
};
Numbers numbers_of(RawRow row, int index) {
  const bool counts = index < q_len && floatBitsToUint(row.log_sum_exp) != 0xff800000u;
#if POLICY
  const float shift = policy_exponent(row.log_sum_exp);
  const ivec2 keys = row.keys;
#else
  const float shift = row.log_sum_exp * LOG2_E;
  const ivec2 keys = ivec2(index + band_low, min(index + band_high + 1, kv_len));
#endif
  return Numbers(counts ? shift : -LOWEST_MAXIMUM, counts ? row.delta : 0.0, counts ? keys : ivec2(0));
}

#if POLICY
// A part of a row of the other kind; zeros if it is not finite and no row of the group needs it: else rows would be
// computed again for the sake of padding.
uvec4 without_unseen(uvec4 x, int at) {
  if (!has_nonfinite(x)) return x;
#if OWN_KEYS
  const RowPolicy policy = load_row(at).policy;
  for (int key = own_first; key < own_end; ++key)
    if (policy_sees(policy, key)) return x;
#else
  for (int row = own_first; row < own_end; ++row)
    if (policy_sees(load_row(row).policy, at)) return x;
#endif
  return uvec4(0u);
}
#else
#define without_unseen(x, at) (x)
#endif

#define FIND_PLACES(name, VECTORS, COPIES, to)                      \
  void name(uint stride) {                                          \
    [[unroll]] for (uint n = 0u; n < COPIES; ++n) {                 \
      const uint at = item + n * WG_X;                              \
      places[to + n] = at / VECTORS * (stride / 8u) + at % VECTORS; \
    }                                                               \
  }
// fetch: this item's share of the rows from `first` on, to registers; zeros from row `left` of them on, which is STEP
// for most.
#define FETCH(name, load, vectors, VECTORS, COPIES, to, features)                                            \
  void name(uint base, uint stride, int first, uint left) {                                                  \
    const uint begin = (base + uint(first) * stride) / 8u;                                                   \
    [[unroll]] for (uint n = 0u; n < COPIES; ++n) {                                                          \
      const uint at = item + n * WG_X, row = at / VECTORS, feature = at % VECTORS * 8u;                      \
      const bool mine = STEP * VECTORS % WG_X == 0u || row < STEP;                                           \
      uvec4 x = uvec4(0u);                                                                                   \
      if (mine && (left == STEP || row < left)) {                                                            \
        if (ALIGNED == 0u) {                                                                                 \
          x = load(base + uint(first + int(row)) * stride, feature, features);                               \
        } else if (features % (8u * VECTORS) == 0u || feature < features) {                                  \
          x = vectors[begin + places[to + n]];                                                               \
        }                                                                                                    \
        x = without_unseen(x, first + int(row));                                                             \
      }                                                                                                      \
      copies[to + n] = x;                                                                                    \
    }                                                                                                        \
  }
#define STORE(name, VECTORS, STRIDE, COPIES, from)                                                     \
  void name(uint to) {                                                                                 \
    [[unroll]] for (uint n = 0u; n < COPIES; ++n) {                                                    \
      const uint at = item + n * WG_X;                                                                 \
      if (at < STEP * VECTORS) memory[to + at / VECTORS * STRIDE + at % VECTORS] = copies[from + n];   \
    }                                                                                                  \
  }
FIND_PLACES(find_heads, ATTN_BACK_HEAD_VECTORS, ATTN_BACK_HEAD_COPIES, 0u)
FIND_PLACES(find_values, ATTN_BACK_VALUE_VECTORS, ATTN_BACK_VALUE_COPIES, ATTN_BACK_HEAD_COPIES)
STORE(store_heads, ATTN_BACK_HEAD_VECTORS, ATTN_BACK_HEAD_STRIDE, ATTN_BACK_HEAD_COPIES, 0u)
STORE(store_values_of_step, ATTN_BACK_VALUE_VECTORS, ATTN_BACK_VALUE_STRIDE, ATTN_BACK_VALUE_COPIES, ATTN_BACK_HEAD_COPIES)
#if OWN_KEYS
#define STEP_HEADS q_base
#define STEP_VALUES g_base
FETCH(fetch_heads, load_query, q8, ATTN_BACK_HEAD_VECTORS, ATTN_BACK_HEAD_COPIES, 0u, HEAD_DIM)
FETCH(fetch_values, load_gradient, g8, ATTN_BACK_VALUE_VECTORS, ATTN_BACK_VALUE_COPIES, ATTN_BACK_HEAD_COPIES, VALUE_DIM)
#else
#define STEP_HEADS k_base
#define STEP_VALUES v_base
FETCH(fetch_heads, load_key, k8, ATTN_BACK_HEAD_VECTORS, ATTN_BACK_HEAD_COPIES, 0u, HEAD_DIM)
FETCH(fetch_values, load_value, v8, ATTN_BACK_VALUE_VECTORS, ATTN_BACK_VALUE_COPIES, ATTN_BACK_HEAD_COPIES, VALUE_DIM)
#endif

void fetch(int first) {
  const uint left = uint(step_end - first);
  if (left >= STEP) {
    fetch_heads(STEP_HEADS, head_stride, first, STEP);
    fetch_values(STEP_VALUES, value_stride, first, STEP);
  } else {
    fetch_heads(STEP_HEADS, head_stride, first, left);
    fetch_values(STEP_VALUES, value_stride, first, left);
  }
#if OWN_KEYS
  if (item < STEP) copied_row = raw_row(first + int(item));
#endif
}

// Where the rows of a step lie.
uint heads_at(uint stage) { return ATTN_BACK_OWN_AREA + stage * ATTN_BACK_STAGE; }
uint values_at(uint stage) { return heads_at(stage) + STEP * ATTN_BACK_HEAD_STRIDE; }

// Number `at` of so many rows.
void store_numbers(uint to, uint rows, uint at, Numbers x) {
  numbers[to + at] = x.shift;
  numbers[to + rows + at] = x.delta;
#if !REGISTERS
  intervals[to + at] = x.keys.x;
  intervals[to + rows + at] = x.keys.y;
#endif
}

// Rows from `first` on.
void store(int first, uint stage) {
  store_heads(heads_at(stage));
  store_values_of_step(values_at(stage));
#if OWN_KEYS
  if (item < STEP) store_numbers(stage * 2u * STEP, STEP, item, numbers_of(copied_row, first + int(item)));
#endif
}

// What every group begins with.
void begin_group() {
  lane = gl_SubgroupInvocationID;
  item = gl_SubgroupID * LANES + lane;
  place = ATTN_BACK_PLACES_BEGIN + gl_SubgroupID * ATTN_BACK_PLACE;
  own_row = own_first + int(gl_SubgroupID * ROWS);
  batch = gl_WorkGroupID.z;
  q_len = int(args.core.q_len);
  kv_len = int(args.core.kv_len);
  band_low = args.core.band_low;
  band_high = args.core.band_high;
#if POLICY
  rows_base = args.policy.rows + batch * args.core.q_len;
#endif
  inner = CAPPED != 0u ? args.core.scale / args.core.soft_cap : args.core.scale * LOG2_E;
  outer = args.core.soft_cap * LOG2_E;
#if OWN_KEYS
  head_stride = args.core.q_stride_row;
  value_stride = args.gradient.do_stride_row;
#else
  head_stride = args.core.k_stride_row;
  value_stride = args.core.v_stride_row;
#endif
  if (ALIGNED != 0u) {
    find_heads(head_stride);
    find_values(value_stride);
  }
}

#endif  // TESSERA_ATTENTION_COOPERATIVE_BACKWARD_TILES_GLSL
