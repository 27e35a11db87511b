// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tessera {

// XXH3-128 as 32 lower-case hex digits: finds damage, not tampering.
std::string hash128(std::span<const std::byte> bytes);
std::string hash128(std::string_view text);

}  // namespace tessera
