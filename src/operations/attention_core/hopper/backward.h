// SPDX-License-Identifier: Apache-2.0
// Geometry of attention/hopper/backward, from the names of backward.def. OpenCL C and the
// host read this same text: a host function has those names as unsigned locals.
#ifndef TESSERA_OPERATIONS_ATTENTION_HOPPER_BACKWARD_H
#define TESSERA_OPERATIONS_ATTENTION_HOPPER_BACKWARD_H

#define BLOCK_K 128u  // keys of a work-group, 64 for each of two warpgroups
#define HOPPER_BACKWARD_ITEMS 384u

// Every matrix of 16-bit elements lies in blocks of 64 columns.
#define KEY_BLOCK_BYTES (BLOCK_K * 128u)
#define QUERY_BLOCK_BYTES (BLOCK_Q * 128u)
#define K_BYTES (BLOCK_K * DIM * 2u)   // of keys, of values
#define Q_BYTES (BLOCK_Q * DIM * 2u)   // of a step's queries, of its output gradients
#define ROW_BYTES (BLOCK_Q * 2u * 4u)  // of its log-sum-exps, then its deltas
#define DS_BYTES (BLOCK_Q * BLOCK_K * 2u)
#define DQ_FLOATS (BLOCK_Q * DIM)  // of a step's query gradients, half by each warpgroup
#define DQ_HALF_BYTES (DQ_FLOATS * 2u)

// Local memory: [keys][values][queries and gradients of each stage][ds][dq][rows][barriers].
#define V_START K_BYTES
#define Q_START (2u * K_BYTES)
#define DO_START (Q_START + STAGES * Q_BYTES)
#define DS_START (DO_START + STAGES * Q_BYTES)
#define DQ_START (DS_START + DS_BYTES)
#define ROWS_START (DQ_START + 2u * DQ_HALF_BYTES)
#define BARRIERS_START (ROWS_START + STAGES * ROW_BYTES)
#define HOPPER_BACKWARD_LOCAL_BYTES (BARRIERS_START + 32u * STAGES + 96u)

#define HOPPER_BACKWARD_VALID                                              \
  (((DIM == 64u && BLOCK_Q == 128u) || (DIM == 128u && BLOCK_Q == 64u)) && \
   WG_X == HOPPER_BACKWARD_ITEMS && STAGES >= 2u && STAGES <= 4u)

// Where the kernels' part of the scratch buffer has what, in bytes: maps of query, key, value and
// output gradient, a counter of work, then two counters for each tile of query rows, then its query
// gradients. 128 divides every start.
#define HOPPER_BACKWARD_COUNTER (4u * HOPPER_MAP_BYTES)
#define HOPPER_BACKWARD_COUNTERS (HOPPER_BACKWARD_COUNTER + 128u)

#endif  // TESSERA_OPERATIONS_ATTENTION_HOPPER_BACKWARD_H
