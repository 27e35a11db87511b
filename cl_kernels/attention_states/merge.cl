// SPDX-License-Identifier: Apache-2.0
// What     Rows of attention over parts of the keys to rows over all: output = sum of weights times outputs, and its
//          log-sum-exp
// Who      LANES items own a row at a time, an item every LANES-th vector of four of it.
// Memory   Each part's row once, its log-sum-exp by all items.
// Numerics Float; the largest log-sum-exp comes off before exp. Parts of weight 0 are not read.
// Assumes  Fewer than 2^31 rows; offsets and strides below 2^32.
#define ARGS(name) (args.name)
#include "attention_states/states.clh"

#define STORE_MERGED(x) merged[ROW_OF(ARGS(merged), 0)] = (x)
#define STORE_OUTPUT(x, i) store_column(x, output, ROW_OF(ARGS(result), 0) + (i), dim - (i))

KERNEL void merge_states(const global scalar* restrict outputs, const global float* restrict sums,
                         const global scalar* restrict other, const global float* restrict other_sum,
                         global scalar* restrict output, global float* restrict merged,
                         const struct MergeStatesArgs args) {
#include "operations/merge_attention_states/forward.h"
}
