// SPDX-License-Identifier: Apache-2.0
// What     Products of groups of rows with a matrix each, of groups of terms, or of blocks of terms that a table places.
// Who      A work-group owns a tile of ROWS LANES_M by COLUMNS LANES_N of an item of the work list; it steps over tiles.
// Memory   Squares of 4 x 4 through registers, which turn them where needed, to local memory; the next step's are on
//          their way while the sums of this one are taken. Nothing of other groups is read.
// Numerics Float, terms in order, of 8 bits by blocks; whole numbers exact; one rounding.
// Assumes  Operands below 2^31 elements; the work list is there.
#include "lib/tiles/products.clh"
#include "lib/stored.clh"
#include "operations/grouped_core/args.h"
#include "operations/grouped_core/grouped/geometry.h"
#include "operations/matmul_core/core/args.h"

TILE_ADD_DOTS(add_products, ROWS, COLUMNS, TILE_PARTS, LANES_M, TILE_STRIDE, LANES_N, TILE_STRIDE, BLOCK_N / 4)

#define FLOAT4 float4
#define UINT4 uint4
#define MAKE_FLOAT4(x, y, z, w) ((float4)(x, y, z, w))
#define LOCAL_ID_X ((uint)get_local_id(0))
#define GROUP_ID_X ((uint)get_group_id(0))
#define GROUP_COUNT_X ((uint)get_num_groups(0))
#define ARGS(name) (args.name)
#define LIST(i) list[i]
#define TABLE(i) ((const global uint*)list)[args.table + (i)]
#define LOAD_A_VECTOR(at, type) load_stored_vector(a, at, type)
#define LOAD_A_STEPS(at, step, count, type) load_stored_steps(a, at, step, count, type)
#define LOAD_B_VECTOR(at, type) load_stored_vector(b, at, type)
#define LOAD_B_STEPS(at, step, count, type) load_stored_steps(b, at, step, count, type)
#define LOAD_ADDEND_STEPS(at, step, count, type) load_typed_steps(addend, at, step, count, type)
#define STORE_RESULT_VECTOR(x, at, type) store_typed_vector(x, result, at, type)
#define STORE_RESULT_STEPS(x, at, step, count, type) store_typed_steps(x, result, at, step, count, type)
#define LOAD_SCALE_A(at) (scale_a[at])
#define LOAD_SCALE_B(at) (scale_b[at])
#define TO_FLOAT4(x) convert_float4(x)
#define FLOATS_OF_WORDS(x) as_float4(x)
#define WORDS_OF_FLOATS(x) as_int4(x)
#define FLOAT_OF_WORD(x) as_float(x)
#define WORD_OF_FLOAT(x) as_int(x)
#define HELD(i) held[i]
#define TILE(i) tile_memory[i]
#define PRODUCT(i) product[i]
#define TOTAL(i) total[i]
#define TILE_BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define ADD_PRODUCTS(a_at, b_at) add_products(product, tile_memory + (a_at), tile_memory + (b_at))

KERNEL void grouped_product(const global void* restrict a, const global void* restrict b,
                            const global uint4* restrict list, const global void* restrict addend,
                            global void* restrict result, const global float* restrict scale_a,
                            const global float* restrict scale_b, const struct GroupedArgs args) {
  local float4 tile_memory[TILE_VECTORS];
  float4 held[4 * TILE_FETCHES];
  float product[ROWS * COLUMNS];
  int total[BLOCKS != MATMUL_BLOCKS_NONE ? ROWS * COLUMNS : 1];
#include "operations/grouped_core/grouped/product.h"
}
