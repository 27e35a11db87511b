// SPDX-License-Identifier: Apache-2.0
#include "operations/common/launch.hpp"

#include <string>

#include "abi/storage.h"

namespace tessera::operations {

std::uint32_t dtype_axis(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return DTYPE_F16;
    case DType::kBF16:
      return DTYPE_BF16;
    case DType::kI8:
      return DTYPE_I8;
    case DType::kU8:
      return DTYPE_U8;
    case DType::kI4:
      return DTYPE_I4;
    case DType::kU4:
      return DTYPE_U4;
    case DType::kE4M3FN:
      return DTYPE_E4M3FN;
    case DType::kE5M2:
      return DTYPE_E5M2;
    default:
      return DTYPE_F32;
  }
}

std::vector<Define> dtype_axes(const Problem& problem, const DeviceProfile& /*profile*/) {
  return {{"DTYPE", dtype_axis(problem.dtype)}};
}

Refusal rejects_long_operands(const Problem& problem) {
  constexpr std::int64_t kMostElements = std::int64_t{1} << 31;
  for (std::size_t slot = 0; slot < problem.operands.size(); ++slot) {
    if (!problem.has(slot) || problem.spec(slot).last_element() < kMostElements) continue;
    return problem.operation->operands[slot].name + " " + problem.spec(slot).to_string() +
           " reaches element " + std::to_string(problem.spec(slot).last_element()) +
           "; its kernels count to 2^31";
  }
  return std::nullopt;
}

Requirements opencl_cpu() { return {.backends = {Backend::kOpenCL}, .kinds = {DeviceKind::kCpu}}; }

bool is_opencl_cpu(const DeviceProfile& profile) {
  return profile.backend == Backend::kOpenCL && is_cpu(profile);
}

std::uint32_t vector_width(const DeviceProfile& profile) {
  return profile.native_float_width >= 16 ? 16 : profile.native_float_width >= 8 ? 8 : 4;
}

Refusal rejects_private_bytes(std::uint64_t bytes) {
  constexpr std::uint64_t kMostPrivateBytes = std::uint64_t{4} << 20;
  if (bytes <= kMostPrivateBytes) return std::nullopt;
  return "needs " + std::to_string(bytes) + " bytes of private memory, and " +
         std::to_string(kMostPrivateBytes) + " are safe";
}

}  // namespace tessera::operations
