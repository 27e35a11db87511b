// SPDX-License-Identifier: Apache-2.0
// Geometry of attention/hopper/forward, from the names of forward.def. OpenCL C and the host read
// this same text: a host function has those names as unsigned locals.
#ifndef TESSERA_OPERATIONS_ATTENTION_HOPPER_H
#define TESSERA_OPERATIONS_ATTENTION_HOPPER_H

#define WARPGROUPS (BLOCK_Q / 64u)  // that multiply
#define HOPPER_ITEMS (128u * WARPGROUPS + 128u)

// Every matrix lies in blocks of 64 columns.
#define Q_BLOCK_BYTES (64u * 128u)  // of one warpgroup's queries or outputs
#define KEY_BLOCK_BYTES (BLOCK_K * 128u)
#define Q_BYTES (BLOCK_Q * HEAD_DIM * 2u)
#define K_BYTES (BLOCK_K * HEAD_DIM * 2u)
#define V_BYTES (BLOCK_K * VALUE_DIM * 2u)

// Local memory: [queries][outputs][keys of each stage][values of each stage][barriers][work].
// Warpgroups that stage outputs over queries do so over their own.
#define HOPPER_WIDEST (HEAD_DIM > VALUE_DIM ? HEAD_DIM : VALUE_DIM)
#define Q_STRIDE (128u * (SHARE_Q != 0u ? HOPPER_WIDEST : HEAD_DIM))  // from warpgroup to warpgroup
#define O_STRIDE (128u * (SHARE_Q != 0u ? HOPPER_WIDEST : VALUE_DIM))
#define O_START (SHARE_Q != 0u ? 0u : WARPGROUPS * Q_STRIDE)
#define K_START (O_START + WARPGROUPS * O_STRIDE)
#define V_START (K_START + STAGES * K_BYTES)
#define BARRIERS_START (V_START + STAGES * V_BYTES)
#define WORK_START (BARRIERS_START + 40u * STAGES + 56u)
#define HOPPER_LOCAL_BYTES (WORK_START + 2u * HOPPER_WORK_BYTES)

// What the copying warpgroup says about a piece of work, in words: its number, or one that does not
// exist after the last; with policies, the keys [first, end) that its rows see, and from word 4 on
// an Interval for each warpgroup.
#define HOPPER_WORK_BYTES 64u

// 32-bit registers of an item that multiplies: scores, weights in pairs, outputs; the rest is taken
// by rows, descriptors and addresses. What setmaxnreg gives is in forward.cl.
#define HOPPER_REGISTERS (BLOCK_K / 2u + BLOCK_K / 4u + VALUE_DIM / 2u)
#define HOPPER_MOST_REGISTERS (BLOCK_Q > 128u ? 128u : 200u)

#define HOPPER_VALID                                                                           \
  ((BLOCK_Q == 128u || BLOCK_Q == 192u) && WG_X == HOPPER_ITEMS &&                             \
   (BLOCK_K == 64u || BLOCK_K == 80u || BLOCK_K == 128u || BLOCK_K == 176u) && STAGES >= 2u && \
   STAGES <= 4u && TURNS <= 1u && OWN_OVERLAP <= 1u && LATE_RESCALE <= 1u && SHARE_Q <= 1u)

#endif  // TESSERA_OPERATIONS_ATTENTION_HOPPER_H
