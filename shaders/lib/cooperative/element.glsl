// SPDX-License-Identifier: Apache-2.0
// Cooperative matrices of DTYPE: the extensions, and the type of their elements.
#ifndef TESSERA_LIB_COOPERATIVE_ELEMENT_GLSL
#define TESSERA_LIB_COOPERATIVE_ELEMENT_GLSL
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#include "abi/shared.h"
#if DTYPE == DTYPE_F16
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#define ELEMENT float16_t
#else
#extension GL_EXT_bfloat16 : require
#define ELEMENT bfloat16_t
#endif

#endif  // TESSERA_LIB_COOPERATIVE_ELEMENT_GLSL
