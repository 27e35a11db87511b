// SPDX-License-Identifier: Apache-2.0
// What the items of a work-group do together.
#ifndef TESSERA_MOE_ITEMS_GLSL
#define TESSERA_MOE_ITEMS_GLSL
#include "lib/prelude.glsl"
#include "operations/moe/route/args.h"
#include "operations/moe/route/route.def"

#define LOCAL_ID gl_LocalInvocationID.x
#define GLOBAL_ID gl_GlobalInvocationID.x
#define GROUP_ID gl_WorkGroupID.x
#define GROUP_COUNT gl_NumWorkGroups.x
#define BARRIER() barrier()
#define EACH(i, count) for (u32 i = LOCAL_ID; i < (count); i += WG_X)

shared float space[WG_X];
#define MOE_REDUCE(name, combine)                                                  \
  float name(float x) {                                                            \
    const uint item = gl_LocalInvocationID.x;                                      \
    space[item] = x;                                                               \
    for (uint width = WG_X / 2u; width > 0u; width /= 2u) {                        \
      barrier();                                                                   \
      if (item < width) space[item] = combine(space[item], space[item + width]);   \
    }                                                                              \
    barrier();                                                                     \
    const float all = space[0];                                                    \
    barrier();                                                                     \
    return all;                                                                    \
  }
#define MOE_PLUS(a, b) ((a) + (b))
MOE_REDUCE(SUM, MOE_PLUS)
MOE_REDUCE(LARGEST, max)

#endif  // TESSERA_MOE_ITEMS_GLSL
