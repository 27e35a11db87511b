// SPDX-License-Identifier: Apache-2.0
// The scalar vocabulary that C++, OpenCL C and GLSL agree on. Included by all three.
#ifndef TESSERA_ABI_SHARED_H
#define TESSERA_ABI_SHARED_H

// Storage types of tensors; the value of the build-time axis DTYPE.
#define DTYPE_F32 0
#define DTYPE_F16 1
#define DTYPE_BF16 2

// Index bounds "minus infinity" and "plus infinity" that can be added to any index without
// overflow.
#define INDEX_MIN (-1073741824)
#define INDEX_MAX 1073741823

// Rounds down; b > 0, any a.
#define FLOOR_DIV(a, b) ((a) < 0 ? -1 - (-1 - (a)) / (b) : (a) / (b))

#if defined(__cplusplus)
#include <cstdint>
namespace tessera::abi {
using u32 = std::uint32_t;
using i32 = std::int32_t;
using f32 = float;
}  // namespace tessera::abi
#define TESSERA_ABI_BEGIN namespace tessera::abi {
#define TESSERA_ABI_END }
#define STRUCT(Type) Type
#else
#define u32 uint
#define i32 int
#define f32 float
#define TESSERA_ABI_BEGIN
#define TESSERA_ABI_END
#ifdef __OPENCL_C_VERSION__
#define STRUCT(Type) struct Type
#else
#define STRUCT(Type) Type
#endif
#endif

#endif  // TESSERA_ABI_SHARED_H
