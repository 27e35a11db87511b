// SPDX-License-Identifier: Apache-2.0
// What shaders between floats and codes share. As cl_kernels/kv_cache/rows/codes.clh.
#ifndef TESSERA_KV_CACHE_CODES_GLSL
#define TESSERA_KV_CACHE_CODES_GLSL
#include "lib/bytes.glsl"
#include "operations/kv_cache/args.h"
#include "operations/kv_cache/rows/codes.def"

#define INDEX uint
#define TO_INDEX(x) (x)
#define LOCAL_ID gl_LocalInvocationID.x
#define GROUP_ID gl_WorkGroupID.x
#define GROUP_COUNT gl_NumWorkGroups.x
#define ARGS(name) (args.name)
#include "operations/kv_cache/codes.h"

#endif  // TESSERA_KV_CACHE_CODES_GLSL
