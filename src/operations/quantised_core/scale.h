// SPDX-License-Identifier: Apache-2.0
// Scales as kernels take them, after abi/storage.h: text for OpenCL C and GLSL.
#ifndef TESSERA_OPERATIONS_QUANTISED_CORE_SCALE_H
#define TESSERA_OPERATIONS_QUANTISED_CORE_SCALE_H

// One that is infinite counts as NaN: times sums of either sign, it would give one or the other by
// the order in which they are added up. By its bits, which no compiler takes for finite.
FUNCTION float quant_scale(float x) {
  return (BITS_OF_FLOAT(x) & 0x7f800000u) == 0x7f800000u ? FLOAT_OF_BITS(0x7fc00000u) : x;
}

#endif  // TESSERA_OPERATIONS_QUANTISED_CORE_SCALE_H
