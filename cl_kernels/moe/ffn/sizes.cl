// SPDX-License-Identifier: Apache-2.0
// What     How many rows each expert has, from where its rows begin
// Who      An item owns every so many experts.
// Memory   Two words of each expert.
// Numerics Integers that wrap; what is wrong with them the products say.
// Assumes  Nothing.
#include "lib/prelude.clh"
#include "operations/moe/ffn/args.h"

#define ARGS(name) (args.name)
#define GLOBAL_ID ((uint)get_global_id(0))
#define GLOBAL_COUNT ((uint)get_global_size(0))
#define START(e) starts[args.starts + (e)]
#define SIZE(e) space[args.sizes + (e)]

KERNEL void moe_sizes(const global int* restrict starts, global int* restrict space, const struct MoeFfnArgs args) {
#include "operations/moe/ffn/sizes.h"
}
