// SPDX-License-Identifier: Apache-2.0
// As storage_types.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/bytes.glsl"
#include "lib/errors.glsl"

layout(std430, binding = 0) readonly buffer Bytes { uint bytes[]; };
layout(std430, binding = 1) readonly buffer Floats { float floats[]; };
layout(std430, binding = 2) writeonly buffer From { float from[]; };
layout(std430, binding = 3) buffer To { uint to[]; };
layout(std430, binding = 4) buffer Errors { uint errors[]; };
layout(push_constant) uniform Push { uint first_error, count; };

void main() {
  const uint item = gl_GlobalInvocationID.x;
  if (item >= count) return;
  const uint bits = LOAD_BYTE(bytes, item % 256u);
  const uint types[4] = uint[4](DTYPE_I8, DTYPE_U8, DTYPE_E4M3FN, DTYPE_E5M2);
  for (uint i = 0u; i < 4u; ++i) {
    if (item < 256u) from[i * 256u + item] = from_storage(types[i], bits);
    STORE_BYTE(to_storage(types[i], floats[item]), to, i * count + item)
  }
  const uint half_byte = LOAD_HALF_BYTE(bytes, item % 512u);
  if (item < 512u) {
    from[1024u + item] = from_storage(DTYPE_I4, half_byte);
    from[1536u + item] = from_storage(DTYPE_U4, half_byte);
  }
  if (item % 2u == 0u) {
    STORE_BYTE(to_i4(floats[item]) | to_i4(floats[item + 1u]) << 4, to, 4u * count + item / 2u)
    STORE_BYTE(to_u4(floats[item]) | to_u4(floats[item + 1u]) << 4, to, (4u * count + count / 2u) + item / 2u)
  }
  if (item % 7u == 3u) RAISE_ERROR(errors, first_error, 1u, item + 10u);
}
