// SPDX-License-Identifier: Apache-2.0
// Numbers and records as text and as JSON, the same for every command.
#pragma once

#include <ctime>
#include <string>

#include "json.hpp"
#include "tessera/context.hpp"

namespace tessera::tool {

std::string fixed(double value, int digits);
std::string significant(
    double value);  // three significant digits, never an exponent: "0.0123", "1230"
std::string milliseconds(double seconds);     // "12.3"
std::string bytes_text(std::uint64_t bytes);  // "512 KiB", "128 MiB"
std::string utc_now();                        // ISO 8601
std::string utc_text(std::time_t time);       // likewise
std::string tier_text(
    const Choice& choice);  // "memory (autotune)", where the answer came from at first in brackets

Json choice_json(const Choice& choice);
Json execution_json(const Execution& execution);
Json profile_json(const DeviceInfo& device);

}  // namespace tessera::tool
