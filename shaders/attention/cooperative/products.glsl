// SPDX-License-Identifier: Apache-2.0
// Part of attention/cooperative/forward: matrices, their products, and how queries and outputs pass
// between matrices and buffers.
#ifndef TESSERA_ATTENTION_COOPERATIVE_PRODUCTS_GLSL
#define TESSERA_ATTENTION_COOPERATIVE_PRODUCTS_GLSL
#include "attention/cooperative/tiles.glsl"
#include "attention/cooperative/exact.glsl"

COOPERATIVE_LEFT query[ATTN_ROW_TILES * ATTN_HEAD_STEPS];
COOPERATIVE_SUM product[ATTN_ROW_TILES * ATTN_KEY_TILES];  // q k of a step
COOPERATIVE_SUM total[ATTN_ROW_TILES * ATTN_VALUE_TILES];  // outputs

// The sub-group's query rows from vector `first` on, as much as its own place holds.
void stage_queries(uint first) {
  for (uint at = lane; at < ROWS * ATTN_S_VECTORS; at += LANES) {
    const int row = own_row + int(at / ATTN_S_VECTORS);
    const uint vector = at % ATTN_S_VECTORS;
    memory[own + at / ATTN_S_VECTORS * ATTN_S_STRIDE + vector] =
        row < end_row
            ? load_query(q_base + uint(row) * CALL.q_stride_row, (first + vector) * 8u, HEAD_DIM)
            : uvec4(0u);
  }
}

void load_queries() {
  const uint steps = 8u * ATTN_S_VECTORS / MATRIX_K;  // of the features that this place holds at a time
  [[unroll]] for (uint d = 0u; d < ATTN_HEAD_STEPS; ++d) {
    if (d % steps == 0u) {
      subgroupBarrier();
      stage_queries(d * MATRIX_K / 8u);
      subgroupBarrier();
    }
    [[unroll]] for (uint r = 0u; r < ATTN_ROW_TILES; ++r)
        coopMatLoad(query[r * ATTN_HEAD_STEPS + d], memory,
                    own + r * MATRIX_M * ATTN_S_STRIDE + d % steps * MATRIX_K / 8u, ATTN_S_STRIDE, kRowMajor);
  }
}

COOPERATIVE_TAKE_PRODUCTS(multiply_keys, memory, query, product, ATTN_ROW_TILES, ATTN_KEY_TILES, ATTN_HEAD_STEPS,
                          ATTN_K_STRIDE)

COOPERATIVE_LEFT weights(uint r, uint j);  // of row tile r and key tile j

COOPERATIVE_ADD_PRODUCTS(add_weighted, memory, weights, total, ATTN_ROW_TILES, ATTN_VALUE_TILES, ATTN_KEY_STEPS,
                         ATTN_V_STRIDE)
void add_values(uint buffer_at) { add_weighted(buffer_at + ATTN_K_AREA); }

// BLOCK_K columns of the sub-group's output, from its own place. Bit n of the result: of row n, this
// lane wrote something that is not finite.
uint write_outputs(uint first_column) {
  uint odd = 0u;
  const uint base = CALL.o_offset + batch * CALL.o_stride_batch + head * CALL.o_stride_head;
  // Unrolled, NVK's compiler spills hundreds of registers.
  [[dont_unroll]] for (uint at = lane; at < ROWS * ATTN_S_VECTORS / 2u; at += LANES) {
    const uint line = at / (ATTN_S_VECTORS / 2u), group = at % (ATTN_S_VECTORS / 2u);
    const int row = own_row + int(line);
    const uint column = first_column + group * 8u;
    if (row >= end_row || column >= VALUE_DIM) continue;
    const uint from = own + line * ATTN_S_STRIDE + group * 2u;
    const vec4 low = uintBitsToFloat(memory[from]), high = uintBitsToFloat(memory[from + 1u]);
    if (has_nonfinite_float(memory[from]) || has_nonfinite_float(memory[from + 1u])) odd |= 1u << line;
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
  return odd;
}

void store_exact_row(int row) {
  const uint at = uint(row);
#if POLICY
  const ivec2 keys = ROW_ENTRY(RULE(rows) + batch * CORE(q_len) + at).xy;
#else
  const ivec2 keys = ivec2(max(row + CALL.band_low, 0), min(row + CALL.band_high + 1, int(CALL.kv_len)));
#endif
  const vec2 row_sum = exact_row(head, at, q_base + at * CALL.q_stride_row, keys.x, keys.y);
#if POLICY
  const vec2 all = policy_sinks(head, row_sum.x, row_sum.y);
  const float shrink = exp2(row_sum.x - all.x);
  const float norm = all.y == 0.0                                         ? 0.0
                     : (args.policy.features & POLICY_UNNORMALIZED) != 0u ? shrink
                                                                          : shrink / all.y;
#else
  const float norm = row_sum.y == 0.0 ? 0.0 : 1.0 / row_sum.y;
#endif
  const uint to = CALL.o_offset + batch * CALL.o_stride_batch + head * CALL.o_stride_head + at * CALL.o_stride_row;
  [[unroll]] for (uint c = 0u; c < EXACT_COLUMNS; ++c) {
    const uint column = lane + LANES * c;
    if (column < VALUE_DIM) o[to + column] = store_scalar(exact_sums[c] * norm);
  }
}

// By way of local memory, BLOCK_K columns at a time: only there is known which element is where.
void store_outputs() {
  uint odd = 0u;
  [[unroll]] for (uint n = 0u; n < ATTN_VALUE_TILES; ++n) {
    const uint tile = n % ATTN_KEY_TILES;
    [[unroll]] for (uint r = 0u; r < ATTN_ROW_TILES; ++r)
        coopMatStore(total[r * ATTN_VALUE_TILES + n], memory,
                     own + r * MATRIX_M * ATTN_S_STRIDE + tile * MATRIX_N / 4u, ATTN_S_STRIDE, kRowMajor);
    if (tile + 1u == ATTN_KEY_TILES || n + 1u == ATTN_VALUE_TILES) {
      subgroupBarrier();
      odd |= write_outputs((n - tile) * MATRIX_N);
      subgroupBarrier();
    }
  }
  if (!subgroupAny(odd != 0u)) return;
  for (uint n = 0u; n < ROWS; ++n)
    if (subgroupAny((odd >> n & 1u) != 0u)) store_exact_row(own_row + int(n));
}

#endif  // TESSERA_ATTENTION_COOPERATIVE_PRODUCTS_GLSL
