// SPDX-License-Identifier: Apache-2.0
#include "base/system/environment.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <initializer_list>
#include <limits>
#include <string_view>
#include <utility>

#include "base/printable.hpp"
#include "tessera/error.hpp"

namespace tessera {
namespace {

using Getter = const char* (*)(const char* name);

[[noreturn]] void refuse(std::string_view variable, std::string_view value,
                         std::string_view expected) {
  throw InvalidArgument("environment variable " + std::string(variable) + " is '" +
                        printable(value) + "'; it takes " + std::string(expected));
}

std::string text_of(Getter get, const char* variable) {
  const char* value = get(variable);
  return value == nullptr ? std::string() : std::string(value);
}

// Unset and empty both mean the default.
template <class T>
T one_of(Getter get, const char* variable, T fallback,
         std::initializer_list<std::pair<std::string_view, T>> values) {
  const std::string text = text_of(get, variable);
  if (text.empty()) return fallback;
  std::string expected;
  for (const auto& [name, value] : values) {
    if (text == name) return value;
    expected += (expected.empty() ? "" : ", ") + std::string(name);
  }
  refuse(variable, text, "one of " + expected);
}

// "1048576", "64K", "512M", "1G", or "off" for no limit.
std::uint64_t bytes(Getter get, const char* variable, std::uint64_t fallback) {
  constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
  const std::string text = text_of(get, variable);
  if (text.empty()) return fallback;
  if (text == "off") return kMost;
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [unit, error] = std::from_chars(text.data(), end, number);
  constexpr std::string_view kUnits = "KMGT";
  const std::size_t power = unit == end ? 0 : kUnits.find(*unit) + 1;  // npos + 1 = 0
  const bool known = unit == end || (unit + 1 == end && power != 0);
  const std::size_t shift = 10 * power;
  if (error != std::errc() || !known || number > kMost >> shift)
    refuse(variable, text, "a number of bytes, also as 64K, 512M, 1G or 1T, or off");
  return number << shift;
}

Feature features(Getter get, const char* variable) {
  const std::string text = text_of(get, variable);
  Feature set = Feature::kNone;
  std::string_view rest = text;
  bool more = !rest.empty();
  while (more) {
    const std::size_t comma = rest.find(',');
    more = comma != std::string_view::npos;
    const std::string_view name = rest.substr(0, comma);
    const auto known = std::ranges::find(feature_names(), name, &FeatureName::name);
    if (known == feature_names().end()) {
      std::string names;
      for (const FeatureName& feature : feature_names()) {
        names += (names.empty() ? "" : ", ") + std::string(feature.name);
      }
      refuse(variable, text, "names separated by commas, of " + names);
    }
    set = set | known->feature;
    if (more) rest.remove_prefix(comma + 1);
  }
  return set;
}

// Gives nothing to a process that runs with more rights than its caller.
const char* trusted(const char* name) {
#if defined(__GLIBC__)
  return ::secure_getenv(name);
#else
  return std::getenv(name);
#endif
}

}  // namespace

Environment read_environment(Getter get) {
  Environment result;
  result.device = text_of(get, "TESSERA_DEVICE");
  if (const char* value = get("TESSERA_CACHE_DIR")) result.cache_directory = value;
  result.cache_limit = bytes(get, "TESSERA_CACHE_LIMIT", kDefaultCacheLimit);
  result.autotune =
      one_of(get, "TESSERA_AUTOTUNE_POLICY", false, {{"autotune", true}, {"heuristics", false}});
  result.precision = one_of(get, "TESSERA_PRECISION", Precision::kDefault,
                            {{to_string(Precision::kDefault), Precision::kDefault},
                             {to_string(Precision::kHigh), Precision::kHigh},
                             {to_string(Precision::kHighest), Precision::kHighest}});
  result.log = one_of(get, "TESSERA_LOG", LogLevel::kWarning,
                      {{"off", LogLevel::kOff},
                       {"error", LogLevel::kError},
                       {"warning", LogLevel::kWarning},
                       {"info", LogLevel::kInfo},
                       {"debug", LogLevel::kDebug}});
  result.kernel_directory = text_of(get, "TESSERA_KERNEL_DIR");
  result.disabled = features(get, "TESSERA_DISABLE");
  result.quirks = one_of(get, "TESSERA_QUIRKS", true, {{"on", true}, {"off", false}});
  result.home = text_of(get, "HOME");
  result.xdg_cache_home = text_of(get, "XDG_CACHE_HOME");
  return result;
}

const Environment& environment() {
  // A throwing initialiser is run again by the next caller, who then gets the same sentence.
  // Never destroyed: calls may come at exit.
  static const auto* const read = new Environment(read_environment(trusted));
  return *read;
}

}  // namespace tessera
