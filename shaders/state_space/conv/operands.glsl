// SPDX-License-Identifier: Apache-2.0
// How the kernels of causal_conv1d reach operands and their work-group in GLSL: by the names of their bindings.
#ifndef TESSERA_STATE_SPACE_CONV_OPERANDS_GLSL
#define TESSERA_STATE_SPACE_CONV_OPERANDS_GLSL
#include "state_space/core/rows.glsl"

#define LOAD_INPUT(at, left) LOAD_ROW(input, at, left, source, CONV_TYPE_ROWS)
#define LOAD_INITIAL(at, left) LOAD_ROW(initial, at, left, initial_state, CONV_TYPE_ROWS)
#define LOAD_GRADIENT(at, left) LOAD_ROW(doutput, at, left, result, CONV_TYPE_ROWS)
#define LOAD_DFINAL(at, left) LOAD_ROW(dfinal, at, left, final_state, CONV_TYPE_ROWS)
#define LOAD_INPUT_FOUR(at) load_input_vector(at, ROWS_TYPE)
#define LOAD_GRADIENT_FOUR(at) load_doutput_vector(at, ROWS_TYPE)
#define STORE_DINPUT_FOUR(x, at) store_dinput_vector(x, at, ROWS_TYPE)
#define LOAD_WEIGHT(at, left) LOAD_STEPS(weight, at, args.weight_row, left, CONV_TYPE_WEIGHT)
#define LOAD_BIAS(at, left) LOAD_STEPS(bias, at, args.bias_stride, left, CONV_TYPE_BIAS)
#define STORE_OUTPUT(x, at, left) STORE_ROW(x, output, at, left, result, CONV_TYPE_ROWS)
#define STORE_FINAL(x, at, left) STORE_ROW(x, final, at, left, final_state, CONV_TYPE_ROWS)
#define STORE_DINPUT(x, at, left) STORE_ROW(x, dinput, at, left, dinput, CONV_TYPE_ROWS)
#define STORE_DINITIAL(x, at, left) STORE_ROW(x, dinitial, at, left, dinitial, CONV_TYPE_ROWS)
#define STORE_DWEIGHT(x, at, left) STORE_STEPS(x, dweight, at, args.dweight_row, left, CONV_TYPE_WEIGHT)
#define STORE_DBIAS(x, at, left) STORE_STEPS(x, dbias, at, args.dbias_stride, left, CONV_TYPE_BIAS)
#define SPACE_ALIGNED CONV_ALIGNED
#include "operations/causal_conv1d/places.h"

#endif  // TESSERA_STATE_SPACE_CONV_OPERANDS_GLSL
