// SPDX-License-Identifier: Apache-2.0
#include "device/vulkan/memory/foreign.hpp"

#include <algorithm>
#include <string>

#include "device/platforms.hpp"
#include "device/vulkan/device.hpp"
#include "device/vulkan/streams/recorder.hpp"
#include "device/vulkan/streams/stream.hpp"
#include "tessera/error.hpp"

namespace tessera::device::vulkan {
namespace {

template <class Handle>
void require(Handle handle, const char* what) {
  if (handle == VK_NULL_HANDLE) throw InvalidArgument(std::string("the ") + what + " is null");
}

// Adds what one structure of the chain enables.
void add(Claims& claims, const VkBaseInStructure& given) {
  FeatureChain& features = claims.features;
  const auto as = [&]<class T>(const T* /*like*/) -> const T& {
    return reinterpret_cast<const T&>(given);
  };
#define TESSERA_SAME(type, mine)                \
  mine = as(static_cast<const type*>(nullptr)); \
  break
  switch (static_cast<std::int64_t>(given.sType)) {
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2:
      features.base.features = as(static_cast<const VkPhysicalDeviceFeatures2*>(nullptr)).features;
      break;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES:
      features.storage16.storageBuffer16BitAccess =
          as(static_cast<const VkPhysicalDeviceVulkan11Features*>(nullptr))
              .storageBuffer16BitAccess;
      break;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES: {
      const auto& core = as(static_cast<const VkPhysicalDeviceVulkan12Features*>(nullptr));
      features.float16.shaderFloat16 = core.shaderFloat16;
      features.memory_model.vulkanMemoryModel = core.vulkanMemoryModel;
      features.timeline.timelineSemaphore = core.timelineSemaphore;
      break;
    }
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES: {
      const auto& core = as(static_cast<const VkPhysicalDeviceVulkan13Features*>(nullptr));
      features.integer_dot.shaderIntegerDotProduct = core.shaderIntegerDotProduct;
      features.subgroup_size.subgroupSizeControl = core.subgroupSizeControl;
      features.subgroup_size.computeFullSubgroups = core.computeFullSubgroups;
      features.maintenance4.maintenance4 = core.maintenance4;
      break;
    }
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES:
      TESSERA_SAME(VkPhysicalDeviceTimelineSemaphoreFeatures, features.timeline);
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES:
      TESSERA_SAME(VkPhysicalDevice16BitStorageFeatures, features.storage16);
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES:
      TESSERA_SAME(VkPhysicalDeviceShaderFloat16Int8Features, features.float16);
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES:
      TESSERA_SAME(VkPhysicalDeviceShaderIntegerDotProductFeatures, features.integer_dot);
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES:
      TESSERA_SAME(VkPhysicalDeviceVulkanMemoryModelFeatures, features.memory_model);
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES:
      TESSERA_SAME(VkPhysicalDeviceSubgroupSizeControlFeatures, features.subgroup_size);
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES:
      TESSERA_SAME(VkPhysicalDeviceMaintenance4Features, features.maintenance4);
    case static_cast<std::int64_t>(
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR):
      TESSERA_SAME(VkPhysicalDeviceCooperativeMatrixFeaturesKHR, features.cooperative_matrix);
    case static_cast<std::int64_t>(
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV):
      TESSERA_SAME(VkPhysicalDeviceCooperativeMatrix2FeaturesNV, features.cooperative_matrix2);
    case static_cast<std::int64_t>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR):
      TESSERA_SAME(VkPhysicalDeviceShaderBfloat16FeaturesKHR, features.bfloat16);
    default:  // features that Tessera has no use for
      break;
  }
#undef TESSERA_SAME
}

void read_claims(Claims& claims, const ForeignDevice& given) {
  claims.queue_family = given.queue_family;
  for (const char* extension : given.extensions) {
    if (extension == nullptr) throw InvalidArgument("the name of an extension is null");
    claims.extensions.insert(extension);
  }
  if (given.base_features != nullptr) claims.features.base.features = *given.base_features;
  for (const auto* each = static_cast<const VkBaseInStructure*>(given.features); each != nullptr;
       each = each->pNext)
    add(claims, *each);
}

VulkanDevice& own(Device& device) {
  auto* mine = dynamic_cast<VulkanDevice*>(&device);
  if (mine == nullptr) throw InvalidArgument("the context is on no Vulkan device");
  mine->core()->require_alive();
  return *mine;
}

VulkanStream& timeline_stream(Stream& stream, VkSemaphore semaphore) {
  auto* mine = dynamic_cast<VulkanStream*>(&stream);
  if (mine == nullptr) throw InvalidArgument("the stream submits nothing to a Vulkan queue");
  require(semaphore, "VkSemaphore");
  if (!mine->core().physical().timeline_semaphores)
    throw InvalidArgument("timelineSemaphore was not said to be enabled");
  return *mine;
}

}  // namespace

Found find_in(const ForeignDevice& given) {
  require(given.instance, "VkInstance");
  require(given.physical_device, "VkPhysicalDevice");
  require(given.device, "VkDevice");
  require(given.queue, "VkQueue");
  if (given.api_version < VK_API_VERSION_1_1) {
    throw InvalidArgument("the instance was made for Vulkan " + version_text(given.api_version) +
                          "; at least 1.1 is needed");
  }
  if (static_cast<bool>(given.lock) != static_cast<bool>(given.unlock))
    throw InvalidArgument("a queue's lock() and unlock() go together");
  const auto instance = Instance::adopt(given.instance, given.api_version, given.find);
  const std::vector<VkPhysicalDevice> known = instance->physical_devices();
  if (std::ranges::count(known, given.physical_device) == 0)
    throw InvalidArgument("the VkPhysicalDevice is not one of the VkInstance");
  Claims claims;
  read_claims(claims, given);
  const auto physical = examine(instance, given.physical_device, &claims);
  Found found{.profile = physical->profile, .open = {}};
  settle(found.profile);
  found.open = [physical,
                queue = ForeignQueue{given.device, given.queue, given.lock, given.unlock}] {
    return std::make_shared<VulkanDevice>(Core::adopt(physical, queue));
  };
  return found;
}

BufferPtr adopt_memory(Device& device, VkBuffer buffer, std::uint64_t offset, std::uint64_t bytes) {
  VulkanDevice& mine = own(device);
  require(buffer, "VkBuffer");
  const VkPhysicalDeviceLimits& limits = mine.core()->physical().limits;
  if (bytes == 0 || bytes % 4 != 0)
    throw InvalidArgument("a range of " + std::to_string(bytes) +
                          " bytes; kernels read words of 4, so it is a multiple of 4 and not 0");
  if (offset % limits.minStorageBufferOffsetAlignment != 0) {
    throw InvalidArgument("a range at byte " + std::to_string(offset) +
                          " of a VkBuffer; minStorageBufferOffsetAlignment is " +
                          std::to_string(limits.minStorageBufferOffsetAlignment) +
                          ": begin before it, and use TensorSpec::offset");
  }
  VkMemoryRequirements needs;
  mine.core()->vk().GetBufferMemoryRequirements(mine.core()->handle(), buffer, &needs);
  if (offset > needs.size || bytes > needs.size - offset) {
    throw InvalidArgument("a range of bytes " + range_text(offset, bytes) +
                          " of a VkBuffer whose memory has " + std::to_string(needs.size));
  }
  return VulkanBuffer::adopt(mine.core(), buffer, offset, bytes);
}

VkBuffer memory_of(const Buffer& buffer) {
  const auto* mine = dynamic_cast<const VulkanBuffer*>(&buffer);
  if (mine == nullptr) throw InvalidArgument("the tensor is on no Vulkan device");
  return mine->handle();
}

std::unique_ptr<Stream> record_into(Device& device, VkCommandBuffer commands) {
  VulkanDevice& mine = own(device);
  return std::make_unique<Recorder>(mine.core(), mine.absent(), commands);
}

void restart(Stream& stream, VkCommandBuffer commands) {
  auto* mine = dynamic_cast<Recorder*>(&stream);
  if (mine == nullptr)
    throw InvalidArgument("the stream records into no command buffer: vulkan::record() makes one");
  mine->restart(commands);
}

void wait_for(Stream& stream, VkSemaphore semaphore, std::uint64_t value) {
  timeline_stream(stream, semaphore).wait_for(semaphore, value);
}

void signal(Stream& stream, VkSemaphore semaphore, std::uint64_t value) {
  timeline_stream(stream, semaphore).signal(semaphore, value);
}

}  // namespace tessera::device::vulkan
