// SPDX-License-Identifier: Apache-2.0
// What     OWN_KEYS=1: dk[j] = scale sum_i du[i,j] q[i], dv[j] = sum_i p[i,j] do[i], i over rows and heads that see key
//          j. OWN_KEYS=0: dq[i] = scale sum_j du[i,j] k[j], j over the keys that row i sees. p from scores anew and
//          log_sum_exp; du = p (do[i].v[j] - delta[i]) cap'.
// Who      Group (x, y, z): ATTN_BACK_OWN keys, key/value head, batch; or so many rows, the last first, head, batch.
//          Each sub-group ROWS of them.
// Memory   The other kind's rows of two operands once per group, the group's own once.
// Numerics Products of DTYPE, sums in float; rows or keys in order, the heads of a group one after the other; weights and
//          gradients of logits are rounded to DTYPE; one rounding of the result.
// Assumes  ATTN_BACK_VALID; full sub-groups of LANES; the device has the shape MATRIX_M x MATRIX_N x MATRIX_K for
//          sub-groups with float sums; enough groups in x; lengths below 2^30; ALIGNED is no lie; operands below 2^32
//          elements; delta (and the table of rows, POLICY=1) in scratch; weights are divided by their sum.
//
//            STEP rows of the other kind                    features
//          +------------------------------+        +----------------------+
//   ROWS   | two products: q.k and do.v   | to     | sums of weighted     | sub-group 0
//          | weights, gradients of logits | DTYPE  | rows of the other    |
//          |                              |        | kind                 |
//          +------------------------------+ ...... +----------------------+ sub-group 1
//
// Who holds which element of a matrix is the driver's secret. Loops over arrays of matrices have constant bounds and
// one level: NVIDIA's driver moves arrays to memory where it can't unroll.
//
// A row of the other kind that is not finite makes the sums of all rows of a group NaN whose tiles hold it. Such rows
// are computed again, without matrices, from the pairs that see one another alone.
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
#if OWN_KEYS
#define SCRATCH_BINDING 7
#define ROWS KEY_ROWS
#define STEP KEY_STEP
#define HELD KEYS_HELD
#else
#define SCRATCH_BINDING 6
#define ROWS QUERY_ROWS
#define STEP QUERY_STEP
#define HELD ROWS_HELD
#endif
#include "attention/cooperative/backward_products.glsl"
#include "attention/cooperative/exact_gradients.glsl"
#if REGISTERS
#include "attention/cooperative/backward_registers.glsl"
#else
#include "attention/cooperative/backward_local.glsl"
#endif
#include "attention/core/group_range.glsl"

// The rows of the other kind from `begin` on.
void walk(int begin) {
  if (begin >= step_end) return;
  uint stage = 0u;
  fetch(begin);
  store(begin, stage);
  barrier();
  for (int first = begin; first < step_end; first += int(STEP)) {
    const int next = first + int(STEP);
    if (PREFETCH != 0u && next < step_end) fetch(next);
    take_step(first, stage);
    if (BUFFERS == 1u) barrier();
    if (BUFFERS == 2u) stage = 1u - stage;
    if (next < step_end) {
      if (PREFETCH == 0u) fetch(next);
      store(next, stage);
    }
    barrier();
  }
}

#if OWN_KEYS
void main() {
  const uint kv_head = gl_WorkGroupID.y;
  own_first = int(gl_WorkGroupID.x * ATTN_BACK_OWN);
  begin_group();
  own_end = min(own_first + int(ATTN_BACK_OWN), kv_len);
  end_key = own_end;
  enter_head(kv_head * args.core.group);
  find_rows(own_first);
  const int begin = range[0];
  end_row = range[1];
  step_end = end_row;
  load_own();
  [[unroll]] for (uint i = 0u; i < ATTN_BACK_ROW_TILES * ATTN_BACK_VALUE_TILES; ++i) value_sum[i] = COOPERATIVE_SUM(0.0);
  for (uint n = 0u; n < args.core.group; ++n) {
    enter_head(kv_head * args.core.group + n);
    walk(begin);
  }
  const uint to_keys = args.gradient.dk_offset + batch * args.gradient.dk_stride_batch +
                       kv_head * args.gradient.dk_stride_head;
  const uint to_values = args.gradient.dv_offset + batch * args.gradient.dv_stride_batch +
                         kv_head * args.gradient.dv_stride_head;
  const uint odd = store_keys(to_keys, args.gradient.dk_stride_row, args.core.scale) |
                   store_values(to_values, args.gradient.dv_stride_row, 1.0);
  if (!subgroupAny(odd != 0u)) return;
  for (uint n = 0u; n < ROWS; ++n) {
    if (!subgroupAny((odd >> n & 1u) != 0u)) continue;
    const uint key = uint(own_row) + n;
    clear_exact();
    for (uint i = 0u; i < args.core.group; ++i) {
      enter_head(kv_head * args.core.group + i);
      add_exact_key(int(key), begin);
    }
    [[unroll]] for (uint c = 0u; c < EXACT_HEADS; ++c) {
      const uint column = lane + LANES * c;
      if (column < HEAD_DIM)
        dk[to_keys + key * args.gradient.dk_stride_row + column] = store_scalar(exact_heads[c] * args.core.scale);
    }
    [[unroll]] for (uint c = 0u; c < EXACT_VALUES; ++c) {
      const uint column = lane + LANES * c;
      if (column < VALUE_DIM)
        dv[to_values + key * args.gradient.dv_stride_row + column] = store_scalar(exact_values[c]);
    }
  }
}
#else
void main() {
  // Under a causal mask the last tiles take longest, so they start first.
  own_first = int((gl_NumWorkGroups.x - 1u - gl_WorkGroupID.x) * ATTN_BACK_OWN);
  begin_group();
  own_end = min(own_first + int(ATTN_BACK_OWN), q_len);
  end_row = own_end;
  enter_head(gl_WorkGroupID.y);
  find_keys(own_first);
  const int begin = range[0];
  end_key = range[1];
  step_end = end_key;
  load_own();
  load_own_numbers();
  walk(begin);
  const uint to = args.gradient.dq_offset + batch * args.gradient.dq_stride_batch + head * args.gradient.dq_stride_head;
  const uint odd = store_queries(to, args.gradient.dq_stride_row, args.core.scale);
  if (!subgroupAny(odd != 0u)) return;
  for (uint n = 0u; n < ROWS; ++n) {
    if (!subgroupAny((odd >> n & 1u) != 0u)) continue;
    const uint row = uint(own_row) + n;
    clear_exact();
    add_exact_query(int(row), begin);
    [[unroll]] for (uint c = 0u; c < EXACT_HEADS; ++c) {
      const uint column = lane + LANES * c;
      if (column < HEAD_DIM)
        dq[to + row * args.gradient.dq_stride_row + column] = store_scalar(exact_heads[c] * args.core.scale);
    }
  }
}
#endif
