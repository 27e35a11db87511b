// SPDX-License-Identifier: Apache-2.0
// What is known of a device. A DeviceProfile is plain data: selection is a pure function of it, so
// tests hold profiles of machines that nobody here owns.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/dtype.hpp"
#include "tessera/export.hpp"

namespace tessera {

enum class Backend : std::uint8_t { kOpenCL, kVulkan, kHost };
enum class DeviceKind : std::uint8_t { kDiscreteGpu, kIntegratedGpu, kCpu, kAccelerator, kOther };

TESSERA_API std::string_view to_string(Backend backend);  // "opencl", "vulkan", "host"
TESSERA_API std::string_view to_string(
    DeviceKind kind);  // "gpu", "igpu", "cpu", "accelerator", "other"

// Optional abilities of a device. TESSERA_DISABLE takes these names and makes the devices appear
// without them.
enum class Feature : std::uint32_t {
  kNone = 0,
  kStorage16 = 1U << 0,           // 16-bit elements in storage buffers
  kFp16Arithmetic = 1U << 1,      // half arithmetic
  kSubgroupArithmetic = 1U << 2,  // sub-group reductions and shuffles
  kCooperativeMatrix = 1U << 3,   // VK_KHR_cooperative_matrix
  kIntegerDot = 1U << 4,          // packed 8-bit dot products
  kCpuBf16Dot = 1U << 5,          // a CPU whose AVX512_BF16 beats float multiply-adds
  kNvidiaPtx = 1U << 6,           // inline PTX in OpenCL C
  kFp64 = 1U << 7,                // double arithmetic
  kWgmma = 1U << 8,               // Hopper's matrix unit, by PTX that is promoted to sm_90a
  kMmaSync = 1U << 9,             // matrix instructions and asynchronous copies of sm_80, by PTX
  kMatrixRegisters = 1U << 10,    // reductions and conversions of VK_NV_cooperative_matrix2
  kBf16Matrix = 1U << 11,         // cooperative matrices of bf16, by VK_KHR_shader_bfloat16
};
constexpr Feature operator|(Feature a, Feature b) {
  return static_cast<Feature>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b));
}
constexpr Feature operator&(Feature a, Feature b) {
  return static_cast<Feature>(static_cast<std::uint32_t>(a) & static_cast<std::uint32_t>(b));
}
constexpr Feature without(Feature set, Feature gone) {
  return static_cast<Feature>(static_cast<std::uint32_t>(set) & ~static_cast<std::uint32_t>(gone));
}
constexpr bool has(Feature set, Feature wanted) { return (set & wanted) == wanted; }

struct FeatureName {
  Feature feature{};
  std::string_view name{};
};
TESSERA_API const std::vector<FeatureName>&
feature_names();  // "storage16", "fp16", "subgroups", "coopmat" …

// M x K times K x N elements of `input` make M x N floats, in one instruction of a sub-group.
struct MatrixShape {
  DType input = DType::kF16;
  std::uint32_t m = 0, n = 0, k = 0;
  friend bool operator==(const MatrixShape&, const MatrixShape&) = default;
};

struct DeviceProfile {
  Backend backend = Backend::kHost;
  DeviceKind kind = DeviceKind::kOther;
  std::string name{};           // as the driver says it
  std::string vendor{};         // "NVIDIA", "AMD", "Intel", … as the driver says it
  std::uint32_t vendor_id = 0;  // PCI vendor, or Khronos vendor id
  std::uint32_t device_id = 0;
  std::string driver{};       // driver's name and version
  std::string api_version{};  // "OpenCL 3.0", "Vulkan 1.3.230"
  std::string compiler{};     // what compiles kernels, where the driver tells
  std::string uuid{};         // 32 hex digits, empty = unknown
  std::string pci_address{};  // "0000:3b:00.0", empty = unknown
  Feature features = Feature::kNone;
  std::uint32_t compute_units = 0;            // 0 = unknown
  std::uint32_t subgroup_size = 0;            // 0 = unknown
  std::uint32_t native_float_width = 0;       // preferred lanes of a float vector on a CPU
  std::uint32_t max_group_size = 0;           // work-items in one work-group
  std::array<std::uint32_t, 3> max_groups{};  // work-groups along each axis
  std::uint64_t local_memory = 0;             // bytes for one work-group
  std::uint64_t global_memory = 0;            // bytes
  std::uint64_t max_allocation = 0;           // bytes of one buffer
  std::uint64_t max_binding = 0;              // bytes that one kernel argument can reach
  std::uint32_t max_push_constants = 0;       // bytes, Vulkan
  std::vector<MatrixShape> matrix_shapes{};   // of cooperative matrices, f16 and bf16
};

TESSERA_API bool is_cpu(const DeviceProfile& profile);
TESSERA_API bool is_gpu(const DeviceProfile& profile);
TESSERA_API std::string to_string(const MatrixShape& shape);  // "f16 16x8x16": M x N x K
// One line: "[opencl] cpu  name | 2 units | 1024 KiB local | storage16 fp64 | driver".
TESSERA_API std::string summary(const DeviceProfile& profile);
// Why features that the driver of this device may offer are not used, one sentence each: defects of
// drivers that others have reported. TESSERA_QUIRKS=off uses them all the same.
TESSERA_API std::vector<std::string> quirks_of(const DeviceProfile& profile);

// One probed device. `index` is what --device and TESSERA_DEVICE take.
struct DeviceInfo {
  int index = 0;
  DeviceProfile profile{};
  std::vector<int>
      same_as{};  // indices of other routes (drivers, platforms) to the same physical device
};

struct ProbeFailure {
  std::string where{};  // platform or device
  std::string why{};
};

struct Probe {
  std::vector<DeviceInfo> devices{};
  std::vector<ProbeFailure> failures{};
};

// Asks every platform once per process; later calls return the same answer. Never throws for a
// broken driver: that driver is reported in `failures` and hides no other.
TESSERA_API const Probe& probe_devices();

// The devices that a selector names, best first. A selector is an index ("0"), a platform
// ("opencl", "vulkan", "host"), a kind ("gpu", "igpu", "cpu", "accelerator"), a UUID, or a part of
// a name in any case; several joined by ':' must all hold ("vulkan:llvmpipe"). Empty = every device
// but the host's.
TESSERA_API std::vector<DeviceInfo> select_devices(const Probe& probe, std::string_view selector);

}  // namespace tessera
