// SPDX-License-Identifier: Apache-2.0
// How the kernels of GPUs reach the operands of a product in GLSL. MATMUL_BINDING is the binding of the bias; those after
// it follow.
#ifndef TESSERA_MATMUL_CORE_OPERANDS_GLSL
#define TESSERA_MATMUL_CORE_OPERANDS_GLSL
#include "lib/typed.glsl"

#define FLOAT4 vec4
#define MAKE_FLOAT4(x, y, z, w) vec4(x, y, z, w)
#define UNROLL [[unroll]]
#define ROLLED [[dont_unroll]]
#define LOCAL_ID_X gl_LocalInvocationID.x
#define GROUP_ID_X gl_WorkGroupID.x
#define GROUP_COUNT_X gl_NumWorkGroups.x
#define ARGS(name) (args.name)

#define ACT_VALUES vec4
#define ACT_SPLAT(x) vec4(x)
#define ACT_EXP(x) exp(x)
#define ACT_ABS(x) abs(x)
#define ACT_BELOW(x, a, b) mix(b, a, lessThan(x, vec4(0.0)))
#define ACT_CLAMP(x, limit) clamp(x, vec4(-(limit)), vec4(limit))
#include "operations/matmul_core/core/activation.h"

TYPED_INPUT(bias, MATMUL_BINDING)
TYPED_INPUT(addend, MATMUL_BINDING + 1)
TYPED_INPUT(gate, MATMUL_BINDING + 2)
TYPED_INPUT(residual, MATMUL_BINDING + 3)
TYPED_OUTPUT(result, MATMUL_BINDING + 4)
TYPED_OUTPUT(beside, MATMUL_BINDING + 5)
layout(std430, binding = MATMUL_BINDING + 6) readonly buffer ScaleA { float scale_a[]; };
layout(std430, binding = MATMUL_BINDING + 7) readonly buffer ScaleB { float scale_b[]; };
BUFFER_ARGS(MatmulArgs, MATMUL_BINDING + 8);

#define MATMUL_PARAMETERS
#define MATMUL_ARGUMENTS
#define LOAD_BIAS_VECTOR load_bias_vector
#define LOAD_BIAS_STEPS load_bias_steps
#define LOAD_ADDEND_VECTOR load_addend_vector
#define LOAD_ADDEND_STEPS load_addend_steps
#define LOAD_GATE_VECTOR load_gate_vector
#define LOAD_GATE_STEPS load_gate_steps
#define LOAD_RESIDUAL_VECTOR load_residual_vector
#define LOAD_RESIDUAL_STEPS load_residual_steps
#define STORE_RESULT_VECTOR store_result_vector
#define STORE_RESULT_STEPS store_result_steps
#define STORE_BESIDE_VECTOR store_beside_vector
#define STORE_BESIDE_STEPS store_beside_steps
#define LOAD_SCALE_A(at) scale_a[at]
#define LOAD_SCALE_B(at) scale_b[at]
#define TO_FLOAT4(x) vec4(x)
#define FLOATS_OF_WORDS(x) intBitsToFloat(x)
#define FLOAT_OF_WORD(x) intBitsToFloat(x)
#define WORD_OF_FLOAT(x) floatBitsToInt(x)
#include "operations/matmul_core/core/finish.h"

#endif  // TESSERA_MATMUL_CORE_OPERANDS_GLSL
