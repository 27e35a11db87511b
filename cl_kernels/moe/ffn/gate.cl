// SPDX-License-Identifier: Apache-2.0
// What     act(gate) up of rows [gate, up], or act(up) of rows [up]; or, from its gradient, those of gate and up in their place
// Who      An item owns every so many eights of elements, whose loads are under way together.
// Memory   Each element once.
// Numerics Float, of 16 bits by the device's own exponential and inverse; one rounding to the storage type.
// Assumes  Scratch below 2^31 elements.
#include "lib/typed.clh"
#include "operations/matmul_core/core/args.h"
#include "operations/moe/ffn/args.h"

#define ACT_VALUES float4
#define ACT_SPLAT(x) ((float4)(x))
#if STORAGE16
#define ACT_EXP(x) native_exp2(1.44269504f * (x))  // clang has no native_exp for NVIDIA
#define ACT_INVERSE(x) native_recip(x)
#define ACT_16_BITS
#else
#define ACT_EXP(x) exp(x)
#endif
#define ACT_ABS(x) fabs(x)
#define ACT_BELOW(x, a, b) ((x) < 0.0f ? (a) : (b))
#define ACT_CLAMP(x, limit) clamp(x, -(limit), limit)
#include "operations/matmul_core/core/activation.h"

#define FLOAT4 float4
#define MAKE_FLOAT4(x, y, z, w) ((float4)(x, y, z, w))
#define ARGS(name) (args.name)
#define GLOBAL_ID ((uint)get_global_id(0))
#define GLOBAL_COUNT ((uint)get_global_size(0))
#define LOAD(at, count) \
  (args.is_vector ? load_typed_vector(from, at, args.type) : load_typed_steps(from, at, 1, count, args.type))
#define STORE(x, at, count)                            \
  if (args.is_vector) {                                \
    store_typed_vector(x, to, at, args.type);          \
  } else {                                             \
    store_typed_steps(x, to, at, 1, count, args.type); \
  }

KERNEL void moe_gate(const global void* from, global void* to, const struct MoeFfnArgs args) {
#include "operations/moe/ffn/gate.h"
}
