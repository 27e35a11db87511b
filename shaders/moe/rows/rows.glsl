// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/moe/rows/rows.clh.
#ifndef TESSERA_MOE_ROWS_GLSL
#define TESSERA_MOE_ROWS_GLSL
#include "lib/prelude.glsl"
#include "lib/columns.glsl"
#include "lib/errors.glsl"
#include "operations/moe/rows/args.h"
#include "operations/moe/rows/place.h"
#include "operations/moe/rows/rows.def"

#define ARGS(name) (args.name)
#define LOCAL_ID gl_LocalInvocationID.x
#define GLOBAL_ID gl_GlobalInvocationID.x
#define GLOBAL_COUNT (gl_NumWorkGroups.x * WG_X)
#define GROUP_ID gl_WorkGroupID.x
#define GROUP_COUNT gl_NumWorkGroups.x
#define FLOAT4 vec4
#define VECTOR 4u
#define STORED vec4
#define VALUES vec4
#define FLOATS(x) (x)
#define ZEROS vec4(0.0)
#define STORED_ZEROS vec4(0.0)
#define MOE_UNROLL
#define MAKE_FLOAT4(x, y, z, w) vec4(x, y, z, w)
#define ID(n) ids[args.ids_offset + (n)]
#define SLOT(n) slots[args.slots_offset + (n)]
#define START(e) starts[args.starts_offset + uint(e)]
#define WEIGHT(n) weights[args.weights_offset + (n)]
#define RAISE(kind, index) RAISE_ERROR(errors, args.errors, kind, index)
#define TOKEN_AT(token, i) (args.token_offset + (token) * args.token_stride + (i))
#define ROW_AT(row, i) (args.row_offset + (row) * args.row_stride + (i))

#endif  // TESSERA_MOE_ROWS_GLSL
