// SPDX-License-Identifier: Apache-2.0
// Contexts that keep nothing on disk.
#pragma once

#include <string>

#include "tessera/context.hpp"
#include "tessera/device.hpp"

namespace tessera::testing {

inline Context open(const std::string& device) {
  return Context::open({.device = device, .cache_directory = ""});
}

// On the best OpenCL or Vulkan device, or the reference where there is none.
inline Context open_best() {
  const auto devices = select_devices(probe_devices(), "");
  return open(devices.empty() ? "host" : std::to_string(devices.front().index));
}

}  // namespace tessera::testing
