// SPDX-License-Identifier: Apache-2.0
// What     result = finish(a b), or shares of the sums to scratch: any strides, any storage types.
// Who      A work-group owns a tile of ROWS LANES_M by COLUMNS LANES_N and a share of the terms; it steps over tiles.
// Memory   Squares of 4 x 4 through registers, which turn them where needed, to shared memory; the next step's are on
//          their way while the sums of this one are taken.
// Numerics Float, terms in order, of 8 bits by blocks; whole numbers exact. The shares of a split are added in order by
//          matmul/core/combine.
// Assumes  Operands below 2^31 elements.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "lib/stored.glsl"
#include "operations/matmul_core/core/args.h"
#include "operations/matmul_core/tile/tile.def"
#include "operations/matmul_core/tile/geometry.h"

STORED_INPUT(a, 0)
STORED_INPUT(b, 1)
layout(std430, binding = 2) writeonly buffer Scratch { vec4 scratch[]; };
#define MATMUL_BINDING 3
#include "matmul/core/operands.glsl"

shared vec4 tile_memory[TILE_VECTORS];
vec4 held[4 * TILE_FETCHES];
float product[ROWS * COLUMNS];
int total[BLOCKS != MATMUL_BLOCKS_NONE ? ROWS * COLUMNS : 1];

#include "lib/tiles/products.glsl"
TILE_ADD_DOTS(add_products, tile_memory, product, ROWS, COLUMNS, TILE_PARTS, LANES_M, TILE_STRIDE, LANES_N, TILE_STRIDE, BLOCK_N / 4u)

#define LOAD_A_VECTOR load_a_stored_vector
#define LOAD_A_STEPS load_a_stored_steps
#define LOAD_B_VECTOR load_b_stored_vector
#define LOAD_B_STEPS load_b_stored_steps
#define STORE_PARTIAL(vector, x) scratch[args.partial / 4u + (vector)] = x
#define HELD(i) held[i]
#define TILE(i) tile_memory[i]
#define PRODUCT(i) product[i]
#define TOTAL(i) total[i]
#define TILE_BARRIER() barrier()
#define ADD_PRODUCTS(a_at, b_at) add_products(a_at, b_at)

void main() {
#include "operations/matmul_core/tile/product.h"
}
