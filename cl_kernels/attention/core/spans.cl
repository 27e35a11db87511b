// SPDX-License-Identifier: Apache-2.0
// What     The table of rows where each sequence has one query and the keys from sequence_start to sequence_end; and
//          biases of the first keys of each head as a bias of every key, in float: 0 behind them.
// Who      Item (x, 0): sequence x; item (x, y): key x of head y.
// Memory   16 bytes per sequence written; each bias read once, four bytes for each head and key written.
// Numerics Whole numbers, and floats as they are stored. What contradicts the operands counts as the nearest that does
//          not, and is raised.
// Assumes  Lengths below 2^30.
#include "lib/errors.clh"
#include "lib/typed.clh"
#include "operations/attention_core/core/spans_args.h"

KERNEL void attention_spans(global int4* restrict scratch, const global int* restrict starts,
                            const global int* restrict ends, volatile global uint* errors,
                            const global void* restrict biases, const struct AttentionSpansArgs a) {
  const uint n = get_global_id(0), head = get_group_id(1);
  if (head < a.heads && n < a.kv_len) {
    float bias = 0.0f;
    if (n < a.biases)
      bias = load_typed_steps(biases,
                              a.biases_offset + head * a.biases_stride_head + n * a.biases_stride,
                              1, 1, a.type)
                 .s0;
    ((global float*)scratch)[a.to + head * a.kv_len + n] = bias;
  }
  if (n >= a.batch || head > 0) return;
  const int start = starts[a.starts_offset + n * a.starts_stride],
            end = ends[a.ends_offset + n * a.ends_stride];
  const int begin = clamp(start, 0, (int)a.kv_len), last = clamp(end, begin, (int)a.kv_len);
  if (begin != start) raise_error(errors, a.errors, SPANS_BAD_START, n);
  if (last != end) raise_error(errors, a.errors, SPANS_BAD_END, n);
  const int first = a.band_low > INDEX_MIN ? max(begin, last - 1 + a.band_low) : begin;
  const int4 entry = {first, last, last - 1, 0}, nothing = {0, 0, 0, -1};
  scratch[a.rows + n] = first < last ? entry : nothing;
}
