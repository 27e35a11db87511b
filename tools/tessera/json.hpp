// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace tessera::tool {

using Json = nlohmann::ordered_json;

// Names come from drivers and files: what is not UTF-8 in them is replaced, not thrown at the user.
inline std::string dump(const Json& json, int indent = 2) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tessera::tool
