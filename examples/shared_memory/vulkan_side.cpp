// SPDX-License-Identifier: Apache-2.0
#include "vulkan_side.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace {

constexpr auto kKind = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
constexpr VkBufferUsageFlags kUsage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                      VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                      VK_BUFFER_USAGE_TRANSFER_DST_BIT;

void check(VkResult result, const char* call) {
  if (result != VK_SUCCESS)
    throw std::runtime_error(std::string(call) + " gave " + std::to_string(result));
}

bool has_extension(VkPhysicalDevice device, const char* name) {
  std::uint32_t count = 0;
  vkEnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> extensions(count);
  vkEnumerateDeviceExtensionProperties(device, nullptr, &count, extensions.data());
  return std::any_of(extensions.begin(), extensions.end(), [&](const auto& extension) {
    return std::strcmp(extension.extensionName, name) == 0;
  });
}

}  // namespace

VulkanSide::VulkanSide(VkDeviceSize bytes) {
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.apiVersion = VK_API_VERSION_1_1;
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;
  if (vkCreateInstance(&info, nullptr, &instance) != VK_SUCCESS)
    throw NotShared("there is no Vulkan driver here");
  choose_device();
  create_device();
  create_buffer(bytes);
}

void VulkanSide::choose_device() {
  std::uint32_t count = 0;
  vkEnumeratePhysicalDevices(instance, &count, nullptr);
  std::vector<VkPhysicalDevice> devices(count);
  vkEnumeratePhysicalDevices(instance, &count, devices.data());
  for (VkPhysicalDevice each : devices) {
    VkPhysicalDeviceExternalBufferInfo wanted{};
    wanted.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO;
    wanted.usage = kUsage;
    wanted.handleType = kKind;
    VkExternalBufferProperties offered{};
    offered.sType = VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES;
    vkGetPhysicalDeviceExternalBufferProperties(each, &wanted, &offered);
    const auto features = offered.externalMemoryProperties.externalMemoryFeatures;
    if ((features & VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT) == 0 ||
        !has_extension(each, VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME))
      continue;
    physical = each;
    VkPhysicalDeviceIDProperties id{};
    id.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES;
    VkPhysicalDeviceProperties2 properties{};
    properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    properties.pNext = &id;
    vkGetPhysicalDeviceProperties2(each, &properties);
    std::copy_n(id.deviceUUID, uuid.size(), uuid.begin());
    // A graphics card before a processor that draws.
    if (properties.properties.deviceType != VK_PHYSICAL_DEVICE_TYPE_CPU) return;
  }
  if (physical == VK_NULL_HANDLE)
    throw NotShared("no Vulkan device exports memory (VK_KHR_external_memory_fd)");
}

void VulkanSide::create_device() {
  std::vector<VkQueueFamilyProperties> families(16);
  auto count = static_cast<std::uint32_t>(families.size());
  vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families.data());
  while ((families.at(family).queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) ++family;
  const float priority = 1;
  VkDeviceQueueCreateInfo queue_info{};
  queue_info.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue_info.queueFamilyIndex = family;
  queue_info.queueCount = 1;
  queue_info.pQueuePriorities = &priority;
  const char* const extension = VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME;
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue_info;
  info.enabledExtensionCount = 1;
  info.ppEnabledExtensionNames = &extension;
  check(vkCreateDevice(physical, &info, nullptr, &device), "vkCreateDevice");
  vkGetDeviceQueue(device, family, 0, &queue);
}

void VulkanSide::create_buffer(VkDeviceSize bytes) {
  VkExternalMemoryBufferCreateInfo external{};
  external.sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO;
  external.handleTypes = kKind;
  VkBufferCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.pNext = &external;
  info.size = bytes;
  info.usage = kUsage;
  check(vkCreateBuffer(device, &info, nullptr, &buffer), "vkCreateBuffer");
  VkMemoryRequirements needs;
  vkGetBufferMemoryRequirements(device, buffer, &needs);
  VkPhysicalDeviceMemoryProperties types;
  vkGetPhysicalDeviceMemoryProperties(physical, &types);
  VkMemoryDedicatedAllocateInfo dedicated{};
  dedicated.sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO;
  dedicated.buffer = buffer;
  VkExportMemoryAllocateInfo exported{};
  exported.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO;
  exported.pNext = &dedicated;
  exported.handleTypes = kKind;
  VkMemoryAllocateInfo memory{};
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  memory.pNext = &exported;
  memory.allocationSize = needs.size;
  const auto serves = [&](std::uint32_t type) {
    return (needs.memoryTypeBits >> type & 1U) != 0 &&
           (types.memoryTypes[type].propertyFlags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) != 0;
  };
  while (memory.memoryTypeIndex + 1 < types.memoryTypeCount && !serves(memory.memoryTypeIndex))
    ++memory.memoryTypeIndex;
  check(vkAllocateMemory(device, &memory, nullptr, &memory_), "vkAllocateMemory");
  check(vkBindBufferMemory(device, buffer, memory_, 0), "vkBindBufferMemory");
  memory_bytes = needs.size;
}

int VulkanSide::export_memory() const {
  const auto get =
      reinterpret_cast<PFN_vkGetMemoryFdKHR>(vkGetDeviceProcAddr(device, "vkGetMemoryFdKHR"));
  VkMemoryGetFdInfoKHR info{};
  info.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR;
  info.memory = memory_;
  info.handleType = kKind;
  int descriptor = -1;
  check(get(device, &info, &descriptor), "vkGetMemoryFdKHR");
  return descriptor;
}

VulkanSide::~VulkanSide() {
  if (device != VK_NULL_HANDLE) {
    vkDeviceWaitIdle(device);
    vkDestroyBuffer(device, buffer, nullptr);
    vkFreeMemory(device, memory_, nullptr);
    vkDestroyDevice(device, nullptr);
  }
  if (instance != VK_NULL_HANDLE) vkDestroyInstance(instance, nullptr);
}
