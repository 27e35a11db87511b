// SPDX-License-Identifier: Apache-2.0
// The words of a device selector; see select_devices().
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/device.hpp"

namespace tessera::device {

std::vector<std::string> selector_words(std::string_view selector);  // in lower case, none empty
std::optional<int> as_index(std::string_view word);
std::optional<Backend> as_platform(std::string_view word);

}  // namespace tessera::device
