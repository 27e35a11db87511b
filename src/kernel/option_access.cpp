// SPDX-License-Identifier: Apache-2.0
#include "kernel/option_access.hpp"

#include <cmath>

#include "tessera/error.hpp"

namespace tessera::kernel {

void bad_option(const Problem& problem, std::string_view name, const std::string& what) {
  throw InvalidArgument(problem.operation->name + ": option '" + std::string(name) + "' must be " +
                        what + ", not '" + to_string(problem.option(name)) + "'");
}

std::optional<double> number_option(const Problem& problem, std::string_view name) {
  const OptionValue& value = problem.option(name);
  std::optional<double> number;
  if (std::holds_alternative<std::monostate>(value)) return number;
  if (const auto* real = std::get_if<double>(&value)) number = *real;
  if (const auto* integer = std::get_if<std::int64_t>(&value))
    number = static_cast<double>(*integer);
  if (!number || !std::isfinite(*number)) bad_option(problem, name, "a finite number");
  return number;
}

bool bool_option(const Problem& problem, std::string_view name) {
  const auto* value = std::get_if<bool>(&problem.option(name));
  if (value == nullptr) bad_option(problem, name, "true or false");
  return *value;
}

std::optional<std::vector<std::int64_t>> integers_option(const Problem& problem,
                                                         std::string_view name) {
  const OptionValue& value = problem.option(name);
  if (std::holds_alternative<std::monostate>(value)) return std::nullopt;
  if (const auto* one = std::get_if<std::int64_t>(&value)) return std::vector<std::int64_t>{*one};
  const auto* several = std::get_if<std::vector<std::int64_t>>(&value);
  if (several == nullptr) bad_option(problem, name, "integers");
  return *several;
}

std::size_t choice_option(const Problem& problem, std::string_view name,
                          const std::vector<std::string>& choices) {
  const auto* text = std::get_if<std::string>(&problem.option(name));
  for (std::size_t i = 0; text != nullptr && i < choices.size(); ++i) {
    if (*text == choices[i]) return i;
  }
  std::string list;
  for (const std::string& choice : choices) list += (list.empty() ? "" : " or ") + choice;
  bad_option(problem, name, list);
}

}  // namespace tessera::kernel
