// SPDX-License-Identifier: Apache-2.0
// What     o[i] = sum_j p[i,j] v[j], p[i,:] = softmax of score(q[i] . k[j]), visible j; lse.
// Who      Group (x, y, z): ATTN_BLOCK_Q rows, the last first; head; batch. Each sub-group ROWS of them.
// Memory   k and v once per query tile, q once.
// Numerics Products of DTYPE, sums in float; base-2 softmax with running maximum; weights are
//          rounded to DTYPE for their product with v; one rounding of the output to DTYPE.
// Assumes  ATTN_COOPERATIVE_VALID; full sub-groups of LANES; the device has the shape MATRIX_M x
//          MATRIX_N x MATRIX_K for sub-groups with float sums; lengths below 2^30; ALIGNED is no
//          lie; operands below 2^32 elements.
//
// Who holds which element of a matrix is the driver's secret. Outputs stay in matrices for all
// steps; with REGISTERS=1 scores and weights do, too. Loops over arrays of matrices have constant
// bounds and one level: NVIDIA's driver moves arrays to memory where it can't unroll.
//
// A value that is not finite makes the outputs of all rows of a group NaN whose tiles hold its key.
// Such rows are computed again, without matrices, from the keys that they see alone.
//
// With PAGED=1 a group has the rows of an item of the work list, which are of one sequence.
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
#include "attention/cooperative/products.glsl"
#if REGISTERS
#include "attention/cooperative/registers.glsl"
#else
#include "attention/cooperative/local.glsl"
#endif

void main() {
  lane = gl_SubgroupInvocationID;
  item = gl_SubgroupID * LANES + lane;
  own = ATTN_OWN_BEGIN + gl_SubgroupID * ATTN_OWN_AREA;
  // Under a causal mask the last tiles take longest, so they start first.
#if PAGED
  const Tile tile = listed_tile(RULE(map), gl_NumWorkGroups.x - 1u - gl_WorkGroupID.x);
  if (tile.first >= tile.end) return;
  key_sequence = tile.sequence;
  first_row = int(tile.first);
  end_row = int(tile.end);
#else
  first_row = int((gl_NumWorkGroups.x - 1u - gl_WorkGroupID.x) * ATTN_BLOCK_Q);
  end_row = min(first_row + int(ATTN_BLOCK_Q), int(CALL.q_len));
#endif
  own_row = first_row + int(gl_SubgroupID * ROWS);
  head = gl_WorkGroupID.y;
  batch = gl_WorkGroupID.z;
  const uint kv_head = head / CALL.group;
  q_base = CALL.q_offset + batch * CALL.q_stride_batch + head * CALL.q_stride_head;
  k_base = CALL.k_offset + KEYS_OF(batch) * CALL.k_stride_batch + kv_head * CALL.k_stride_head;
  v_base = CALL.v_offset + KEYS_OF(batch) * CALL.v_stride_batch + kv_head * CALL.v_stride_head;
  inner = CAPPED != 0u ? CALL.scale / CALL.soft_cap : CALL.scale * LOG2_E;
  outer = CALL.soft_cap * LOG2_E;

  load_queries();
  barrier();
  [[unroll]] for (uint i = 0u; i < ATTN_ROW_TILES * ATTN_VALUE_TILES; ++i) total[i] = COOPERATIVE_SUM(0.0);
  attend();
  store_outputs();
}
