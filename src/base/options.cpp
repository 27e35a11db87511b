// SPDX-License-Identifier: Apache-2.0
#include "tessera/options.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

#include "base/system/out_of_memory.hpp"
#include "tessera/error.hpp"

namespace tessera {
namespace {

template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::optional<bool> parse_bool(std::string_view text) {
  std::string word(text);
  std::ranges::transform(word, word.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const char* yes : {"true", "on", "yes", "1"}) {
    if (word == yes) return true;
  }
  for (const char* no : {"false", "off", "no", "0"}) {
    if (word == no) return false;
  }
  return std::nullopt;
}

std::optional<std::vector<std::int64_t>> parse_list(std::string_view text) {
  std::vector<std::int64_t> values;
  while (true) {
    const std::size_t comma = text.find(',');
    const auto value = parse_number<std::int64_t>(text.substr(0, comma));
    if (!value) return std::nullopt;
    values.push_back(*value);
    if (comma == std::string_view::npos) return values;
    text.remove_prefix(comma + 1);
  }
}

template <class T>
OptionValue expect(std::string_view name, std::string_view text, const std::optional<T>& value,
                   const char* what) {
  if (value) return *value;
  throw InvalidArgument("option '" + std::string(name) + "' takes " + what + ", not '" +
                        std::string(text) + "'");
}

OptionValue guess(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  if (const auto integer = parse_number<std::int64_t>(text)) return *integer;
  if (const auto real = parse_number<double>(text)) return *real;
  if (const auto list = parse_list(text)) return *list;
  return std::string(text);
}

}  // namespace

std::string to_string(const OptionValue& value) try {
  struct Printer {
    std::string operator()(std::monostate) const { return "none"; }
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(std::int64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const {
      char text[32];
      const auto end = std::to_chars(text, text + sizeof text, v).ptr;
      return {text, end};
    }
    std::string operator()(const std::string& v) const { return v; }
    std::string operator()(const std::vector<std::int64_t>& v) const {
      std::string text;
      for (const std::int64_t item : v) text += (text.empty() ? "" : ",") + std::to_string(item);
      return text;
    }
  };
  return std::visit(Printer{}, value);
} catch (...) {
  rethrow_as_error();
}

OptionValue parse_option(std::string_view name, std::string_view text,
                         const OptionValue& like) try {
  // A text may be a choice of that name.
  if (std::holds_alternative<std::string>(like)) return std::string(text);
  if (text == "none") return std::monostate{};
  if (std::holds_alternative<bool>(like))
    return expect(name, text, parse_bool(text), "true or false (also on, off, yes, no, 1, 0)");
  if (std::holds_alternative<std::int64_t>(like)) {
    return expect(name, text, parse_number<std::int64_t>(text), "an integer");
  }
  if (std::holds_alternative<double>(like))
    return expect(name, text, parse_number<double>(text), "a number");
  if (std::holds_alternative<std::vector<std::int64_t>>(like)) {
    return expect(name, text, parse_list(text), "integers separated by commas");
  }
  return guess(text);
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
