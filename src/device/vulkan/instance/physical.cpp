// SPDX-License-Identifier: Apache-2.0
#include "device/vulkan/instance/physical.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <set>
#include <span>
#include <string_view>

#include "base/system/environment.hpp"
#include "base/vendor_ids.hpp"
#include "device/quirks.hpp"
#include "tessera/error.hpp"

namespace tessera::device::vulkan {
namespace {

// The device's extensions, and those of them that will be enabled.
class Extensions {
 public:
  Extensions(const PhysicalDevice& device, const Claims* claims) : claims_(claims) {
    const auto list = enumerate<VkExtensionProperties>(
        "vkEnumerateDeviceExtensionProperties",
        [&](std::uint32_t* count, VkExtensionProperties* properties) {
          return device.instance->vk().EnumerateDeviceExtensionProperties(device.handle, nullptr,
                                                                          count, properties);
        });
    for (const VkExtensionProperties& extension : list) names_.insert(extension.extensionName);
    if (claims == nullptr) return;
    for (const std::string& name : claims->extensions) {
      if (!has(name))
        throw InvalidArgument(name + " is said to be enabled, and the device lacks it");
    }
  }
  bool has(std::string_view name) const { return names_.contains(name); }
  // Whether a part of the API is there: by version, or by an extension that then has to be enabled.
  bool know(bool by_version, const char* name) {
    if (by_version) return true;
    if (!has(name) || (claims_ != nullptr && !claims_->extensions.contains(name))) return false;
    enabled_.push_back(name);
    return true;
  }
  const std::vector<const char*>& enabled() const { return enabled_; }

 private:
  std::set<std::string, std::less<>> names_;
  std::vector<const char*> enabled_;
  const Claims* claims_;
};

std::string hex(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

std::string vendor_name(std::uint32_t id) {
  switch (id) {
    case kVendorAmd:
    case 0x1022:
      return "AMD";
    case 0x1010:
      return "Imagination Technologies";
    case 0x106b:
      return "Apple";
    case kVendorNvidia:
      return "NVIDIA";
    case 0x13b5:
      return "Arm";
    case 0x14e4:
      return "Broadcom";
    case 0x1ae0:
      return "Google";
    case 0x144d:
      return "Samsung";
    case 0x19e5:
      return "Huawei";
    case 0x5143:
      return "Qualcomm";
    case kVendorIntel:
      return "Intel";
    case VK_VENDOR_ID_MESA:
      return "Mesa";
    case VK_VENDOR_ID_POCL:
      return "PoCL";
    default: {
      char text[16];
      std::snprintf(text, sizeof(text), "0x%04x", id);
      return text;
    }
  }
}

DeviceKind kind_of(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:  // a share of a card: its memory is as far away
      return DeviceKind::kDiscreteGpu;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return DeviceKind::kIntegratedGpu;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return DeviceKind::kCpu;
    default:
      return DeviceKind::kOther;
  }
}

// The claimed one, or one with a clock, and if possible without graphics: it doesn't stand in the
// desktop's way.
void choose_queue_family(PhysicalDevice& device, const Claims* claims) {
  std::uint32_t count = 0;
  const auto get = device.instance->vk().GetPhysicalDeviceQueueFamilyProperties;
  get(device.handle, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  get(device.handle, &count, families.data());
  if (claims != nullptr) {
    if (claims->queue_family >= count ||
        (families[claims->queue_family].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) {
      throw InvalidArgument("queue family " + std::to_string(claims->queue_family) +
                            " of the device does not compute");
    }
    device.queue_family = claims->queue_family;
    device.timestamp_bits = families[claims->queue_family].timestampValidBits;
    return;
  }
  int best = -1;
  for (std::uint32_t i = 0; i < count; ++i) {
    const VkQueueFamilyProperties& family = families[i];
    if ((family.queueFlags & VK_QUEUE_COMPUTE_BIT) == 0 || family.queueCount == 0) continue;
    const int score = (family.timestampValidBits != 0 ? 2 : 0) +
                      ((family.queueFlags & VK_QUEUE_GRAPHICS_BIT) == 0 ? 1 : 0);
    if (score <= best) continue;
    best = score;
    device.queue_family = i;
    device.timestamp_bits = family.timestampValidBits;
  }
  if (best < 0) throw DeviceError("no queue family of the device computes");
}

template <class Structure>
void link(void**& tail, Structure& structure, VkStructureType type) {
  structure.sType = type;
  *tail = &structure;
  tail = &structure.pNext;
}

void read_properties(PhysicalDevice& device, const Extensions& extensions) {
  const bool v12 = device.api_version >= VK_API_VERSION_1_2;
  VkPhysicalDeviceProperties2 base{};
  base.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  void** tail = &base.pNext;
  VkPhysicalDeviceIDProperties id{};
  link(tail, id, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES);
  VkPhysicalDeviceMaintenance3Properties sizes{};
  link(tail, sizes, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES);
  VkPhysicalDeviceSubgroupProperties subgroup{};
  link(tail, subgroup, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES);
  VkPhysicalDeviceDriverProperties driver{};
  if (v12 || extensions.has(VK_KHR_DRIVER_PROPERTIES_EXTENSION_NAME)) {
    link(tail, driver, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES);
  }
  VkPhysicalDeviceMaintenance4Properties sizes4{};
  if (device.known.maintenance4) {
    link(tail, sizes4, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES);
  }
  VkPhysicalDeviceSubgroupSizeControlProperties size_control{};
  if (device.known.subgroup_size) {
    link(tail, size_control, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES);
  }
  VkPhysicalDevicePCIBusInfoPropertiesEXT pci{};
  const bool on_pci = extensions.has(VK_EXT_PCI_BUS_INFO_EXTENSION_NAME);
  if (on_pci) link(tail, pci, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT);
  VkPhysicalDeviceShaderSMBuiltinsPropertiesNV nvidia{};
  if (extensions.has(VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME)) {
    link(tail, nvidia, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV);
  }
  VkPhysicalDeviceShaderCorePropertiesAMD amd{};
  if (extensions.has(VK_AMD_SHADER_CORE_PROPERTIES_EXTENSION_NAME)) {
    link(tail, amd, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD);
  }
  VkPhysicalDeviceShaderCoreProperties2AMD amd2{};
  if (extensions.has(VK_AMD_SHADER_CORE_PROPERTIES_2_EXTENSION_NAME)) {
    link(tail, amd2, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_2_AMD);
  }
  device.instance->vk().GetPhysicalDeviceProperties2(device.handle, &base);
  const VkPhysicalDeviceProperties& properties = base.properties;
  const VkPhysicalDeviceLimits& limits = properties.limits;

  DeviceProfile& profile = device.profile;
  profile.backend = Backend::kVulkan;
  profile.kind = kind_of(properties.deviceType);
  profile.name = properties.deviceName;
  profile.vendor_id = properties.vendorID;
  profile.vendor = vendor_name(properties.vendorID);
  profile.device_id = properties.deviceID;
  profile.driver = driver.driverName;
  const std::string info = driver.driverInfo;
  profile.driver += (profile.driver.empty() || info.empty() ? "" : " ") + info;
  if (info.empty()) {
    profile.driver +=
        (profile.driver.empty() ? "version " : " ") + std::to_string(properties.driverVersion);
  }
  // Mesa names the version of LLVM where that compiles its shaders.
  const std::size_t llvm = info.find("(LLVM ");
  if (llvm != std::string::npos)
    profile.compiler = info.substr(llvm + 1, info.find(')', llvm) - llvm - 1);
  profile.api_version = "Vulkan " + version_text(properties.apiVersion);
  profile.uuid = hex(id.deviceUUID);
  if (on_pci) {
    char address[32];
    std::snprintf(address, sizeof(address), "%04x:%02x:%02x.%x", pci.pciDomain, pci.pciBus,
                  pci.pciDevice, pci.pciFunction);
    profile.pci_address = address;
  }
  profile.compute_units =
      nvidia.shaderSMCount != 0 ? nvidia.shaderSMCount
      : amd2.activeComputeUnitCount != 0
          ? amd2.activeComputeUnitCount
          : amd.shaderEngineCount * amd.shaderArraysPerEngineCount * amd.computeUnitsPerShaderArray;
  profile.subgroup_size = subgroup.subgroupSize;
  if (profile.kind == DeviceKind::kCpu) profile.native_float_width = subgroup.subgroupSize;
  profile.max_group_size = limits.maxComputeWorkGroupInvocations;
  std::copy_n(limits.maxComputeWorkGroupCount, 3, profile.max_groups.begin());
  profile.local_memory = limits.maxComputeSharedMemorySize;
  profile.max_allocation = sizes.maxMemoryAllocationSize;
  if (sizes4.maxBufferSize != 0) {
    profile.max_allocation = std::min<std::uint64_t>(profile.max_allocation, sizes4.maxBufferSize);
  }
  profile.max_binding = limits.maxStorageBufferRange;
  profile.max_push_constants = limits.maxPushConstantsSize;
  constexpr VkSubgroupFeatureFlags kWanted =
      VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_VOTE_BIT |
      VK_SUBGROUP_FEATURE_ARITHMETIC_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
  if ((subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0) {
    device.subgroup_operations = subgroup.supportedOperations;
  }
  if ((device.subgroup_operations & kWanted) == kWanted) {
    profile.features = profile.features | Feature::kSubgroupArithmetic;
  }

  device.limits = limits;
  std::copy_n(properties.pipelineCacheUUID, VK_UUID_SIZE, device.cache_uuid.begin());
  device.require_subgroups =
      (size_control.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0 &&
      size_control.minSubgroupSize <= subgroup.subgroupSize &&
      subgroup.subgroupSize <= size_control.maxSubgroupSize;
  device.min_subgroup_size = size_control.minSubgroupSize;
  device.max_subgroups = size_control.maxComputeWorkgroupSubgroups;
}

// What is offered and not enabled is as if it were not offered.
void keep_enabled(FeatureChain& chain, const FeatureChain& enabled) {
  const auto keep = [](VkBool32& offered, VkBool32 claimed, const char* name) {
    if (claimed == VK_TRUE && offered == VK_FALSE) {
      throw InvalidArgument(std::string(name) +
                            " is said to be enabled, and the device, with the extensions that are "
                            "said to be enabled, does not offer it");
    }
    offered &= claimed;
  };
#define TESSERA_KEEP(structure, member) \
  keep(chain.structure.member, enabled.structure.member, #member)
  TESSERA_KEEP(base.features, shaderFloat64);
  TESSERA_KEEP(storage16, storageBuffer16BitAccess);
  TESSERA_KEEP(float16, shaderFloat16);
  TESSERA_KEEP(integer_dot, shaderIntegerDotProduct);
  TESSERA_KEEP(memory_model, vulkanMemoryModel);
  TESSERA_KEEP(subgroup_size, subgroupSizeControl);
  TESSERA_KEEP(subgroup_size, computeFullSubgroups);
  TESSERA_KEEP(maintenance4, maintenance4);
  TESSERA_KEEP(cooperative_matrix, cooperativeMatrix);
  TESSERA_KEEP(cooperative_matrix2, cooperativeMatrixReductions);
  TESSERA_KEEP(cooperative_matrix2, cooperativeMatrixConversions);
  TESSERA_KEEP(cooperative_matrix2, cooperativeMatrixPerElementOperations);
  TESSERA_KEEP(bfloat16, shaderBFloat16Type);
  TESSERA_KEEP(bfloat16, shaderBFloat16CooperativeMatrix);
  TESSERA_KEEP(timeline, timelineSemaphore);
#undef TESSERA_KEEP
}

void read_features(PhysicalDevice& device, const Claims* claims) {
  FeatureChain chain(device.known);
  device.instance->vk().GetPhysicalDeviceFeatures2(device.handle, &chain.base);
  if (claims != nullptr) keep_enabled(chain, claims->features);
  Feature& features = device.profile.features;
  const auto add = [&](VkBool32 offered, Feature feature) {
    if (offered == VK_TRUE) features = features | feature;
  };
  add(chain.storage16.storageBuffer16BitAccess, Feature::kStorage16);
  add(chain.float16.shaderFloat16, Feature::kFp16Arithmetic);
  add(chain.base.features.shaderFloat64, Feature::kFp64);
  add(chain.integer_dot.shaderIntegerDotProduct, Feature::kIntegerDot);
  // Matrices need the memory model.
  add(chain.cooperative_matrix.cooperativeMatrix & chain.memory_model.vulkanMemoryModel,
      Feature::kCooperativeMatrix);
  add(chain.cooperative_matrix2.cooperativeMatrixReductions &
          chain.cooperative_matrix2.cooperativeMatrixConversions &
          chain.cooperative_matrix2.cooperativeMatrixPerElementOperations,
      Feature::kMatrixRegisters);
  add(chain.bfloat16.shaderBFloat16Type & chain.bfloat16.shaderBFloat16CooperativeMatrix,
      Feature::kBf16Matrix);
  features = without(features, withheld_features(device.profile));
  if (!has(features, Feature::kCooperativeMatrix))
    features = without(features, Feature::kMatrixRegisters | Feature::kBf16Matrix);
  device.local_size_id = chain.maintenance4.maintenance4 == VK_TRUE;
  device.require_subgroups =
      device.require_subgroups && chain.subgroup_size.subgroupSizeControl == VK_TRUE;
  // Intel's registers are shared out among the lanes: sub-groups of the largest size, which its
  // drivers report, leave a lane 32 registers or 64, the smallest 128.
  if (device.require_subgroups && device.profile.vendor_id == kVendorIntel)
    device.profile.subgroup_size = device.min_subgroup_size;
  device.full_subgroups =
      device.require_subgroups && chain.subgroup_size.computeFullSubgroups == VK_TRUE;
  device.timeline_semaphores = chain.timeline.timelineSemaphore == VK_TRUE;
}

// Drivers have crashed when asked, so those that are not to be used are not.
void read_matrix_shapes(PhysicalDevice& device) {
  if (!has(device.profile.features, Feature::kCooperativeMatrix)) return;
  const auto get = device.instance->function<PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR>(
      "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
  if (get == nullptr) return;
  const auto list = enumerate<VkCooperativeMatrixPropertiesKHR>(
      "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR",
      [&](std::uint32_t* count, VkCooperativeMatrixPropertiesKHR* shapes) {
        for (std::uint32_t i = 0; shapes != nullptr && i < *count; ++i) {
          shapes[i] = {};
          shapes[i].sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
        }
        return get(device.handle, count, shapes);
      });
  for (const VkCooperativeMatrixPropertiesKHR& shape : list) {
    const bool half = shape.AType == VK_COMPONENT_TYPE_FLOAT16_KHR;
    const bool bfloat16 = shape.AType == VK_COMPONENT_TYPE_BFLOAT16_KHR &&
                          has(device.profile.features, Feature::kBf16Matrix);
    if ((!half && !bfloat16) || shape.BType != shape.AType ||
        shape.CType != VK_COMPONENT_TYPE_FLOAT32_KHR ||
        shape.ResultType != VK_COMPONENT_TYPE_FLOAT32_KHR || shape.scope != VK_SCOPE_SUBGROUP_KHR) {
      continue;
    }
    device.profile.matrix_shapes.push_back({.input = half ? DType::kF16 : DType::kBF16,
                                            .m = shape.MSize,
                                            .n = shape.NSize,
                                            .k = shape.KSize});
  }
}

void read_memory(PhysicalDevice& device) {
  device.instance->vk().GetPhysicalDeviceMemoryProperties(device.handle, &device.memory);
  for (std::uint32_t i = 0; i < device.memory.memoryHeapCount; ++i) {
    const VkMemoryHeap& heap = device.memory.memoryHeaps[i];
    if ((heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) == 0) continue;
    device.profile.global_memory = std::max<std::uint64_t>(device.profile.global_memory, heap.size);
  }
}

}  // namespace

FeatureChain::FeatureChain(const KnownStructures& known) {
  base.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  void** tail = &base.pNext;
  link(tail, storage16, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES);
  if (known.float16)
    link(tail, float16, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES);
  if (known.integer_dot) {
    link(tail, integer_dot, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES);
  }
  if (known.memory_model) {
    link(tail, memory_model, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES);
  }
  if (known.subgroup_size) {
    link(tail, subgroup_size, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES);
  }
  if (known.maintenance4) {
    link(tail, maintenance4, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES);
  }
  if (known.cooperative_matrix) {
    link(tail, cooperative_matrix,
         VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR);
  }
  if (known.cooperative_matrix2) {
    link(tail, cooperative_matrix2,
         VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV);
  }
  if (known.bfloat16)
    link(tail, bfloat16, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR);
  if (known.timeline)
    link(tail, timeline, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES);
}

std::shared_ptr<const PhysicalDevice> examine(std::shared_ptr<const Instance> instance,
                                              VkPhysicalDevice handle, const Claims* claims) {
  auto device = std::make_shared<PhysicalDevice>();
  device->instance = std::move(instance);
  device->handle = handle;
  VkPhysicalDeviceProperties properties;
  device->instance->vk().GetPhysicalDeviceProperties(handle, &properties);
  if (properties.apiVersion < VK_API_VERSION_1_1) {
    throw DeviceError("the device offers Vulkan " + version_text(properties.apiVersion) +
                      "; at least 1.1 is needed");
  }
  device->api_version = std::min(properties.apiVersion, device->instance->api_version());
  choose_queue_family(*device, claims);

  Extensions extensions(*device, claims);
  const bool v12 = device->api_version >= VK_API_VERSION_1_2;
  const bool v13 = device->api_version >= VK_API_VERSION_1_3;
  KnownStructures& known = device->known;
  known.float16 = extensions.know(v12, VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME);
  known.memory_model = extensions.know(v12, VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME);
  known.integer_dot = extensions.know(v13, VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
  known.subgroup_size = extensions.know(v13, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
  known.maintenance4 = extensions.know(v13, VK_KHR_MAINTENANCE_4_EXTENSION_NAME);
  // With TESSERA_DISABLE=coopmat the driver isn't even asked.
  known.cooperative_matrix = !has(environment().disabled, Feature::kCooperativeMatrix) &&
                             extensions.know(false, VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME);
  known.cooperative_matrix2 = known.cooperative_matrix &&
                              !has(environment().disabled, Feature::kMatrixRegisters) &&
                              extensions.know(false, VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME);
  known.bfloat16 = known.cooperative_matrix && !has(environment().disabled, Feature::kBf16Matrix) &&
                   extensions.know(false, VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME);
  // Applications may bring some; Tessera's own device needs none.
  known.timeline =
      claims != nullptr && extensions.know(v12, VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME);
  extensions.know(false, "VK_KHR_portability_subset");  // where it is offered, it has to be enabled
  device->extensions = extensions.enabled();

  read_properties(*device, extensions);
  read_features(*device, claims);
  read_matrix_shapes(*device);
  read_memory(*device);
  return device;
}

}  // namespace tessera::device::vulkan
