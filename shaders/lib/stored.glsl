// SPDX-License-Identifier: Apache-2.0
// Elements of 8 bits beside those of lib/typed.glsl, read by words; where the type is constant, so is the choice.
#ifndef TESSERA_LIB_STORED_GLSL
#define TESSERA_LIB_STORED_GLSL
#include "lib/bytes.glsl"
#include "lib/typed.glsl"

// Four elements from the lowest byte on.
vec4 widen_stored(uint bits, uint type) {
  return vec4(from_storage(type, bits & 0xffu), from_storage(type, (bits >> 8) & 0xffu),
              from_storage(type, (bits >> 16) & 0xffu), from_storage(type, bits >> 24));
}

// TYPED_INPUT of lib/typed.glsl, and load_<name>_stored_vector and load_<name>_stored_steps, which take 8 bits, too.
#define STORED_INPUT(name, slot)                                                             \
  TYPED_INPUT(name, slot)                                                                    \
  layout(std430, binding = slot) readonly buffer name##_words { uint name##_as_words[]; };   \
  vec4 load_##name##_stored_vector(uint at, uint type) {                                     \
    if (type >= DTYPE_I8) return widen_stored(name##_as_words[at / 4u], type);               \
    return load_##name##_vector(at, type);                                                   \
  }                                                                                          \
  vec4 load_##name##_stored_steps(uint at, uint step, uint count, uint type) {               \
    if (type < DTYPE_I8) return load_##name##_steps(at, step, count, type);                  \
    uint bits = LOAD_BYTE(name##_as_words, at);                                              \
    if (count > 1u) bits |= LOAD_BYTE(name##_as_words, at + step) << 8;                      \
    if (count > 2u) bits |= LOAD_BYTE(name##_as_words, at + 2u * step) << 16;                \
    if (count > 3u) bits |= LOAD_BYTE(name##_as_words, at + 3u * step) << 24;                \
    return widen_stored(bits, type);                                                         \
  }

#endif  // TESSERA_LIB_STORED_GLSL
