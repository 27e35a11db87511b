// SPDX-License-Identifier: Apache-2.0
// Options as validate() wants them: typed, and with messages that name operation, option and value.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/error.hpp"
#include "tessera/record.hpp"

namespace tessera::kernel {

[[noreturn]] inline void bad_option(const Problem& problem, std::string_view name,
                                    const std::string& what) {
  throw InvalidArgument(problem.operation->name + ": option '" + std::string(name) + "' must be " +
                        what + ", not '" + to_string(problem.option(name)) + "'");
}

// A finite number; an integer counts as one. Nothing when the option is not set.
inline std::optional<double> number_option(const Problem& problem, std::string_view name) {
  const OptionValue& value = problem.option(name);
  std::optional<double> number;
  if (std::holds_alternative<std::monostate>(value)) return number;
  if (const auto* real = std::get_if<double>(&value)) number = *real;
  if (const auto* integer = std::get_if<std::int64_t>(&value))
    number = static_cast<double>(*integer);
  if (!number || !std::isfinite(*number)) bad_option(problem, name, "a finite number");
  return number;
}

inline bool bool_option(const Problem& problem, std::string_view name) {
  const auto* value = std::get_if<bool>(&problem.option(name));
  if (value == nullptr) bad_option(problem, name, "true or false");
  return *value;
}

inline std::optional<std::vector<std::int64_t>> integers_option(const Problem& problem,
                                                                std::string_view name) {
  const OptionValue& value = problem.option(name);
  if (std::holds_alternative<std::monostate>(value)) return std::nullopt;
  if (const auto* one = std::get_if<std::int64_t>(&value)) return std::vector<std::int64_t>{*one};
  const auto* several = std::get_if<std::vector<std::int64_t>>(&value);
  if (several == nullptr) bad_option(problem, name, "integers");
  return *several;
}

// The position of the option's text among `choices`.
inline std::size_t choice_option(const Problem& problem, std::string_view name,
                                 const std::vector<std::string>& choices) {
  const auto* text = std::get_if<std::string>(&problem.option(name));
  for (std::size_t i = 0; text != nullptr && i < choices.size(); ++i) {
    if (*text == choices[i]) return i;
  }
  std::string list;
  for (const std::string& choice : choices) list += (list.empty() ? "" : " or ") + choice;
  bad_option(problem, name, list);
}

inline std::uint64_t next_power_of_two(std::uint64_t n) {
  std::uint64_t power = 1;
  while (power < n) power *= 2;
  return power;
}

}  // namespace tessera::kernel
