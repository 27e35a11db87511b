// SPDX-License-Identifier: Apache-2.0
// Every shader starts here. Constant ids 0-2 are the work-group size; a *.def file declares the
// rest from 3 on.
#ifndef TESSERA_LIB_PRELUDE_GLSL
#define TESSERA_LIB_PRELUDE_GLSL
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_16bit_storage : require
#include "abi/shared.h"

// What text that OpenCL C and GLSL share calls differently there.
#define FUNCTION
#define UNIFORM(condition) (condition)
#define TO_U32(x) uint(x)
#define TO_INT(x) int(x)
#define TO_FLOAT(x) float(x)
#define INT4 ivec4
#define MAKE_INT4(x, y, z, w) ivec4(x, y, z, w)
#define FLOAT2 vec2
#define MAKE_FLOAT2(x, y) vec2(x, y)
uint mul_hi(uint a, uint b) {
  uint high, low;
  umulExtended(a, b, high, low);
  return high;
}

layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;
#define WG_X gl_WorkGroupSize.x
#define WG_Y gl_WorkGroupSize.y
#define WG_Z gl_WorkGroupSize.z
#define TUNABLE(id, name, fallback) layout(constant_id = id) const uint name = fallback;
#define CONSTANT(id, name, fallback) layout(constant_id = id) const uint name = fallback;

// Arguments of up to 128 bytes travel as push constants, larger ones in a buffer after the
// operands.
#define PUSH_ARGS(Type) \
  layout(push_constant) uniform Push { Type args; }
#define BUFFER_ARGS(Type, slot) \
  layout(std430, binding = slot) readonly buffer ArgsBuffer { Type args; }

// Storage of one tensor element, and of four that start at a multiple of four: a second view of the
// same binding. Arithmetic is always float, and 16-bit types stand only next to a buffer access: no
// 16-bit arithmetic feature is needed.
#ifndef DTYPE
#define DTYPE DTYPE_F32
#endif
#if DTYPE == DTYPE_F32
#define scalar float
#define scalar4 vec4
#define load_scalar(element) (element)
#define load_scalar4(elements) (elements)
#define store_scalar(x) (x)
#define store_scalar4(x) (x)
#else
#define scalar uint16_t
#define scalar4 uvec2
#define load_scalar(element) widen(uint(element)).x
#define load_scalar4(elements) widen4(elements)
#define store_scalar(x) uint16_t(narrow(x))
#define store_scalar4(x) narrow4(x)
#include "lib/bits16.glsl"
#if DTYPE == DTYPE_F16
vec2 widen(uint pair) { return unpackHalf2x16(pair); }
uint narrow(float x) { return half_bits(x); }
#else
vec2 widen(uint pair) { return bfloat16_pair(pair); }
uint narrow(float x) { return bfloat16_bits(x); }
#endif
vec4 widen4(uvec2 pairs) { return vec4(widen(pairs.x), widen(pairs.y)); }
uvec2 narrow4(vec4 x) {
  return uvec2(narrow(x.x) | narrow(x.y) << 16, narrow(x.z) | narrow(x.w) << 16);
}
#endif

#endif  // TESSERA_LIB_PRELUDE_GLSL
