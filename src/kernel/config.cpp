// SPDX-License-Identifier: Apache-2.0
#include <charconv>

#include "base/system/out_of_memory.hpp"
#include "tessera/error.hpp"
#include "tessera/record.hpp"

namespace tessera {

Config::Config(std::initializer_list<std::pair<const std::string, std::uint32_t>> values)
    : values_(values) {}
Config::Config(const Config& other) = default;
Config::Config(Config&& other) noexcept = default;
Config& Config::operator=(const Config& other) = default;
Config& Config::operator=(Config&& other) noexcept = default;
Config::~Config() = default;

Config Config::parse(std::string_view text) try {
  Config config;
  const std::string whole(text);
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    const std::size_t equals = item.find('=');
    const std::string_view digits = equals == std::string_view::npos ? "" : item.substr(equals + 1);
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const bool number =
        error == std::errc() && !digits.empty() && end == digits.data() + digits.size();
    if (equals == 0 || !number || config.values_.contains(item.substr(0, equals))) {
      throw InvalidArgument("configuration '" + whole +
                            "' is not of the form NAME=NUMBER,NAME=NUMBER");
    }
    config.set(item.substr(0, equals), value);
    text = comma == std::string_view::npos ? "" : text.substr(comma + 1);
  }
  return config;
} catch (...) {
  rethrow_as_error();
}

std::string Config::to_string() const try {
  std::string text;
  for (const auto& [name, value] : values_) {
    text += (text.empty() ? "" : ",") + name + "=" + std::to_string(value);
  }
  return text;
} catch (...) {
  rethrow_as_error();
}

std::uint32_t Config::at(std::string_view name) const try {
  const auto found = values_.find(name);
  if (found == values_.end()) {
    throw InvalidArgument("configuration '" + to_string() + "' lacks " + std::string(name));
  }
  return found->second;
} catch (...) {
  rethrow_as_error();
}

std::uint32_t Config::get(std::string_view name, std::uint32_t fallback) const {
  const auto found = values_.find(name);
  return found == values_.end() ? fallback : found->second;
}

void Config::set(std::string_view name, std::uint32_t value) try {
  values_.insert_or_assign(std::string(name), value);
} catch (...) {
  rethrow_as_error();
}

std::string full_name(const Operation& operation, const Variant& variant, const Config& config,
                      const StorageTypes& types, const DeviceProfile& profile) try {
  return operation.name + "." + variant.name + "/" + types.name() + "@" +
         std::string(to_string(profile.backend)) + ":" + profile.name + "{" + config.to_string() +
         "}";
} catch (...) {
  rethrow_as_error();
}

FullName parse_full_name(std::string_view name) try {
  const auto fail = [&] {
    return InvalidArgument(
        "'" + std::string(name) +
        "' is not of the form operation.variant/dtype@backend:device{NAME=NUMBER,…}");
  };
  FullName parts;
  const std::size_t dot = name.find('.');
  const std::size_t slash = name.find('/', dot == std::string_view::npos ? 0 : dot);
  const std::size_t at = name.find('@', slash == std::string_view::npos ? 0 : slash);
  const std::size_t colon = name.find(':', at == std::string_view::npos ? 0 : at);
  const std::size_t brace = name.rfind('{');
  if (dot == std::string_view::npos || slash == std::string_view::npos ||
      at == std::string_view::npos || colon == std::string_view::npos ||
      brace == std::string_view::npos || brace < colon || name.back() != '}') {
    throw fail();
  }
  parts.operation = name.substr(0, dot);
  parts.variant = name.substr(dot + 1, slash - dot - 1);
  parts.dtype = name.substr(slash + 1, at - slash - 1);
  parts.backend = name.substr(at + 1, colon - at - 1);
  parts.device = name.substr(colon + 1, brace - colon - 1);
  parts.config = Config::parse(name.substr(brace + 1, name.size() - brace - 2));
  return parts;
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
