// SPDX-License-Identifier: Apache-2.0
// What     Gives rows another scale, rounded to their type or to a code's; and writes the scale of keys and that of values
//          by turns. A launch has some of it.
// Who      An item owns an element and a scale.
// Memory   Every element read and written once, in place, too; 4 bytes a scale.
// Numerics Float: a division, a product and one rounding to nearest even; NaN stays NaN but in whole numbers, where it is 0.
// Assumes  Fewer than 2^32 elements, and offsets and strides below that.
#include "lib/bytes.clh"
#include "lib/typed.clh"
#include "operations/attention_core/fused_args.h"

#define GLOBAL_ID get_global_id(0)
#define ARGS(name) (a.name)
#define LOAD(at) load_typed_steps(from, at, 1, 1, a.type).s0
#define STORE(x, at) store_typed_steps((float4)((x), 0.0f, 0.0f, 0.0f), to, at, 1, 1, a.type)
#define PAIR(n) ((global float*)to)[n]

KERNEL void attention_fused(const global void* from, global void* to, const struct AttentionFusedArgs a) {
#include "operations/attention_core/core/fused.h"
}
