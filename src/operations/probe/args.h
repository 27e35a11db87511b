// SPDX-License-Identifier: Apache-2.0
// Per-launch arguments of the device-peak probes: an OpenCL by-value struct, a GLSL block.
#ifndef TESSERA_OPERATIONS_PROBE_ARGS_H
#define TESSERA_OPERATIONS_PROBE_ARGS_H
#include "abi/shared.h"
TESSERA_ABI_BEGIN

struct FmaPeakArgs {
  u32 iterations;
};

struct CopyArgs {
  u32 blocks;  // of 64 bytes
};

struct ReadArgs {
  u32 first;  // block of 64 bytes
  u32 blocks;
};

TESSERA_ABI_END
#endif  // TESSERA_OPERATIONS_PROBE_ARGS_H
