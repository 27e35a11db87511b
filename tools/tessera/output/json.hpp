// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace tessera::tool {

using Json = nlohmann::ordered_json;

// Names come from drivers and files: what is not UTF-8 in them is replaced, not thrown at the user,
// and what is not ASCII is escaped, as a terminal obeys some of it.
inline std::string dump(const Json& json, int indent = 2) {
  constexpr bool kAscii = true;
  return json.dump(indent, ' ', kAscii, Json::error_handler_t::replace);
}

}  // namespace tessera::tool
