// SPDX-License-Identifier: Apache-2.0
// AVX512_BF16 and AVX512_VNNI of the CPU that this process runs on, which is PoCL's device.
#pragma once

namespace tessera::device::opencl {

// Whether vdpbf16ps exists and does clearly more work than float multiply-adds. On AMD's Zen 4 it
// does twice as much; an Intel Xeon was measured to do half as much. Measured once per process, in
// about 0.1 ms.
bool bf16_dot_pays();
// The same of vpdpbusd, AVX512_VNNI: four products of 8 bits.
bool i8_dot_pays();

}  // namespace tessera::device::opencl
