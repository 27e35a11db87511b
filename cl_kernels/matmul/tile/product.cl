// SPDX-License-Identifier: Apache-2.0
// What     result = finish(a b), or shares of the sums to scratch: any strides, any storage types.
// Who      A work-group owns a tile of ROWS LANES_M by COLUMNS LANES_N and a share of the terms; it steps over tiles.
// Memory   Squares of 4 x 4 through registers, which turn them where needed, to local memory; the next step's are on
//          their way while the sums of this one are taken.
// Numerics Float, terms in order, of 8 bits by blocks; whole numbers exact. The shares of a split are added in order by
//          matmul/core/combine.
// Assumes  Operands below 2^31 elements.
#include "lib/tiles/products.clh"
#include "lib/stored.clh"
#include "matmul/core/operands.clh"
#include "operations/matmul_core/tile/geometry.h"

TILE_ADD_DOTS(add_products, ROWS, COLUMNS, TILE_PARTS, LANES_M, TILE_STRIDE, LANES_N, TILE_STRIDE, BLOCK_N / 4)

#define LOAD_A_VECTOR(at, type) load_stored_vector(a, at, type)
#define LOAD_A_STEPS(at, step, count, type) load_stored_steps(a, at, step, count, type)
#define LOAD_B_VECTOR(at, type) load_stored_vector(b, at, type)
#define LOAD_B_STEPS(at, step, count, type) load_stored_steps(b, at, step, count, type)
#define STORE_PARTIAL(vector, x) *((global float4*)(scratch + ARGS(partial)) + (vector)) = x
#define HELD(i) held[i]
#define TILE(i) tile_memory[i]
#define PRODUCT(i) product[i]
#define TOTAL(i) total[i]
#define TILE_BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define ADD_PRODUCTS(a_at, b_at) add_products(product, tile_memory + (a_at), tile_memory + (b_at))

KERNEL void matmul_product(const global void* restrict a, const global void* restrict b, global float* restrict scratch,
                           MATMUL_FINISH_PARAMETERS, const struct MatmulArgs args) {
  local float4 tile_memory[TILE_VECTORS];
  const MatmulOperands call = MATMUL_OPERANDS;
  const MatmulOperands* operands = &call;
  float4 held[4 * TILE_FETCHES];
  float product[ROWS * COLUMNS];
  int total[BLOCKS != MATMUL_BLOCKS_NONE ? ROWS * COLUMNS : 1];
#include "operations/matmul_core/tile/product.h"
}
