// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "base/system/out_of_memory.hpp"
#include "device/device.hpp"
#include "tessera/device.hpp"
#include "tessera/error.hpp"

namespace tessera {

std::string_view to_string(Backend backend) {
  switch (backend) {
    case Backend::kOpenCL:
      return "opencl";
    case Backend::kVulkan:
      return "vulkan";
    case Backend::kHost:
      return "host";
  }
  return "unknown";
}

std::string_view to_string(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kDiscreteGpu:
      return "gpu";
    case DeviceKind::kIntegratedGpu:
      return "igpu";
    case DeviceKind::kCpu:
      return "cpu";
    case DeviceKind::kAccelerator:
      return "accelerator";
    case DeviceKind::kOther:
      return "other";
  }
  return "unknown";
}

const std::vector<FeatureName>& feature_names() try {
  static const auto* const names = new std::vector<FeatureName>{
      {Feature::kStorage16, "storage16"},
      {Feature::kFp16Arithmetic, "fp16"},
      {Feature::kSubgroupArithmetic, "subgroups"},
      {Feature::kCooperativeMatrix, "coopmat"},
      {Feature::kIntegerDot, "int_dot"},
      {Feature::kCpuBf16Dot, "cpu_bf16"},
      {Feature::kNvidiaPtx, "ptx"},
      {Feature::kFp64, "fp64"},
      {Feature::kWgmma, "wgmma"},
      {Feature::kMmaSync, "mma_sync"},
      {Feature::kMatrixRegisters, "coopmat_registers"},
      {Feature::kBf16Matrix, "coopmat_bf16"},
  };  // never destroyed: calls may come at exit
  return *names;
} catch (...) {
  rethrow_as_error();
}

bool is_cpu(const DeviceProfile& profile) { return profile.kind == DeviceKind::kCpu; }

bool is_gpu(const DeviceProfile& profile) {
  return profile.kind == DeviceKind::kDiscreteGpu || profile.kind == DeviceKind::kIntegratedGpu;
}

std::string to_string(const MatrixShape& shape) try {
  return std::string(to_string(shape.input)) + " " + std::to_string(shape.m) + "x" +
         std::to_string(shape.n) + "x" + std::to_string(shape.k);
} catch (...) {
  rethrow_as_error();
}

std::string summary(const DeviceProfile& profile) try {
  std::string text = "[" + std::string(to_string(profile.backend)) + "] " +
                     std::string(to_string(profile.kind)) + "  " + profile.name;
  if (profile.compute_units != 0) text += " | " + std::to_string(profile.compute_units) + " units";
  if (profile.subgroup_size != 0) text += " | sub-group " + std::to_string(profile.subgroup_size);
  if (profile.local_memory != 0)
    text += " | " + std::to_string(profile.local_memory / 1024) + " KiB local";
  std::string features;
  for (const FeatureName& known : feature_names()) {
    if (has(profile.features, known.feature)) features += " " + std::string(known.name);
  }
  if (!features.empty()) text += " |" + features;
  return text + " | " + profile.api_version + " | " + profile.driver;
} catch (...) {
  rethrow_as_error();
}

namespace device {

void check_allocation(const DeviceProfile& profile, std::uint64_t bytes) {
  const auto refuse = [&](const char* limit_name, std::uint64_t limit) {
    throw OutOfDeviceMemory("a buffer of " + std::to_string(bytes) + " bytes exceeds the " +
                                limit_name + " of " + profile.name + ", " + std::to_string(limit) +
                                " bytes",
                            bytes, limit);
  };
  if (profile.max_allocation != 0 && bytes > profile.max_allocation) {
    refuse("largest allocation", profile.max_allocation);
  }
  if (profile.max_binding != 0 && bytes > profile.max_binding) {
    refuse("largest buffer binding (maxStorageBufferRange)", profile.max_binding);
  }
}

}  // namespace device
}  // namespace tessera
