// SPDX-License-Identifier: Apache-2.0
// What     Cumulative sums over tokens, in either direction, of whole sequences or of chunks of them.
// Who      An item owns a head's feature of a chunk or, where sequences are packed, of a sequence.
// Memory   Input once, output once.
// Numerics Float, token after token; one rounding of each output.
// Assumes  Operands below 2^31 elements.
#include "lib/typed.clh"
#include "operations/cumsum/args.h"

#define ARGS(name) (args.name)
#define LOCAL_ID_X ((uint)get_local_id(0))
#define GROUP_ID_X ((uint)get_group_id(0))
#define GROUP_ID_Y ((uint)get_group_id(1))
#define GROUP_COUNT_Y ((uint)get_num_groups(1))
#define LOAD(at) load_typed_steps(input, at, 0, 1, args.in_type).x
#define STORE(x, at) store_typed_steps((float4)(x), result, at, 0, 1, args.out_type)
#define LOAD_BOUNDARY(i) boundaries[i]

KERNEL void cumsum_scan(const global void* restrict input, const global int* restrict boundaries,
                        global void* restrict result, const struct CumsumArgs args) {
#include "operations/cumsum/scan.h"
}
