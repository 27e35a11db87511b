// SPDX-License-Identifier: Apache-2.0
// How the kernels of selective_scan reach operands and their work-group in GLSL: by the names of their bindings.
#ifndef TESSERA_STATE_SPACE_SCAN_OPERANDS_GLSL
#define TESSERA_STATE_SPACE_SCAN_OPERANDS_GLSL
#include "state_space/core/rows.glsl"

#define LOAD_D(at) LOAD_STEPS(d, at, 0u, 1u, SCAN_TYPE_D).x
#define LOAD_STEP_BIAS(at) LOAD_STEPS(bias, at, 0u, 1u, SCAN_TYPE_BIAS).x
#define LOAD_A(at, left) LOAD_FOUR(a, at, args.a_column, left, TYPE_OF(SCAN_TYPE_A), IS_ALIGNED)
#define LOAD_INITIAL(at, left) LOAD_FOUR(initial, at, args.initial_state.feature, left, DTYPE_F32, IS_ALIGNED)
#define LOAD_DFINAL(at, left) LOAD_FOUR(dfinal, at, args.final_state.feature, left, DTYPE_F32, IS_ALIGNED)
#define STORE_FINAL(x, at, left) STORE_FOUR(x, final, at, args.final_state.feature, left, DTYPE_F32, IS_ALIGNED)
#define STORE_DINITIAL(x, at, left) STORE_FOUR(x, dinitial, at, args.dinitial.feature, left, DTYPE_F32, IS_ALIGNED)
#define STORE_OUTPUT(x, at) store_result_steps(vec4(x), at, 0u, 1u, ROWS_TYPE)
#define STORE_DU(x, at) store_du_steps(vec4(x), at, 0u, 1u, ROWS_TYPE)
#define STORE_DDELTA(x, at) store_ddelta_steps(vec4(x), at, 0u, 1u, ROWS_TYPE)
#define STORE_DZ(x, at) store_dz_steps(vec4(x), at, 0u, 1u, ROWS_TYPE)
#define STORE_DB(x, at) STORE_STEPS(vec4(x), db, at, 0u, 1u, SCAN_TYPE_ROWS)
#define STORE_DC(x, at) STORE_STEPS(vec4(x), dc, at, 0u, 1u, SCAN_TYPE_ROWS)
#define STORE_DA(x, at) STORE_STEPS(vec4(x), da, at, 0u, 1u, SCAN_TYPE_A)
#define STORE_DD(x, at) STORE_STEPS(vec4(x), dd, at, 0u, 1u, SCAN_TYPE_D)
#define STORE_DBIAS(x, at) STORE_STEPS(vec4(x), dbias, at, 0u, 1u, SCAN_TYPE_BIAS)
#define LOAD_U_BITS(at) BITS_AT(u, at, ROWS_TYPE)
#define LOAD_DELTA_BITS(at) BITS_AT(delta, at, ROWS_TYPE)
#define LOAD_Z_BITS(at) BITS_AT(z, at, ROWS_TYPE)
#define LOAD_GRADIENT_BITS(at) BITS_AT(doutput, at, ROWS_TYPE)
#define LOAD_B_BITS(at) BITS_AT(b, at, ROWS_TYPE)
#define LOAD_C_BITS(at) BITS_AT(c, at, ROWS_TYPE)
#define SCAN_WIDEN(bits) widen_bits(bits, ROWS_TYPE)
#define FACTOR_ELEMENT(at) factors[(at) / 4u][(at) % 4u]
// All tokens of a span side by side are more than Mesa's compiler for Arc has registers for.
#define SCAN_EACH_TOKEN [[dont_unroll]]
#define SPACE_ALIGNED SCAN_ALIGNED
#include "operations/selective_scan/places.h"

#endif  // TESSERA_STATE_SPACE_SCAN_OPERANDS_GLSL
