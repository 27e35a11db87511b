// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <optional>
#include <string>

#include "tessera/device.hpp"

namespace tessera::testing {

constexpr int kNoDevice = 77;  // what ctest takes for skipped

// The first device that the selector names; where there is none, says so.
inline std::optional<DeviceInfo> first_device(const std::string& selector) {
  const auto devices = select_devices(probe_devices(), selector);
  if (!devices.empty()) return devices.front();
  std::printf("skipped: no device matches '%s'\n", selector.c_str());
  return std::nullopt;
}

}  // namespace tessera::testing
