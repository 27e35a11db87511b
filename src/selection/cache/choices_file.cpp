// SPDX-License-Identifier: Apache-2.0
#include "selection/cache/choices_file.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/hash.hpp"
#include "selection/profile_json.hpp"
#include "tessera/error.hpp"
#include "tessera/version.hpp"

namespace tessera::selection {
namespace {

using Json = nlohmann::json;
using Ordered = nlohmann::ordered_json;

constexpr const char* kFormat = "tessera-choices";
constexpr std::uint64_t kVersionOfFormat = 2, kOldestFormat = 1;

// A file of our own is far from these; they bound what a strange one can cost before it is
// understood.
constexpr int kMaxDepth = 8;
constexpr std::size_t kMaxTokens = 1'000'000;
constexpr std::size_t kMaxText = 4096;

std::string number_text(double value) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

std::string check_of(const std::string& fingerprint, const std::string& key, const Entry& entry) {
  std::vector<std::string> fields{fingerprint,
                                  key,
                                  entry.variant,
                                  entry.config.to_string(),
                                  std::string(to_string(entry.origin)),
                                  number_text(entry.milliseconds),
                                  number_text(entry.error_over_bound),
                                  entry.date};
  if (!entry.kernels.empty()) fields.push_back(entry.kernels);  // as in version 1 without
  std::string text;
  for (const std::string& field : fields) {
    text += std::to_string(field.size()) + ":" + field + "\n";
  }
  return hash128(text);
}

// A driver may well call its device something that is no UTF-8.
std::string compact(const Ordered& json) {
  return json.dump(-1, ' ', false, Ordered::error_handler_t::replace);
}

std::string quoted(const std::string& text) { return compact(Ordered(text)); }

// Depth and number of tokens, before the parser allocates a node for each.
std::string excess(std::string_view text) {
  int depth = 0;
  std::size_t tokens = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    switch (c) {
      case '"':
        in_string = true;
        break;
      case '{':
      case '[':
        if (++depth > kMaxDepth) return "it is nested too deeply";
        break;
      case '}':
      case ']':
        --depth;
        break;
      case ',':
      case ':':
        if (++tokens > kMaxTokens) return "it has too many values";
        break;
      default:
        break;
    }
  }
  return {};
}

std::optional<std::string> text_field(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return std::nullopt;
  auto text = found->get<std::string>();
  if (text.size() > kMaxText) return std::nullopt;
  return text;
}

std::optional<double> number_field(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  const auto value = found->get<double>();
  if (!std::isfinite(value) || value < 0) return std::nullopt;
  return value;
}

std::optional<Config> config_field(const Json& object) {
  const auto text = text_field(object, "config");
  if (!text) return std::nullopt;
  try {
    return Config::parse(*text);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Sets `problem` when the entry is no good.
Entry parse_entry(const std::string& fingerprint, const std::string& key, const Json& json,
                  Checks checks, std::string& problem) {
  const auto refuse = [&](const char* why) {
    problem = "the entry '" + key.substr(0, 200) + "' " + why;
    return Entry{};
  };
  if (key.empty() || key.size() > kMaxText) return refuse("has a key of a strange length");
  if (!json.is_object()) return refuse("is no object");
  const auto variant = text_field(json, "variant");
  const auto config = config_field(json);
  const auto milliseconds = number_field(json, "milliseconds");
  const auto error = number_field(json, "error_over_bound");
  const auto date = text_field(json, "date");
  const auto kernels = text_field(json, "kernels");
  if (json.contains("kernels") && (!kernels || !is_fingerprint(*kernels)))
    return refuse("says nothing sensible about its kernels");
  if (!variant || variant->empty()) return refuse("names no variant");
  if (!config) return refuse("has no configuration");
  if (!milliseconds || !error || !date) return refuse("lacks its time, error or date");
  // Nothing else is ever written: guesses and one-off overrides do not belong into a file.
  if (text_field(json, "origin") != to_string(Tier::kAutotune)) return refuse("was not tuned");
  Entry entry{.variant = *variant,
              .config = *config,
              .origin = Tier::kAutotune,
              .milliseconds = *milliseconds,
              .error_over_bound = *error,
              .date = *date,
              .kernels = kernels.value_or("")};
  const auto check = text_field(json, "check");
  const bool unchecked = !json.contains("check") && checks == Checks::kOptional;
  if (!unchecked && check != check_of(fingerprint, key, entry)) return refuse("is damaged");
  return entry;
}

DeviceChoices parse_device(const Json& json, Checks checks, ChoicesDocument& document) {
  DeviceChoices choices;
  const auto fingerprint = json.is_object() ? text_field(json, "fingerprint") : std::nullopt;
  if (!fingerprint || !is_fingerprint(*fingerprint)) {
    document.problem = "a device in it has no fingerprint";
    return choices;
  }
  choices.fingerprint = *fingerprint;
  const auto device = profile_from_json(json.value("device", Json()), document.problem);
  if (!device) return choices;
  choices.device = *device;
  const auto entries = json.find("entries");
  if (entries == json.end() || !entries->is_object()) {
    document.problem = "a device in it has no entries";
    return choices;
  }
  for (const auto& [key, value] : entries->items()) {
    std::string problem;
    Entry entry = parse_entry(choices.fingerprint, key, value, checks, problem);
    if (problem.empty()) {
      choices.entries.emplace(key, std::move(entry));
    } else if (document.bad_entries++ == 0) {
      document.entry_problem = problem;
    }
  }
  return choices;
}

void parse_into(std::string_view text, Checks checks, ChoicesDocument& document) {
  document.problem = excess(text);
  if (!document.problem.empty()) return;
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || text_field(json, "format") != kFormat) {
    document.problem = json.is_discarded() ? "it is no JSON" : "it holds no choices of Tessera";
    return;
  }
  const auto version = json.find("version");
  if (version == json.end() || !version->is_number_unsigned()) {
    document.problem = "it does not say its version";
    return;
  }
  if (const auto number = version->get<std::uint64_t>();
      number < kOldestFormat || number > kVersionOfFormat) {
    document.newer = number > kVersionOfFormat;
    document.problem = "its format " + std::to_string(number) + " is not the " +
                       std::to_string(kVersionOfFormat) + " of this version";
    return;
  }
  const auto devices = json.find("devices");
  if (devices == json.end() || !devices->is_array()) {
    document.problem = "it has no list of devices";
    return;
  }
  for (const Json& device : *devices) {
    document.devices.push_back(parse_device(device, checks, document));
    if (!document.problem.empty()) return;
  }
}

}  // namespace

bool is_fingerprint(std::string_view text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

ChoicesDocument parse_choices(std::string_view text, Checks checks) {
  ChoicesDocument document;
  parse_into(text, checks, document);
  if (!document.problem.empty()) document.devices.clear();
  return document;
}

// One line for each entry: the files of tuning/ are kept under version control.
std::string print_choices(const std::vector<DeviceChoices>& devices) {
  std::string text = "{\"format\": " + quoted(kFormat) +
                     ", \"version\": " + std::to_string(kVersionOfFormat) +
                     ", \"library\": " + quoted(kVersion) + ", \"devices\": [";
  const char* device_comma = "\n";
  for (const DeviceChoices& choices : devices) {
    DeviceProfile device = choices.device;
    // These say which machine it is, not which kind.
    device.uuid.clear();
    device.pci_address.clear();
    text += std::exchange(device_comma, ",\n") + std::string("{\"fingerprint\": ") +
            quoted(choices.fingerprint) + ",\n \"device\": " + compact(profile_to_json(device)) +
            ",\n \"entries\": {";
    const char* entry_comma = "\n";
    for (const auto& [key, entry] : choices.entries) {
      Ordered fields = {{"variant", entry.variant},
                        {"config", entry.config.to_string()},
                        {"origin", to_string(Tier::kAutotune)},
                        {"milliseconds", entry.milliseconds},
                        {"error_over_bound", entry.error_over_bound},
                        {"date", entry.date}};
      if (!entry.kernels.empty()) fields["kernels"] = entry.kernels;
      fields["check"] = check_of(choices.fingerprint, key, entry);
      text += std::exchange(entry_comma, ",\n") + std::string("  ") + quoted(key) + ": " +
              compact(fields);
    }
    text += "}}";
  }
  return text + "]}\n";
}

}  // namespace tessera::selection
