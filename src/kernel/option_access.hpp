// SPDX-License-Identifier: Apache-2.0
// Options as validate() wants them: typed, and with messages that name operation, option and value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/record.hpp"

namespace tessera::kernel {

[[noreturn]] void bad_option(const Problem& problem, std::string_view name,
                             const std::string& what);

// A finite number; an integer counts as one. Nothing when the option is not set.
std::optional<double> number_option(const Problem& problem, std::string_view name);

bool bool_option(const Problem& problem, std::string_view name);

std::optional<std::vector<std::int64_t>> integers_option(const Problem& problem,
                                                         std::string_view name);

// The position of the option's text among `choices`.
std::size_t choice_option(const Problem& problem, std::string_view name,
                          const std::vector<std::string>& choices);

inline std::uint64_t next_power_of_two(std::uint64_t n) {
  std::uint64_t power = 1;
  while (power < n) power *= 2;
  return power;
}

}  // namespace tessera::kernel
