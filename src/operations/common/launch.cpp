// SPDX-License-Identifier: Apache-2.0
#include "operations/common/launch.hpp"

#include <string>

#include "abi/shared.h"

namespace tessera::operations {

std::uint32_t dtype_axis(DType dtype) {
  return dtype == DType::kF16 ? DTYPE_F16 : dtype == DType::kBF16 ? DTYPE_BF16 : DTYPE_F32;
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
