// SPDX-License-Identifier: Apache-2.0
// Geometry of attention/decode, from WG_X, DTYPE, CODES and the names of decode.def. OpenCL C, GLSL
// and the host read this same text: a host function has those names as unsigned locals and
// evaluates ATTN_DECODE_VALID and ATTN_DECODE_LOCAL_BYTES.
#ifndef TESSERA_OPERATIONS_ATTENTION_DECODE_H
#define TESSERA_OPERATIONS_ATTENTION_DECODE_H

#define ATTN_DECODE_CEIL_DIV(a, b) (((a) + (b)-1u) / (b))
#define ATTN_DECODE_MAX(a, b) ((a) > (b) ? (a) : (b))

// A part of a row is 16 bytes, of codes 8 of them. Item (stream, lane) owns parts lane + LANES * n
// of every row that its stream takes, and of a step's keys those numbered stream + ATTN_STREAMS *
// c.
#define ATTN_PART (DTYPE == DTYPE_F32 && CODES == 0 ? 4u : 8u)  // features
#define ATTN_HEAD_PARTS ATTN_DECODE_CEIL_DIV(HEAD_DIM, (LANES * ATTN_PART))
#define ATTN_VALUE_PARTS ATTN_DECODE_CEIL_DIV(VALUE_DIM, (LANES * ATTN_PART))
#define ATTN_VALUE_SPAN (ATTN_VALUE_PARTS * LANES * ATTN_PART)
#define ATTN_STREAMS (WG_X / LANES)
#define ATTN_KEYS (BLOCK_K / ATTN_STREAMS)  // of a stream and a step

// Scores of a stream and a step. Each is the sum of one product per lane; those of a score are
// ATTN_PRODUCT_STRIDE floats from those of the next, so that lanes that each read four of a score
// of their own, and the streams beside them, meet in no bank.
#define ATTN_SCORES (ROWS * ATTN_KEYS)
#define ATTN_LANE_SCORES ATTN_DECODE_CEIL_DIV(ATTN_SCORES, LANES)
#define ATTN_PRODUCT_STRIDE (LANES + 4u)
#define ATTN_PRODUCTS (ATTN_SCORES * ATTN_PRODUCT_STRIDE + LANES)
#define ATTN_WEIGHTS \
  (ATTN_SCORES + ATTN_DECODE_CEIL_DIV(ROWS, 4u) * 4u)  // weights, and a factor for each row

// Local memory in floats, for each stream: {products, scores}, which become {sums} after the last
// step, and {weights, factors}.
#define ATTN_DECODE_SHARED_FLOATS \
  (ATTN_STREAMS * ATTN_DECODE_MAX(ATTN_PRODUCTS + ATTN_SCORES, ROWS * ATTN_VALUE_SPAN))
#define ATTN_DECODE_VECTORS \
  ATTN_DECODE_CEIL_DIV(ATTN_DECODE_SHARED_FLOATS + ATTN_STREAMS * ATTN_WEIGHTS, 4u)
#define ATTN_DECODE_LOCAL_BYTES (16u * ATTN_DECODE_VECTORS)

#define ATTN_DECODE_POWER_OF_2(n) (((n) & ((n)-1u)) == 0u)
// What the kernel takes for granted. LANES and ROWS must be positive, and WG_X at least LANES.
#define ATTN_DECODE_VALID                                                                \
  (ATTN_DECODE_POWER_OF_2(LANES) && LANES >= 4u && LANES <= 32u && WG_X % LANES == 0u && \
   BLOCK_K % ATTN_STREAMS == 0u && ATTN_KEYS > 0u && ATTN_SCORES % 4u == 0u)

#endif  // TESSERA_OPERATIONS_ATTENTION_DECODE_H
