// SPDX-License-Identifier: Apache-2.0
// Drivers that offer what they cannot do. One table, of data: an entry names the devices by what
// their profile says, the features that are not used there, and who saw it fail.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tessera/device.hpp"

namespace tessera::device {

struct Quirk {
  Backend backend = Backend::kVulkan;
  std::string_view vendor{};  // as in DeviceProfile
  // Beginnings of DeviceProfile::driver that are meant; empty = all drivers but `other_drivers`.
  std::vector<std::string_view> drivers{};
  std::vector<std::string_view> other_drivers{};
  std::vector<std::string_view> names{};  // parts of DeviceProfile::name; empty = all
  std::vector<DeviceKind> kinds{};        // empty = all
  Feature without = Feature::kNone;
  std::string_view why{};
  std::string_view source{};
};

const std::vector<Quirk>& quirks();
bool concerns(const Quirk& quirk, const DeviceProfile& profile);

// Features that this device is to appear without, whatever its driver offers: those of
// TESSERA_DISABLE, and those of its quirks unless TESSERA_QUIRKS=off. To be asked before a driver
// is questioned about a feature: some crash at that.
Feature withheld_features(const DeviceProfile& profile);

}  // namespace tessera::device
