// SPDX-License-Identifier: Apache-2.0
#include "device/vulkan/instance/instance.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>

#include "base/system/log.hpp"
#include "tessera/error.hpp"

namespace tessera::device::vulkan {
namespace {

enum class DriverState { kUsable, kExiting, kForked };
std::atomic<DriverState> driver_state{DriverState::kUsable};

struct LiveDevices {
  std::mutex mutex;
  struct Device {
    PFN_vkDeviceWaitIdle wait;
    std::mutex* queue_mutex;
  };
  std::map<VkDevice, Device> devices;
};
LiveDevices& live_devices() {
  static auto* const devices = new LiveDevices;  // never destroyed: statics unregister late
  return *devices;
}

void leave_process() {
  DriverState expected = DriverState::kUsable;
  if (!driver_state.compare_exchange_strong(expected, DriverState::kExiting)) return;
  LiveDevices& live = live_devices();
  const std::lock_guard lock(live.mutex);
  for (const auto& [handle, device] : live.devices) {
    const std::lock_guard queue_lock(*device.queue_mutex);
    device.wait(handle);
  }
}

// Exit handlers run in reverse order. Vulkan's loader has just loaded its drivers, so this one runs
// before the destructors of their statics, each time that they are loaded.
void watch_process() {
  std::atexit(leave_process);
#if defined(__unix__) || defined(__APPLE__)
  static const int once =
      pthread_atfork(nullptr, nullptr, [] { driver_state = DriverState::kForked; });
  static_cast<void>(once);
#endif
}

// An application may open many contexts on one instance, whose drivers are loaded once.
bool is_new(VkInstance instance) {
  static std::mutex mutex;
  static auto* const known = new std::set<VkInstance>;  // never destroyed, as live_devices()
  const std::lock_guard lock(mutex);
  return known->insert(instance).second;
}

bool offers(const std::vector<VkExtensionProperties>& extensions, const char* name) {
  return std::ranges::any_of(
      extensions, [&](const auto& e) { return std::strcmp(e.extensionName, name) == 0; });
}

}  // namespace

bool driver_usable() noexcept { return driver_state == DriverState::kUsable; }

void require_usable_driver() {
  switch (driver_state.load()) {
    case DriverState::kUsable:
      return;
    case DriverState::kExiting:
      throw DeviceError("the process is exiting: Vulkan can't be used any more");
    case DriverState::kForked:
      throw DeviceError(
          "this process was forked after its parent had opened Vulkan, whose drivers don't work in "
          "the child");
  }
}

void register_device(VkDevice device, PFN_vkDeviceWaitIdle wait, std::mutex& queue_mutex) {
  LiveDevices& live = live_devices();
  const std::lock_guard lock(live.mutex);
  live.devices.emplace(device, LiveDevices::Device{wait, &queue_mutex});
}

void unregister_device(VkDevice device) noexcept {
  if (driver_state == DriverState::kForked) return;  // the parent's other threads may hold the lock
  LiveDevices& live = live_devices();
  const std::lock_guard lock(live.mutex);
  live.devices.erase(device);
}

std::shared_ptr<const Instance> Instance::create() {
  require_usable_driver();
  const Functions& vk = Functions::of_loader();
  std::uint32_t version = VK_API_VERSION_1_0;
  check_call(vk.EnumerateInstanceVersion(&version), "vkEnumerateInstanceVersion");
  if (version < VK_API_VERSION_1_1) {
    throw DeviceError("the Vulkan loader offers version " + version_text(version) +
                      "; at least 1.1 is needed");
  }
  const auto extensions = enumerate<VkExtensionProperties>(
      "vkEnumerateInstanceExtensionProperties",
      [&](std::uint32_t* count, VkExtensionProperties* list) {
        return vk.EnumerateInstanceExtensionProperties(nullptr, count, list);
      });
  version = std::min(version, VK_API_VERSION_1_3);
  const bool labels = offers(extensions, VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
  const bool portability = offers(extensions, VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME);
  const auto make = [&](bool debug_utils) {
    return std::shared_ptr<Instance>(new Instance(version, debug_utils, portability));
  };
  std::shared_ptr<Instance> instance = make(labels && log_enabled(LogLevel::kDebug));
  // Whether a tool listens can be asked only once there is an instance.
  if (labels && !instance->debug_utils() && instance->tool_reads_labels()) {
    instance.reset();
    instance = make(true);
  }
  return instance;
}

Instance::Instance(std::uint32_t api_version, bool debug_utils, bool portability)
    : vk_(Functions::of_loader()), api_version_(api_version), debug_utils_(debug_utils) {
  std::vector<const char*> extensions;
  if (debug_utils) extensions.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
  if (portability) extensions.push_back(VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME);
  const VkApplicationInfo application{.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                      .pNext = nullptr,
                                      .pApplicationName = nullptr,
                                      .applicationVersion = 0,
                                      .pEngineName = "Tessera",
                                      .engineVersion = 0,
                                      .apiVersion = api_version};
  const VkInstanceCreateFlags flags =
      portability ? VkInstanceCreateFlags{VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR} : 0;
  const VkInstanceCreateInfo info{
      .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
      .pNext = nullptr,
      .flags = flags,
      .pApplicationInfo = &application,
      .enabledLayerCount = 0,
      .ppEnabledLayerNames = nullptr,
      .enabledExtensionCount = static_cast<std::uint32_t>(extensions.size()),
      .ppEnabledExtensionNames = extensions.data()};
  const VkResult result = vk_.CreateInstance(&info, nullptr, &handle_);
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER) {
    throw DeviceError(
        "vkCreateInstance: VK_ERROR_INCOMPATIBLE_DRIVER (no Vulkan driver is installed)");
  }
  check_call(result, "vkCreateInstance");
  watch_process();
}

Instance::Instance(VkInstance handle, std::uint32_t api_version, const Functions& vk)
    : vk_(vk), handle_(handle), api_version_(api_version), debug_utils_(false), owned_(false) {
  if (is_new(handle)) watch_process();
}

std::shared_ptr<const Instance> Instance::adopt(VkInstance handle, std::uint32_t api_version,
                                                PFN_vkGetInstanceProcAddr find) {
  require_usable_driver();
  return std::shared_ptr<Instance>(new Instance(
      handle, std::min(api_version, std::uint32_t{VK_API_VERSION_1_3}),
      find == nullptr ? Functions::of_loader() : Functions::of_application(find, handle)));
}

Instance::~Instance() {
  if (owned_ && driver_usable()) vk_.DestroyInstance(handle_, nullptr);
}

std::vector<VkPhysicalDevice> Instance::physical_devices() const {
  return enumerate<VkPhysicalDevice>("vkEnumeratePhysicalDevices",
                                     [this](std::uint32_t* count, VkPhysicalDevice* list) {
                                       return vk_.EnumeratePhysicalDevices(handle_, count, list);
                                     });
}

// Validation layers, RenderDoc and the vendors' profilers say that they are there.
bool Instance::tool_reads_labels() const try {
  const auto get_tools =
      function<PFN_vkGetPhysicalDeviceToolProperties>("vkGetPhysicalDeviceToolProperties");
  if (get_tools == nullptr) return false;
  for (const VkPhysicalDevice device : physical_devices()) {
    VkPhysicalDeviceProperties properties;
    vk_.GetPhysicalDeviceProperties(device, &properties);
    if (std::min(properties.apiVersion, api_version_) < VK_API_VERSION_1_3) continue;
    const auto tools = enumerate<VkPhysicalDeviceToolProperties>(
        "vkGetPhysicalDeviceToolProperties",
        [&](std::uint32_t* count, VkPhysicalDeviceToolProperties* list) {
          for (std::uint32_t i = 0; list != nullptr && i < *count; ++i) {
            list[i] = {};
            list[i].sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TOOL_PROPERTIES;
          }
          return get_tools(device, count, list);
        });
    constexpr VkToolPurposeFlags kReaders = VK_TOOL_PURPOSE_VALIDATION_BIT |
                                            VK_TOOL_PURPOSE_DEBUG_MARKERS_BIT_EXT |
                                            VK_TOOL_PURPOSE_DEBUG_REPORTING_BIT_EXT;
    if (std::ranges::any_of(tools,
                            [](const auto& tool) { return (tool.purposes & kReaders) != 0; })) {
      return true;
    }
  }
  return false;
} catch (const Error&) {
  return false;  // a driver that can't answer is no reason to do without it
}

}  // namespace tessera::device::vulkan
