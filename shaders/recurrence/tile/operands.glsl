// SPDX-License-Identifier: Apache-2.0
// How the kernels of the variant "tile" reach operands and their work-group in GLSL: by the names of their bindings.
#ifndef TESSERA_RECURRENCE_TILE_OPERANDS_GLSL
#define TESSERA_RECURRENCE_TILE_OPERANDS_GLSL

#define FLOAT4 vec4
#define MAKE_FLOAT4(x, y, z, w) vec4(x, y, z, w)
#define UNROLL [[unroll]]
#define ROLLED [[dont_unroll]]
#define LOCAL_ID_X gl_LocalInvocationID.x
#define LOCAL_ID_Y gl_LocalInvocationID.y
#define GROUP_ID_X gl_WorkGroupID.x
#define GROUP_ID_Y gl_WorkGroupID.y
#define GROUP_COUNT_X gl_NumWorkGroups.x
#define ARGS(name) (args.name)
#define SPACE(i) space[i]
#define RECUR_BARRIER() barrier()
#define RECUR_PRECISE precise
// Below -104 nothing of a float is left; functions of devices need not say so. NaN stays NaN.
#define RECUR_EXP(x) mix(exp(x), vec4(0.0), lessThan(x, vec4(-104.0)))

// tile/decay.h: what is held of log decays, and shares of factors, of those and of log decays.
vec4 recur_share(vec4 x) { return mix(min(0.5 * x, vec4(RECUR_LARGEST_SHARE)), x, isinf(x)); }
#define RECUR_HELD(x) mix(RECUR_EXP(x), -recur_share(x), greaterThan(x, vec4(RECUR_MOST_DECAY)))
#define RECUR_GROWS(held) any(lessThan(held, vec4(0.0)))
#define RECUR_FIRST(held) mix(held, vec4(1.0), lessThan(held, vec4(0.0)))
#define RECUR_HALF(held) mix(vec4(1.0), exp(-(held)), lessThan(held, vec4(0.0)))
vec4 recur_first(vec4 row, vec4 x) {
  precise vec4 first = row * mix(RECUR_EXP(x), vec4(1.0), greaterThan(x, vec4(RECUR_MOST_DECAY)));
  return first;
}
vec4 recur_rest(vec4 row, vec4 x) {
  if (!any(greaterThan(x, vec4(RECUR_MOST_DECAY)))) return row;
  const vec4 factor = mix(vec4(1.0), exp(recur_share(x)), greaterThan(x, vec4(RECUR_MOST_DECAY)));
  precise vec4 grown = row * factor, twice = grown * factor;
  return twice;
}
#define SUMS(i) sums[i]
#define SCRATCH(i) scratch[i]
#define SCRATCH_FLOAT(i) scratch_floats[i]

#define RECUR_TYPE(shift) ((args.types >> (shift)) & 3u)
#define LOAD(name, at, left, type) \
  (RECUR_HAS(RECUR_ALIGNED) ? load_##name##_vector(at, type) : load_##name##_steps(at, 1u, left, type))
#define STORE(name, x, at, left, type)             \
  {                                               \
    if (RECUR_HAS(RECUR_ALIGNED)) {               \
      store_##name##_vector(x, at, type);         \
    } else {                                      \
      store_##name##_steps(x, at, 1u, left, type); \
    }                                             \
  }

#define LOAD_QUERY(at, left) LOAD(query, at, left, RECUR_TYPE(RECUR_TYPE_ROWS))
#define LOAD_KEY(at, left) LOAD(key, at, left, RECUR_TYPE(RECUR_TYPE_ROWS))
#define LOAD_VALUE(at, left) LOAD(value, at, left, RECUR_TYPE(RECUR_TYPE_ROWS))
#define LOAD_GATE(at) load_g_steps(at, 0u, 1u, RECUR_TYPE(RECUR_TYPE_G)).x
#define LOAD_KEY_GATE(at, left) LOAD(g, at, left, RECUR_TYPE(RECUR_TYPE_G))
#define LOAD_INITIAL(at, left) LOAD(initial, at, left, DTYPE_F32)
#define LOAD_CARRIED(at, left) LOAD(carried, at, left, DTYPE_F32)
#define LOAD_DFINAL(at, left) LOAD(dfinal, at, left, DTYPE_F32)
#define LOAD_GRADIENT(at, left) LOAD(doutput, at, left, RECUR_TYPE(RECUR_TYPE_ROWS))
#define LOAD_BOUNDARY(i) boundaries[args.boundaries + (i)]
#define STORE_OUTPUT(x, at, left) STORE(output, x, at, left, RECUR_TYPE(RECUR_TYPE_ROWS))
#define STORE_FINAL(x, at, left) STORE(final, x, at, left, DTYPE_F32)
#define STORE_CARRIED(x, at, left) STORE(paused, x, at, left, DTYPE_F32)
#define STORE_DQUERY(x, at, left) STORE(dquery, x, at, left, RECUR_TYPE(RECUR_TYPE_ROWS))
#define STORE_DKEY(x, at, left) STORE(dkey, x, at, left, RECUR_TYPE(RECUR_TYPE_ROWS))
#define STORE_DVALUE(x, at, left) STORE(dvalue, x, at, left, RECUR_TYPE(RECUR_TYPE_ROWS))
#define STORE_DG(x, at, left) STORE(dg, x, at, left, RECUR_TYPE(RECUR_TYPE_G))
#define STORE_DGATE(x, at) store_dg_steps(vec4(x), at, 0u, 1u, RECUR_TYPE(RECUR_TYPE_G))
#define STORE_DGAMMA(x, at) store_dgamma_steps(vec4(x), at, 0u, 1u, RECUR_TYPE(RECUR_TYPE_GAMMA))
#define STORE_DGK(x, at, left) STORE(dgk, x, at, left, RECUR_TYPE(RECUR_TYPE_GK))
#define STORE_DBETA(x, at) store_dbeta_steps(vec4(x), at, 0u, 1u, RECUR_TYPE(RECUR_TYPE_BETA))
#define STORE_DINITIAL(x, at, left) STORE(dinitial, x, at, left, DTYPE_F32)
// Delta rules know no other decay than g.
#ifdef RECUR_DELTA
#define LOAD_BETA(at) load_beta_steps(at, 0u, 1u, RECUR_TYPE(RECUR_TYPE_BETA)).x
#define LOAD_GAMMA(at) 0.0
#define LOAD_GK(at, left) vec4(0.0)
#define LOAD_GV(at, left) vec4(0.0)
#define RECUR_KEEPS_STATES true
#else
#define LOAD_GAMMA(at) load_gamma_steps(at, 0u, 1u, RECUR_TYPE(RECUR_TYPE_GAMMA)).x
#define LOAD_GK(at, left) LOAD(gk, at, left, RECUR_TYPE(RECUR_TYPE_GK))
#define LOAD_GV(at, left) LOAD(gv, at, left, RECUR_TYPE(RECUR_TYPE_GV))
#define STORE_DGV(x, at, left) STORE(dgv, x, at, left, RECUR_TYPE(RECUR_TYPE_GV))
#define RECUR_KEEPS_STATES RECUR_HAS(RECUR_GRAD_DECAY)
#endif
#include "operations/recurrence_core/places.h"
#include "operations/recurrence_core/tile/decay.h"

#endif  // TESSERA_RECURRENCE_TILE_OPERANDS_GLSL
