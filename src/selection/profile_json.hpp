// SPDX-License-Identifier: Apache-2.0
// A device profile as JSON: in the caches, in the shipped database and in the tests' profiles.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "tessera/device.hpp"

namespace tessera::selection {

// Without fields that are unknown.
nlohmann::ordered_json profile_to_json(const DeviceProfile& profile);

// A missing field is unknown; names of features that this version does not know are ignored.
// Returns nothing and sets `problem` when a field has the wrong type or range.
std::optional<DeviceProfile> profile_from_json(const nlohmann::json& json, std::string& problem);

}  // namespace tessera::selection
