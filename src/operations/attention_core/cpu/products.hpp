// SPDX-License-Identifier: Apache-2.0
// What multiplies in the kernels of CPUs, forward and backward.
#pragma once

#include <cstdint>

#include "operations/common/launch.hpp"
#include "tessera/record.hpp"

namespace tessera::operations::attention {

// Float multiply-adds, or AVX512_BF16's dot products of pairs.
enum class Products : std::uint8_t { kFloat, kBf16Dot };

// The rule of variants that take dot products.
inline bool prefers_cpu_bf16(const Problem& problem, const DeviceProfile& profile) {
  return is_opencl_cpu(profile) && has(profile.features, Feature::kCpuBf16Dot) &&
         problem.dtype == DType::kBF16;
}
inline constexpr const char* kWhyCpuBf16 =
    "a CPU's dot products of bfloat16 do twice the work of float multiply-adds";

}  // namespace tessera::operations::attention
