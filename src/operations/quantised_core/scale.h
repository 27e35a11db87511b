// SPDX-License-Identifier: Apache-2.0
// Scales as kernels take them, after abi/storage.h: text for OpenCL C and GLSL.
#ifndef TESSERA_OPERATIONS_QUANTISED_CORE_SCALE_H
#define TESSERA_OPERATIONS_QUANTISED_CORE_SCALE_H

// One that is infinite counts as NaN: times sums of either sign, it would give one or the other by
// the order in which they are added up. By its bits, which no compiler takes for finite.
FUNCTION float quant_scale(float x) {
  return (BITS_OF_FLOAT(x) & 0x7f800000u) == 0x7f800000u ? FLOAT_OF_BITS(0x7fc00000u) : x;
}

// A half from its bits, at any address and on devices without halves; a subnormal one is not
// flushed.
FUNCTION float quant_half(u32 bits) {
  const u32 sign = (bits & 0x8000u) << 16, exponent = (bits >> 10) & 31u, fraction = bits & 0x3ffu;
  if (exponent == 0u) {
    const float size = TO_FLOAT(fraction) * 5.9604644775390625e-8f;  // 2^-24
    return sign != 0u ? -size : size;
  }
  const u32 wide = exponent == 31u ? 255u : exponent + 112u;
  return FLOAT_OF_BITS(sign | wide << 23 | fraction << 13);
}

#endif  // TESSERA_OPERATIONS_QUANTISED_CORE_SCALE_H
