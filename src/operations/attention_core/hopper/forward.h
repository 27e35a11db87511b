// SPDX-License-Identifier: Apache-2.0
// Geometry of attention/hopper/forward, from the names of forward.def. OpenCL C and the host read
// this same text: a host function has those names as unsigned locals.
#ifndef TESSERA_OPERATIONS_ATTENTION_HOPPER_H
#define TESSERA_OPERATIONS_ATTENTION_HOPPER_H

#define ATTN_WARPGROUPS (BLOCK_Q / 64u)  // that multiply
#define ATTN_HOPPER_ITEMS (128u * ATTN_WARPGROUPS + 128u)

// Every matrix lies in blocks of 64 columns.
#define ATTN_Q_BLOCK_BYTES (64u * 128u)  // of one warpgroup's queries or outputs
#define ATTN_KEY_BLOCK_BYTES (BLOCK_K * 128u)
#define ATTN_Q_BYTES (BLOCK_Q * HEAD_DIM * 2u)
#define ATTN_K_BYTES (BLOCK_K * HEAD_DIM * 2u)
#define ATTN_V_BYTES (BLOCK_K * VALUE_DIM * 2u)

// Local memory: [queries][outputs][keys of each stage][values of each stage][barriers][work].
// Warpgroups that stage outputs over queries do so over their own.
#define ATTN_HOPPER_WIDEST (HEAD_DIM > VALUE_DIM ? HEAD_DIM : VALUE_DIM)
#define ATTN_Q_STRIDE \
  (128u * (SHARE_Q != 0u ? ATTN_HOPPER_WIDEST : HEAD_DIM))  // from warpgroup to warpgroup
#define ATTN_O_STRIDE (128u * (SHARE_Q != 0u ? ATTN_HOPPER_WIDEST : VALUE_DIM))
#define ATTN_O_START (SHARE_Q != 0u ? 0u : ATTN_WARPGROUPS * ATTN_Q_STRIDE)
#define ATTN_K_START (ATTN_O_START + ATTN_WARPGROUPS * ATTN_O_STRIDE)
#define ATTN_V_START (ATTN_K_START + STAGES * ATTN_K_BYTES)
#define ATTN_BARRIERS_START (ATTN_V_START + STAGES * ATTN_V_BYTES)
#define ATTN_WORK_START (ATTN_BARRIERS_START + 40u * STAGES + 56u)
#define ATTN_HOPPER_LOCAL_BYTES (ATTN_WORK_START + 2u * ATTN_HOPPER_WORK_BYTES)

// What the copying warpgroup says about a piece of work, in words: its number, or one that does not
// exist after the last; with policies, the keys [first, end) that its rows see, and from word 4 on
// an Interval for each warpgroup; with keys in pages, from word 16 on {first row, end row, entry in
// the table of rows, head}.
#define ATTN_HOPPER_WORK_BYTES (64u + 16u * ATTN_HOPPER_PAGED)

// 32-bit registers of an item that multiplies: scores, weights in pairs, outputs; the rest is taken
// by rows, descriptors and addresses. What setmaxnreg gives is in forward.cl.
#define ATTN_HOPPER_REGISTERS (BLOCK_K / 2u + BLOCK_K / 4u + VALUE_DIM / 2u)
#define ATTN_HOPPER_MOST_REGISTERS (BLOCK_Q > 128u ? 128u : 200u)

#define ATTN_HOPPER_VALID                                                                      \
  ((BLOCK_Q == 128u || BLOCK_Q == 192u) && WG_X == ATTN_HOPPER_ITEMS &&                        \
   (BLOCK_K == 64u || BLOCK_K == 80u || BLOCK_K == 128u || BLOCK_K == 176u) && STAGES >= 2u && \
   BLOCK_K % BOX_KEYS == 0u && STAGES <= 4u && TURNS <= 1u && OWN_OVERLAP <= 1u &&             \
   LATE_RESCALE <= 1u && SHARE_Q <= 1u)

#endif  // TESSERA_OPERATIONS_ATTENTION_HOPPER_H
