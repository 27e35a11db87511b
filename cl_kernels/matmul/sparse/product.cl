// SPDX-License-Identifier: Apache-2.0
// What     Products with a sparse matrix, or the gradient of its values, element by element.
// Who      An item has an element of a result at a time.
// Memory   Operands from a cache; blocks that are not listed cost nothing.
// Numerics Float, blocks and terms in order; one rounding.
// Assumes  Operands below 2^31 elements; the list is there.
#include "lib/typed.clh"
#include "operations/grouped_core/args.h"

#define UINT4 uint4
#define GLOBAL_ID_X ((uint)get_global_id(0))
#define GLOBAL_SIZE_X ((uint)get_global_size(0))
#define ARGS(name) (args.name)
#define LIST(i) list[i]
#define TABLE(i) ((const global uint*)list)[args.table + (i)]
#define LOAD_A(at) load_typed_steps(a, at, 1, 1, A_TYPE).s0
#define LOAD_B(at) load_typed_steps(b, at, 1, 1, B_TYPE).s0
#define STORE_RESULT(x, at) store_typed_steps((float4)(x, 0.0f, 0.0f, 0.0f), result, at, 1, 1, args.result_type)

KERNEL void sparse_product(const global void* restrict a, const global void* restrict b,
                           const global uint4* restrict list, global void* restrict result,
                           const struct GroupedArgs args) {
#include "operations/sparse_core/sparse/product.h"
}
