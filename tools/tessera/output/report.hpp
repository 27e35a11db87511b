// SPDX-License-Identifier: Apache-2.0
// Numbers and records as text and as JSON, the same for every command.
#pragma once

#include <ctime>
#include <string>

#include "tessera/context.hpp"
#include "tessera/output/json.hpp"

namespace tessera::tool {

std::string fixed(double value, int digits);
std::string significant(
    double value);  // three significant digits, never an exponent: "0.0123", "1230"
std::string milliseconds(double seconds);     // "12.3"
std::string bytes_text(std::uint64_t bytes);  // "512 KiB", "128 MiB"
// A time that says little: its runs vary by more than 10 %, or the device's speed did not settle.
bool is_unsteady(double spread, bool settled);
std::string spread_text(double spread, bool settled);  // "3.2 %", "14.0 % !" of an unsteady time
inline constexpr const char* kUnsteadyNote =
    "!: the times vary by more than 10 %, or the device's speed did not settle: measure again\n";
std::string clock_text(double mhz);      // "1980 MHz"; "–" where nobody tells
std::string utc_now();                   // ISO 8601
std::string utc_text(std::time_t time);  // likewise
std::string tier_text(
    const Choice& choice);  // "memory (autotune)", where the answer came from at first in brackets

Json choice_json(const Choice& choice);
Json execution_json(const Execution& execution);
Json profile_json(const DeviceInfo& device);

}  // namespace tessera::tool
