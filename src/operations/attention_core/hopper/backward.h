// SPDX-License-Identifier: Apache-2.0
// Geometry of attention/hopper/backward, from the names of backward.def. OpenCL C and the
// host read this same text: a host function has those names as unsigned locals.
#ifndef TESSERA_OPERATIONS_ATTENTION_HOPPER_BACKWARD_H
#define TESSERA_OPERATIONS_ATTENTION_HOPPER_BACKWARD_H

#define ATTN_BLOCK_K 128u  // keys of a work-group, 64 for each of two warpgroups
#define ATTN_HOPPER_BACKWARD_ITEMS 384u

// Every matrix of 16-bit elements lies in blocks of 64 columns.
#define ATTN_KEY_BLOCK_BYTES (ATTN_BLOCK_K * 128u)
#define ATTN_QUERY_BLOCK_BYTES (BLOCK_Q * 128u)
#define ATTN_K_BYTES (ATTN_BLOCK_K * DIM * 2u)  // of keys, of values
#define ATTN_Q_BYTES (BLOCK_Q * DIM * 2u)       // of a step's queries, of its output gradients
#define ATTN_ROW_BYTES (BLOCK_Q * 2u * 4u)      // of its log-sum-exps, then its deltas
#define ATTN_DS_BYTES (BLOCK_Q * ATTN_BLOCK_K * 2u)
#define ATTN_DQ_FLOATS (BLOCK_Q * DIM)  // of a step's query gradients, half by each warpgroup
#define ATTN_DQ_HALF_BYTES (ATTN_DQ_FLOATS * 2u)

// Local memory: [keys][values][queries and gradients of each stage][ds][dq][rows][barriers].
#define ATTN_V_START ATTN_K_BYTES
#define ATTN_Q_START (2u * ATTN_K_BYTES)
#define ATTN_DO_START (ATTN_Q_START + STAGES * ATTN_Q_BYTES)
#define ATTN_DS_START (ATTN_DO_START + STAGES * ATTN_Q_BYTES)
#define ATTN_DQ_START (ATTN_DS_START + ATTN_DS_BYTES)
#define ATTN_ROWS_START (ATTN_DQ_START + 2u * ATTN_DQ_HALF_BYTES)
#define ATTN_BARRIERS_START (ATTN_ROWS_START + STAGES * ATTN_ROW_BYTES)
#define ATTN_HOPPER_BACKWARD_LOCAL_BYTES (ATTN_BARRIERS_START + 32u * STAGES + 96u)

#define ATTN_HOPPER_BACKWARD_VALID                                         \
  (((DIM == 64u && BLOCK_Q == 128u) || (DIM == 128u && BLOCK_Q == 64u)) && \
   WG_X == ATTN_HOPPER_BACKWARD_ITEMS && STAGES >= 2u && STAGES <= 4u)

// Where the kernels' part of the scratch buffer has what, in bytes: maps of query, key, value and
// output gradient, a counter of work, then two counters for each tile of query rows, then its query
// gradients. 128 divides every start.
#define ATTN_HOPPER_BACKWARD_COUNTER (4u * HOPPER_MAP_BYTES)
#define ATTN_HOPPER_BACKWARD_COUNTERS (ATTN_HOPPER_BACKWARD_COUNTER + 128u)

#endif  // TESSERA_OPERATIONS_ATTENTION_HOPPER_BACKWARD_H
