// SPDX-License-Identifier: Apache-2.0
// How the kernels of selective_scan reach operands and their work-group in GLSL: by the names of their bindings.
#ifndef TESSERA_STATE_SPACE_SCAN_OPERANDS_GLSL
#define TESSERA_STATE_SPACE_SCAN_OPERANDS_GLSL
#include "state_space/core/rows.glsl"

#define LOAD_U(at) LOAD_STEPS(u, at, 0u, 1u, SCAN_TYPE_ROWS).x
#define LOAD_DELTA(at) LOAD_STEPS(delta, at, 0u, 1u, SCAN_TYPE_ROWS).x
#define LOAD_Z(at) LOAD_STEPS(z, at, 0u, 1u, SCAN_TYPE_ROWS).x
#define LOAD_GRADIENT(at) LOAD_STEPS(doutput, at, 0u, 1u, SCAN_TYPE_ROWS).x
#define LOAD_D(at) LOAD_STEPS(d, at, 0u, 1u, SCAN_TYPE_D).x
#define LOAD_STEP_BIAS(at) LOAD_STEPS(bias, at, 0u, 1u, SCAN_TYPE_BIAS).x
#define LOAD_A(at, left) LOAD_STEPS(a, at, args.a_column, left, SCAN_TYPE_A)
#define LOAD_B(at, left)                                       \
  (IS_ALIGNED ? load_b_vector(at, TYPE_OF(SCAN_TYPE_ROWS)) \
              : load_b_steps(at, args.b.state, left, TYPE_OF(SCAN_TYPE_ROWS)))
#define LOAD_C(at, left)                                       \
  (IS_ALIGNED ? load_c_vector(at, TYPE_OF(SCAN_TYPE_ROWS)) \
              : load_c_steps(at, args.c.state, left, TYPE_OF(SCAN_TYPE_ROWS)))
#define LOAD_INITIAL(at, left) load_initial_steps(at, args.initial_state.feature, left, DTYPE_F32)
#define LOAD_DFINAL(at, left) load_dfinal_steps(at, args.final_state.feature, left, DTYPE_F32)
#define STORE_FINAL(x, at, left) store_final_steps(x, at, args.final_state.feature, left, DTYPE_F32)
#define STORE_DINITIAL(x, at, left) store_dinitial_steps(x, at, args.dinitial.feature, left, DTYPE_F32)
#define STORE_OUTPUT(x, at) store_result_steps(vec4(x), at, 0u, 1u, ROWS_TYPE)
#define STORE_DU(x, at) STORE_STEPS(vec4(x), du, at, 0u, 1u, SCAN_TYPE_ROWS)
#define STORE_DDELTA(x, at) STORE_STEPS(vec4(x), ddelta, at, 0u, 1u, SCAN_TYPE_ROWS)
#define STORE_DZ(x, at) STORE_STEPS(vec4(x), dz, at, 0u, 1u, SCAN_TYPE_ROWS)
#define STORE_DB(x, at) STORE_STEPS(vec4(x), db, at, 0u, 1u, SCAN_TYPE_ROWS)
#define STORE_DC(x, at) STORE_STEPS(vec4(x), dc, at, 0u, 1u, SCAN_TYPE_ROWS)
#define STORE_DA(x, at) STORE_STEPS(vec4(x), da, at, 0u, 1u, SCAN_TYPE_A)
#define STORE_DD(x, at) STORE_STEPS(vec4(x), dd, at, 0u, 1u, SCAN_TYPE_D)
#define STORE_DBIAS(x, at) STORE_STEPS(vec4(x), dbias, at, 0u, 1u, SCAN_TYPE_BIAS)
#define LOAD_U_BITS(at) BITS_AT(u, at, ROWS_TYPE)
#define LOAD_DELTA_BITS(at) BITS_AT(delta, at, ROWS_TYPE)
#define LOAD_Z_BITS(at) BITS_AT(z, at, ROWS_TYPE)
#define LOAD_B_BITS(at) BITS_AT(b, at, ROWS_TYPE)
#define LOAD_C_BITS(at) BITS_AT(c, at, ROWS_TYPE)
#define SCAN_WIDEN(bits) widen_bits(bits, ROWS_TYPE)
#define FACTOR_ELEMENT(at) factors[(at) / 4u][(at) % 4u]
#define SUMS(i) sums[i]
#define INNER(step, f) inner[((step)*SCAN_FOURS + (f)) * SCAN_ITEMS + item]
// Of a state of an item: what it adds to the gradient of b, or of c.
#define PRODUCT_OF(which, r, by) products[((which)*ROWS + (r)) * SCAN_ITEMS + (by)]
#define PRODUCT(which, r) PRODUCT_OF(which, r, item)
// Only parts of states wait for each other.
#define SCAN_BARRIER() \
  if (WG_Y > 1u) barrier()
#define SPACE_ALIGNED SCAN_ALIGNED
#include "operations/selective_scan/places.h"

#endif  // TESSERA_STATE_SPACE_SCAN_OPERANDS_GLSL
