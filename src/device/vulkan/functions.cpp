// SPDX-License-Identifier: Apache-2.0
#include "device/vulkan/functions.hpp"

#include <string>

#include "base/system/shared_library.hpp"
#include "tessera/error.hpp"

namespace tessera::device::vulkan {
namespace {

#if defined(_WIN32)
constexpr auto kLoader = "vulkan-1.dll";
#elif defined(__APPLE__)
constexpr auto kLoader = "libvulkan.1.dylib";
#else
constexpr auto kLoader = "libvulkan.so.1";
#endif

const SharedLibrary& loader() {
  static const SharedLibrary library(kLoader, "vkGetInstanceProcAddr", "libvulkan1");
  return library;
}

Functions read_loader() {
  if (!loader().why_missing().empty()) throw DeviceError(loader().why_missing());
  Functions functions;
  const auto find = [](auto& function, const char* name) {
    function = loader().find_as<std::remove_reference_t<decltype(function)>>(name);
    if (function == nullptr)
      throw DeviceError(std::string(kLoader) + " has no " + name + ": it is older than Vulkan 1.1");
  };
  find(functions.GetInstanceProcAddr, "vkGetInstanceProcAddr");
#define TESSERA_FIND(name) find(functions.name, "vk" #name);
  TESSERA_VULKAN_GLOBAL_FUNCTIONS(TESSERA_FIND)
  TESSERA_VULKAN_FUNCTIONS(TESSERA_FIND)
#undef TESSERA_FIND
  return functions;
}

}  // namespace

const Functions& Functions::of_loader() {
  static const Functions functions = read_loader();  // tried again where it throws
  return functions;
}

Functions Functions::of_application(PFN_vkGetInstanceProcAddr find, VkInstance instance) {
  Functions functions;
  functions.GetInstanceProcAddr = find;
  const auto ask = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(find(instance, name));
    if (function == nullptr) {
      throw InvalidArgument(std::string("the application's vkGetInstanceProcAddr does not find ") +
                            name);
    }
  };
#define TESSERA_ASK(name) ask(functions.name, "vk" #name);
  TESSERA_VULKAN_FUNCTIONS(TESSERA_ASK)
#undef TESSERA_ASK
  return functions;
}

}  // namespace tessera::device::vulkan
