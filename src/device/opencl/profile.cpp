// SPDX-License-Identifier: Apache-2.0
#include "device/opencl/profile.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <optional>
#include <set>
#include <sstream>
#include <vector>

#include "base/nvidia_architecture.hpp"
#include "base/vendor_ids.hpp"
#include "device/opencl/bf16_dot.hpp"
#include "device/opencl/errors.hpp"

namespace tessera::device::opencl {
namespace {

constexpr std::string_view kPoclName = "Portable Computing Language";

// Not in the headers of Debian 12; clinfo and hwloc use the same numbers.
constexpr cl_device_info kPciBusNv = 0x4008;
constexpr cl_device_info kPciSlotNv = 0x4009;
constexpr cl_device_info kPciDomainNv = 0x400A;

template <class T>
T get(cl_device_id device, cl_device_info what, std::string_view name) {
  T value{};
  check_code(clGetDeviceInfo(device, what, sizeof(T), &value, nullptr),
             "clGetDeviceInfo(" + std::string(name) + ")");
  return value;
}
#define TESSERA_GET(type, device, what) get<type>(device, what, #what)

// For what a driver need not know.
template <class T>
std::optional<T> ask(cl_device_id device, cl_device_info what) {
  T value{};
  if (clGetDeviceInfo(device, what, sizeof(T), &value, nullptr) != CL_SUCCESS) return std::nullopt;
  return value;
}

template <class Query>
std::string get_text(const Query& query, std::string_view call) {
  std::size_t size = 0;
  check_code(query(0, nullptr, &size), call);
  std::string text(size, '\0');
  check_code(query(size, text.data(), nullptr), call);
  // Drivers pad with zeros and, some of them, with blanks.
  text.erase(std::find(text.begin(), text.end(), '\0'), text.end());
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text.substr(std::min(text.find_first_not_of(' '), text.size()));
}

std::string device_text(cl_device_id device, cl_device_info what) {
  return get_text(
      [&](std::size_t size, char* out, std::size_t* needed) {
        return clGetDeviceInfo(device, what, size, out, needed);
      },
      "clGetDeviceInfo");
}

std::string platform_text(cl_platform_id platform, cl_platform_info what) {
  return get_text(
      [&](std::size_t size, char* out, std::size_t* needed) {
        return clGetPlatformInfo(platform, what, size, out, needed);
      },
      "clGetPlatformInfo");
}

std::uint32_t narrow(std::uint64_t value) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(value, std::numeric_limits<std::uint32_t>::max()));
}

using Extensions = std::set<std::string, std::less<>>;

Extensions read_extensions(cl_device_id device) {
  std::istringstream words(device_text(device, CL_DEVICE_EXTENSIONS));
  Extensions result;
  for (std::string word; words >> word;) result.insert(word);
  return result;
}

DeviceKind read_kind(cl_device_id device) {
  const auto type = TESSERA_GET(cl_device_type, device, CL_DEVICE_TYPE);
  if (type & CL_DEVICE_TYPE_GPU) {
    const bool shares_memory =
        ask<cl_bool>(device, CL_DEVICE_HOST_UNIFIED_MEMORY).value_or(CL_FALSE) != CL_FALSE;
    return shares_memory ? DeviceKind::kIntegratedGpu : DeviceKind::kDiscreteGpu;
  }
  if (type & CL_DEVICE_TYPE_CPU) return DeviceKind::kCpu;
  if (type & CL_DEVICE_TYPE_ACCELERATOR) return DeviceKind::kAccelerator;
  return DeviceKind::kOther;
}

std::uint32_t read_vendor_id(cl_device_id device, std::string_view vendor) {
  const auto said = TESSERA_GET(cl_uint, device, CL_DEVICE_VENDOR_ID);
  if (vendor.starts_with("NVIDIA")) return kVendorNvidia;
  if (vendor.starts_with("Advanced Micro Devices")) return kVendorAmd;
  if (vendor.starts_with("Intel")) return kVendorIntel;
  return said;
}

std::string read_uuid(cl_device_id device, const Extensions& extensions) {
  if (!extensions.contains("cl_khr_device_uuid")) return {};
  using Uuid = std::array<cl_uchar, CL_UUID_SIZE_KHR>;
  const auto uuid = ask<Uuid>(device, CL_DEVICE_UUID_KHR);
  if (!uuid || *uuid == Uuid{}) return {};
  std::string text;
  for (const cl_uchar byte : *uuid) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 15U];
  }
  return text;
}

std::string format_pci(unsigned domain, unsigned bus, unsigned device, unsigned function) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.%x", domain, bus, device, function);
  return text.data();
}

std::string read_pci_address(cl_device_id device, const Extensions& extensions) {
  if (extensions.contains("cl_khr_pci_bus_info")) {
    if (const auto pci = ask<cl_device_pci_bus_info_khr>(device, CL_DEVICE_PCI_BUS_INFO_KHR)) {
      return format_pci(pci->pci_domain, pci->pci_bus, pci->pci_device, pci->pci_function);
    }
  }
  if (extensions.contains("cl_nv_device_attribute_query")) {
    const auto bus = ask<cl_uint>(device, kPciBusNv);
    const auto slot = ask<cl_uint>(device, kPciSlotNv);
    const auto domain = ask<cl_uint>(device, kPciDomainNv).value_or(0);
    if (bus && slot) return format_pci(domain, *bus & 255U, (*slot >> 3U) & 31U, *slot & 7U);
  }
  if (extensions.contains("cl_amd_device_attribute_query")) {
    const auto topology = ask<cl_device_topology_amd>(device, CL_DEVICE_TOPOLOGY_AMD);
    if (topology && topology->raw.type == CL_DEVICE_TOPOLOGY_TYPE_PCIE_AMD) {
      const auto byte = [](cl_char value) { return static_cast<unsigned>(value) & 255U; };
      return format_pci(0, byte(topology->pcie.bus), byte(topology->pcie.device),
                        byte(topology->pcie.function));
    }
  }
  return {};
}

std::uint32_t read_device_id(cl_device_id device, const Extensions& extensions) {
  if (extensions.contains("cl_amd_device_attribute_query")) {
    return ask<cl_uint>(device, CL_DEVICE_PCIE_ID_AMD).value_or(0);
  }
  if (extensions.contains("cl_intel_device_attribute_query")) {
    return ask<cl_uint>(device, CL_DEVICE_ID_INTEL).value_or(0);
  }
  return 0;
}

std::uint32_t read_subgroup_size(cl_device_id device, const Extensions& extensions) {
  if (extensions.contains("cl_nv_device_attribute_query")) {
    return ask<cl_uint>(device, CL_DEVICE_WARP_SIZE_NV).value_or(0);
  }
  if (extensions.contains("cl_amd_device_attribute_query")) {
    return ask<cl_uint>(device, CL_DEVICE_WAVEFRONT_WIDTH_AMD).value_or(0);
  }
  // Intel's compiler picks one of several for each kernel: then it stays unknown.
  std::size_t bytes = 0;
  if (extensions.contains("cl_intel_required_subgroup_size") &&
      clGetDeviceInfo(device, CL_DEVICE_SUB_GROUP_SIZES_INTEL, 0, nullptr, &bytes) == CL_SUCCESS &&
      bytes == sizeof(std::size_t)) {
    return narrow(ask<std::size_t>(device, CL_DEVICE_SUB_GROUP_SIZES_INTEL).value_or(0));
  }
  return 0;
}

Feature read_features(const DeviceProfile& profile, const Extensions& extensions,
                      bool nvidia_driver) {
  Feature features = Feature::kStorage16;  // vload_half and ushort need no extension
  if (extensions.contains("cl_khr_fp16")) features = features | Feature::kFp16Arithmetic;
  if (extensions.contains("cl_khr_fp64")) features = features | Feature::kFp64;
  // cl_khr_subgroups alone reduces but does not shuffle.
  if (extensions.contains("cl_intel_subgroups") ||
      (extensions.contains("cl_khr_subgroups") && extensions.contains("cl_khr_subgroup_shuffle"))) {
    features = features | Feature::kSubgroupArithmetic;
  }
  // Other drivers for NVIDIA's hardware (rusticl, PoCL) don't read PTX.
  if (nvidia_driver) features = features | Feature::kNvidiaPtx;
  if (nvidia_driver && nvidia_architecture(profile) >= 80) features = features | Feature::kMmaSync;
  // Expected of Hopper; open_cl_device() tries it.
  if (nvidia_driver && profile.compiler.ends_with(" sm_90")) features = features | Feature::kWgmma;
  // The instructions come from inline assembly with 512-bit registers, which the compiler only
  // allots if it was told that the CPU has them; the vector width says so.
  if (profile.kind == DeviceKind::kCpu && is_pocl(profile) && profile.native_float_width == 16) {
    if (bf16_dot_pays()) features = features | Feature::kCpuBf16Dot;
    if (i8_dot_pays()) features = features | Feature::kIntegerDot;
  }
  return features;
}

std::string read_compiler(cl_platform_id platform, cl_device_id device,
                          const Extensions& extensions) {
  std::string compiler = platform_text(platform, CL_PLATFORM_VERSION);
  if (extensions.contains("cl_nv_device_attribute_query")) {
    const auto major = ask<cl_uint>(device, CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV);
    const auto minor = ask<cl_uint>(device, CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV);
    if (major && minor) {
      compiler += " sm_" + std::to_string(*major) + std::to_string(*minor);
    }
  }
  if (extensions.contains("cl_intel_device_attribute_query")) {
    // 10 bits of the architecture, 8 of the release, 8 that are reserved, 6 of the revision.
    const auto ip = ask<cl_uint>(device, CL_DEVICE_IP_VERSION_INTEL).value_or(0);
    if (ip >> 22U != 0)
      compiler += " ip_" + std::to_string(ip >> 22U) + "." + std::to_string(ip >> 14U & 255U);
  }
  return compiler;
}

// "OpenCL 3.0" of "OpenCL 3.0 CUDA"; throws for anything older than 1.2.
std::string read_api_version(cl_device_id device) {
  const std::string text = device_text(device, CL_DEVICE_VERSION);
  unsigned major = 0;
  unsigned minor = 0;
  if (std::sscanf(text.c_str(), "OpenCL %u.%u", &major, &minor) != 2) {
    throw Unusable("says that its version is '" + text + "'");
  }
  if (major * 100 + minor < 102) throw Unusable(text + " is too old, OpenCL 1.2 is needed");
  return "OpenCL " + std::to_string(major) + "." + std::to_string(minor);
}

}  // namespace

std::string platform_name(cl_platform_id platform) {
  return platform_text(platform, CL_PLATFORM_NAME);
}

bool is_pocl(const DeviceProfile& profile) { return profile.driver.starts_with(kPoclName); }

DeviceProfile read_profile(cl_platform_id platform, cl_device_id device) {
  DeviceProfile profile;
  profile.backend = Backend::kOpenCL;
  profile.api_version = read_api_version(device);
  if (!TESSERA_GET(cl_bool, device, CL_DEVICE_AVAILABLE)) throw Unusable("is not available");
  if (!TESSERA_GET(cl_bool, device, CL_DEVICE_COMPILER_AVAILABLE)) {
    throw Unusable("has no compiler");
  }
  if (!TESSERA_GET(cl_bool, device, CL_DEVICE_ENDIAN_LITTLE)) throw Unusable("is big-endian");

  const Extensions extensions = read_extensions(device);
  const std::string platform_said = platform_name(platform);
  profile.kind = read_kind(device);
  profile.name = device_text(device, CL_DEVICE_NAME);
  profile.vendor = device_text(device, CL_DEVICE_VENDOR);
  profile.vendor_id = read_vendor_id(device, profile.vendor);
  profile.device_id = read_device_id(device, extensions);
  profile.driver = platform_said + " " + device_text(device, CL_DRIVER_VERSION);
  profile.compiler = read_compiler(platform, device, extensions);
  profile.uuid = read_uuid(device, extensions);
  profile.pci_address = read_pci_address(device, extensions);
  profile.compute_units = TESSERA_GET(cl_uint, device, CL_DEVICE_MAX_COMPUTE_UNITS);
  profile.subgroup_size = read_subgroup_size(device, extensions);
  profile.native_float_width = TESSERA_GET(cl_uint, device, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT);
  profile.max_group_size = narrow(TESSERA_GET(std::size_t, device, CL_DEVICE_MAX_WORK_GROUP_SIZE));
  // OpenCL names no limit. PoCL compiles a second, slower form of a kernel for grids beyond 65535:
  // a matter of speed and so one for the variants, not a limit.
  profile.max_groups.fill(0x7fffffffU);
  profile.local_memory = TESSERA_GET(cl_ulong, device, CL_DEVICE_LOCAL_MEM_SIZE);
  profile.global_memory = TESSERA_GET(cl_ulong, device, CL_DEVICE_GLOBAL_MEM_SIZE);
  profile.max_allocation = TESSERA_GET(cl_ulong, device, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  profile.max_binding = profile.max_allocation;
  profile.features = read_features(profile, extensions, platform_said.starts_with("NVIDIA"));
  return profile;
}

std::string fingerprint(const DeviceProfile& profile, cl_device_id device) {
  std::string text;
  for (const std::string& part :
       {profile.name, std::to_string(profile.vendor_id), std::to_string(profile.device_id),
        profile.driver, profile.compiler, profile.uuid,
        // PoCL's says which instruction set it compiles for.
        device_text(device, CL_DEVICE_VERSION)}) {
    text += part;
    text += '|';
  }
  return text;
}

}  // namespace tessera::device::opencl
