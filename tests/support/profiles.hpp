// SPDX-License-Identifier: Apache-2.0
// Profiles of machines that nobody here need own: tests/devices/<name>.json.
#pragma once

#include <string>
#include <vector>

#include "tessera/device.hpp"

namespace tessera::testing {

// Throws Error when the file is missing or holds anything that is no field of a profile.
DeviceProfile load_profile(const std::string& name);
std::vector<std::string> profile_names();  // sorted

}  // namespace tessera::testing
