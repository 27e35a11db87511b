// SPDX-License-Identifier: Apache-2.0
#include <exception>
#include <string>

#include "device/device.hpp"
#include "device/vulkan/device.hpp"
#include "device/vulkan/instance/physical.hpp"

namespace tessera::device {
namespace {

std::string device_name(const vulkan::Instance& instance, VkPhysicalDevice device) {
  VkPhysicalDeviceProperties properties;
  instance.vk().GetPhysicalDeviceProperties(device, &properties);
  return std::string("vulkan: ") + properties.deviceName;
}

void probe_into(PlatformProbe& probe) {
  const auto instance = vulkan::Instance::create();
  const std::vector<VkPhysicalDevice> handles = instance->physical_devices();
  if (handles.empty()) probe.failures.push_back({"vulkan", "no driver offers a device"});
  for (const VkPhysicalDevice handle : handles) {
    try {
      const auto physical = vulkan::examine(instance, handle);
      probe.found.push_back({.profile = physical->profile, .open = [physical] {
                               return std::make_shared<vulkan::VulkanDevice>(
                                   vulkan::Core::open(physical));
                             }});
    } catch (const std::exception& error) {
      probe.failures.push_back({device_name(*instance, handle), error.what()});
    }
  }
}

}  // namespace

PlatformProbe probe_vulkan() {
  PlatformProbe probe;
  try {
    probe_into(probe);
  } catch (const std::exception& error) {
    probe.failures.push_back({"vulkan", error.what()});
  }
  return probe;
}

}  // namespace tessera::device
