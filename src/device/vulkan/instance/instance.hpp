// SPDX-License-Identifier: Apache-2.0
// The VkInstance, and when drivers may still be called.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "device/vulkan/functions.hpp"

namespace tessera::device::vulkan {

// A driver is a library with static objects of its own. Ours may outlive them (a Context in a
// static variable), and a forked child has the objects but not the threads. From either moment on
// nothing is destroyed and nothing is called.
bool driver_usable() noexcept;
void require_usable_driver();  // throws DeviceError saying which of the two

// At exit every device in this list is waited for while its driver still stands.
void register_device(VkDevice device, PFN_vkDeviceWaitIdle wait, std::mutex& queue_mutex);
void unregister_device(VkDevice device) noexcept;

class Instance {
 public:
  static std::shared_ptr<const Instance> create();  // throws DeviceError
  // The application's, which outlives the result; made for this version of the API. `find`: its
  // own loader's; null: the process'.
  static std::shared_ptr<const Instance> adopt(VkInstance handle, std::uint32_t api_version,
                                               PFN_vkGetInstanceProcAddr find);
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;
  ~Instance();

  const Functions& vk() const { return vk_; }
  VkInstance handle() const { return handle_; }
  // From 1.1 to 1.3; no device is used beyond it.
  std::uint32_t api_version() const { return api_version_; }
  // Names and labels may be used.
  bool debug_utils() const { return debug_utils_; }
  std::vector<VkPhysicalDevice> physical_devices() const;
  template <class Function>
  Function function(const char* name) const {
    return reinterpret_cast<Function>(vk_.GetInstanceProcAddr(handle_, name));
  }

 private:
  Instance(std::uint32_t api_version, bool debug_utils, bool portability);
  Instance(VkInstance handle, std::uint32_t api_version, const Functions& vk);
  bool tool_reads_labels() const;

  Functions vk_;
  VkInstance handle_ = VK_NULL_HANDLE;
  std::uint32_t api_version_;
  bool debug_utils_;
  bool owned_ = true;
};

}  // namespace tessera::device::vulkan
