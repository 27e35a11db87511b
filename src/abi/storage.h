// SPDX-License-Identifier: Apache-2.0
// Storage types beyond those of the preludes: 8-bit floats, bytes and half bytes, from and to what
// arithmetic uses. OpenCL C and GLSL; the host's are in base/tensors/dtype.cpp. Bits come as an
// unsigned number, so that no 8-bit types are needed; lib/bytes takes them from buffers and puts
// them there. Every conversion is exact or rounds once, to nearest even, and needs no subnormal
// floats.
#ifndef TESSERA_ABI_STORAGE_H
#define TESSERA_ABI_STORAGE_H
#include "abi/shared.h"

// Beside those of abi/shared.h: values of axes that name an operand's storage type.
#define DTYPE_I8 3
#define DTYPE_U8 4
#define DTYPE_I4 5
#define DTYPE_U4 6
#define DTYPE_E4M3FN 7
#define DTYPE_E5M2 8

#ifndef __cplusplus

#ifdef __OPENCL_C_VERSION__
#define BITS_OF_FLOAT(x) as_uint(x)
#define FLOAT_OF_BITS(x) as_float(x)
#else
#define BITS_OF_FLOAT(x) floatBitsToUint(x)
#define FLOAT_OF_BITS(x) uintBitsToFloat(x)
#endif

// Of a float whose exponent has `bias` and whose mantissa has 23 - drop bits, without its sign, as
// a float of 32 bits; numbers only. Below the normal ones, 1 stands before the mantissa and is
// taken away again, which is exact.
FUNCTION float widen_magnitude(u32 magnitude, u32 drop, u32 bias) {
  const u32 shifted = (magnitude << drop) + ((127u - bias) << 23);
  const bool normal = (magnitude >> (23u - drop)) != 0u;
  const float least = FLOAT_OF_BITS((128u - bias) << 23);
  return normal ? FLOAT_OF_BITS(shifted) : FLOAT_OF_BITS(shifted + 0x800000u) - least;
}

// The magnitude of a float that is no NaN in such a format, rounded; as if its exponents had no
// end. Below the normal ones, a power of two is added whose last bit is the smallest subnormal.
FUNCTION u32 narrow_magnitude(u32 magnitude, u32 drop, u32 bias) {
  const u32 exact = magnitude - ((127u - bias) << 23);
  const u32 normal = (exact + (1u << (drop - 1u)) - 1u + ((exact >> drop) & 1u)) >> drop;
  const u32 power = (128u - bias + drop) << 23;
  const u32 small = BITS_OF_FLOAT(FLOAT_OF_BITS(magnitude) + FLOAT_OF_BITS(power)) - power;
  return (magnitude >> 23) > 127u - bias ? normal : small;
}

FUNCTION float from_e4m3fn(u32 bits) {
  const u32 magnitude = bits & 0x7fu, sign = (bits & 0x80u) << 24;
  const u32 value = BITS_OF_FLOAT(widen_magnitude(magnitude, 20u, 7u));
  return FLOAT_OF_BITS(magnitude == 0x7fu ? 0x7fc00000u : sign | value);
}

FUNCTION float from_e5m2(u32 bits) {
  const u32 magnitude = bits & 0x7fu, sign = (bits & 0x80u) << 24;
  const u32 value = BITS_OF_FLOAT(widen_magnitude(magnitude, 21u, 15u));
  const u32 beyond = magnitude == 0x7cu ? sign | 0x7f800000u : 0x7fc00000u;
  return FLOAT_OF_BITS(magnitude >= 0x7cu ? beyond : sign | value);
}

// Saturates, infinities too; NaN stays NaN.
FUNCTION u32 to_e4m3fn(float x) {
  const u32 u = BITS_OF_FLOAT(x), magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7fu;
  return ((u >> 24) & 0x80u) | min(narrow_magnitude(magnitude, 20u, 7u), 0x7eu);
}

FUNCTION u32 to_e5m2(float x) {
  const u32 u = BITS_OF_FLOAT(x), magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7eu;
  return ((u >> 24) & 0x80u) | min(narrow_magnitude(magnitude, 21u, 15u), 0x7bu);
}

FUNCTION int from_i8(u32 bits) { return TO_INT(bits ^ 0x80u) - 128; }
FUNCTION int from_i4(u32 bits) { return TO_INT(bits ^ 8u) - 8; }

// An integer of a float: rounded to nearest even, beyond the ends the end, of NaN 0.
FUNCTION int to_integer(float x, float least, float most) {
  const bool number = (BITS_OF_FLOAT(x) & 0x7fffffffu) <= 0x7f800000u;
  // 2^23 more is a float without a fraction.
  const float magic = 12582912.0f;
  const float bounded = number ? min(max(x, least), most) : 0.0f;
  return TO_INT(BITS_OF_FLOAT(bounded + magic)) - TO_INT(BITS_OF_FLOAT(magic));
}
FUNCTION u32 to_i8(float x) { return TO_U32(to_integer(x, -128.0f, 127.0f)) & 0xffu; }
FUNCTION u32 to_u8(float x) { return TO_U32(to_integer(x, 0.0f, 255.0f)); }
FUNCTION u32 to_i4(float x) { return TO_U32(to_integer(x, -8.0f, 7.0f)) & 0xfu; }
FUNCTION u32 to_u4(float x) { return TO_U32(to_integer(x, 0.0f, 15.0f)); }

// x / y rounded to nearest even, of `near`, which is at most 4 units off. What is left of x is
// exact in integers, so that neither a device's divisions nor a compiler that fuses products with
// sums, or does not, make a difference. Near itself where one of them is no normal number.
FUNCTION float exact_quotient(float x, float y, float near) {
  const u32 x_bits = BITS_OF_FLOAT(x) & 0x7fffffffu, y_bits = BITS_OF_FLOAT(y) & 0x7fffffffu;
  const u32 sign = BITS_OF_FLOAT(near) & 0x80000000u;
  u32 bits = BITS_OF_FLOAT(near) ^ sign;
  const u32 least = min(min(x_bits, y_bits), bits), most = max(max(x_bits, y_bits), bits);
  if (least < 0x800000u || most >= 0x7f800000u) return near;
  const u32 x_whole = (x_bits & 0x7fffffu) | 0x800000u, y_whole = (y_bits & 0x7fffffu) | 0x800000u;
  for (int i = 0; i < 4; ++i) {
    const u32 shift = (x_bits >> 23) + 150u - (y_bits >> 23) - (bits >> 23);
    const u32 whole = (bits & 0x7fffffu) | 0x800000u;
    const int left = TO_INT((x_whole << shift) - whole * y_whole);  // in last bits of bits times y
    if (2 * left > TO_INT(y_whole)) ++bits;
    if (2 * left < -TO_INT(y_whole)) --bits;
  }
  return FLOAT_OF_BITS(sign | bits);
}

FUNCTION float rounded_quotient(float x, float y) { return exact_quotient(x, y, x / y); }

// The inverse of a scale by which quotients come: products with it are 2 units off, which codes of
// 8 bits do not show but beside the middle between two of them. 0 of scales whose inverse, or
// products with it, may be no normal number: divisions have to do.
FUNCTION float inverse_of_scale(float scale) {
  if (!(scale > 8.2718061e-25f && scale < 1.2089258e24f)) return 0.0f;  // 2^-80, 2^80
  return rounded_quotient(1.0f, scale);
}
FUNCTION float quotient_by_scale(float x, float scale, float inverse) {
  const float near = inverse == 0.0f ? x / scale : x * inverse;
  const bool is_between = ((BITS_OF_FLOAT(near) + 4u) & 0x7fffu) <= 8u;
  return is_between ? exact_quotient(x, scale, near) : near;
}

// By a storage type, which is known when the kernel is built.
FUNCTION float from_storage(u32 dtype, u32 bits) {
  if (dtype == DTYPE_E4M3FN) return from_e4m3fn(bits);
  if (dtype == DTYPE_E5M2) return from_e5m2(bits);
  if (dtype == DTYPE_I8) return TO_FLOAT(from_i8(bits));
  if (dtype == DTYPE_I4) return TO_FLOAT(from_i4(bits));
  return TO_FLOAT(bits);
}
FUNCTION u32 to_storage(u32 dtype, float x) {
  if (dtype == DTYPE_E4M3FN) return to_e4m3fn(x);
  if (dtype == DTYPE_E5M2) return to_e5m2(x);
  if (dtype == DTYPE_I8) return to_i8(x);
  if (dtype == DTYPE_I4) return to_i4(x);
  return dtype == DTYPE_U4 ? to_u4(x) : to_u8(x);
}

#endif  // __cplusplus
#endif  // TESSERA_ABI_STORAGE_H
