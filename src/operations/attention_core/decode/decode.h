// SPDX-License-Identifier: Apache-2.0
// Geometry of attention/decode, from WG_X, DTYPE and the names of decode.def. OpenCL C and the host
// read this same text: a host function has those names as unsigned locals and evaluates
// DECODE_VALID and DECODE_LOCAL_BYTES.
#ifndef TESSERA_OPERATIONS_ATTENTION_DECODE_H
#define TESSERA_OPERATIONS_ATTENTION_DECODE_H

#define DECODE_CEIL_DIV(a, b) (((a) + (b)-1u) / (b))
#define DECODE_MAX(a, b) ((a) > (b) ? (a) : (b))

// A part of a row is 16 bytes. Item (stream, lane) owns parts lane + LANES * n of every row that
// its stream takes, and of a step's keys those numbered stream + STREAMS * c.
#define PART (DTYPE == DTYPE_F32 ? 4u : 8u)  // features
#define HEAD_PARTS DECODE_CEIL_DIV(HEAD_DIM, (LANES * PART))
#define VALUE_PARTS DECODE_CEIL_DIV(VALUE_DIM, (LANES * PART))
#define VALUE_SPAN (VALUE_PARTS * LANES * PART)
#define STREAMS (WG_X / LANES)
#define KEYS (BLOCK_K / STREAMS)  // of a stream and a step

// Scores of a stream and a step. Each is the sum of one product per lane; those of a score are
// PRODUCT_STRIDE floats from those of the next, so that lanes that each read four of a score of
// their own, and the streams beside them, meet in no bank.
#define SCORES (ROWS * KEYS)
#define LANE_SCORES DECODE_CEIL_DIV(SCORES, LANES)
#define PRODUCT_STRIDE (LANES + 4u)
#define PRODUCTS (SCORES * PRODUCT_STRIDE + LANES)
#define WEIGHTS (SCORES + DECODE_CEIL_DIV(ROWS, 4u) * 4u)  // weights, and a factor for each row

// Local memory in floats, for each stream: {products, scores}, which become {sums} after the last
// step, and {weights, factors}.
#define DECODE_SHARED_FLOATS (STREAMS * DECODE_MAX(PRODUCTS + SCORES, ROWS * VALUE_SPAN))
#define DECODE_VECTORS DECODE_CEIL_DIV(DECODE_SHARED_FLOATS + STREAMS * WEIGHTS, 4u)
#define DECODE_LOCAL_BYTES (16u * DECODE_VECTORS)

#define DECODE_POWER_OF_2(n) (((n) & ((n)-1u)) == 0u)
// What the kernel takes for granted. LANES and ROWS must be positive, and WG_X at least LANES.
#define DECODE_VALID                                                                \
  (DECODE_POWER_OF_2(LANES) && LANES >= 4u && LANES <= 32u && WG_X % LANES == 0u && \
   BLOCK_K % STREAMS == 0u && KEYS > 0u && SCORES % 4u == 0u)

#endif  // TESSERA_OPERATIONS_ATTENTION_DECODE_H
