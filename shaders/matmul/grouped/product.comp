// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/matmul/grouped/product.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "lib/stored.glsl"
#include "operations/grouped_core/args.h"
#include "operations/grouped_core/grouped/tile.def"
#include "operations/grouped_core/grouped/geometry.h"
#include "operations/matmul_core/core/args.h"

STORED_INPUT(a, 0)
STORED_INPUT(b, 1)
layout(std430, binding = 2) readonly buffer List { uvec4 list[]; };
layout(std430, binding = 2) readonly buffer Words { uint words[]; };
TYPED_INPUT(addend, 3)
TYPED_OUTPUT(result, 4)
layout(std430, binding = 5) readonly buffer ScaleA { float scale_a[]; };
layout(std430, binding = 6) readonly buffer ScaleB { float scale_b[]; };
PUSH_ARGS(GroupedArgs);

shared vec4 tile_memory[TILE_VECTORS];
vec4 held[4 * TILE_FETCHES];
float product[ROWS * COLUMNS];
int total[BLOCKS != MATMUL_BLOCKS_NONE ? ROWS * COLUMNS : 1];

#include "lib/tiles/products.glsl"
TILE_ADD_DOTS(add_products, tile_memory, product, ROWS, COLUMNS, TILE_PARTS, LANES_M, TILE_STRIDE, LANES_N, TILE_STRIDE, BLOCK_N / 4u)

#define FLOAT4 vec4
#define UINT4 uvec4
#define MAKE_FLOAT4(x, y, z, w) vec4(x, y, z, w)
#define UNROLL [[unroll]]
#define ROLLED [[dont_unroll]]
#define LOCAL_ID_X gl_LocalInvocationID.x
#define GROUP_ID_X gl_WorkGroupID.x
#define GROUP_COUNT_X gl_NumWorkGroups.x
#define ARGS(name) (args.name)
#define LIST(i) list[i]
#define TABLE(i) words[args.table + (i)]
#define LOAD_A_VECTOR load_a_stored_vector
#define LOAD_A_STEPS load_a_stored_steps
#define LOAD_B_VECTOR load_b_stored_vector
#define LOAD_B_STEPS load_b_stored_steps
#define LOAD_ADDEND_STEPS load_addend_steps
#define STORE_RESULT_VECTOR store_result_vector
#define STORE_RESULT_STEPS store_result_steps
#define LOAD_SCALE_A(at) scale_a[at]
#define LOAD_SCALE_B(at) scale_b[at]
#define TO_FLOAT4(x) vec4(x)
#define FLOATS_OF_WORDS(x) intBitsToFloat(x)
#define WORDS_OF_FLOATS(x) floatBitsToInt(x)
#define FLOAT_OF_WORD(x) intBitsToFloat(x)
#define WORD_OF_FLOAT(x) floatBitsToInt(x)
#define HELD(i) held[i]
#define TILE(i) tile_memory[i]
#define PRODUCT(i) product[i]
#define TOTAL(i) total[i]
#define TILE_BARRIER() barrier()
#define ADD_PRODUCTS(a_at, b_at) add_products(a_at, b_at)

void main() {
#include "operations/grouped_core/grouped/product.h"
}
