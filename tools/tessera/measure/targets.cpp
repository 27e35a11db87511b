// SPDX-License-Identifier: Apache-2.0
#include "tessera/measure/targets.hpp"

#include <algorithm>
#include <charconv>
#include <set>

#include "base/system/environment.hpp"
#include "tessera/error.hpp"
#include "tessera/files/tensor_files.hpp"
#include "tessera/output/report.hpp"
#include "tessera/output/say.hpp"
#include "tessera/output/usage.hpp"

namespace tessera::tool {
namespace {

bool is_storage(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

std::string list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

Shape parse_shape(const std::string& operand, std::string_view text) {
  Shape shape;
  while (true) {
    const std::size_t cross = text.find('x');
    const std::string_view digits = text.substr(0, cross);
    std::int64_t extent = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), extent);
    if (error != std::errc{} || end != digits.data() + digits.size() || extent < 0) {
      throw UsageError("--shapes: " + quote(digits) + " is not an extent of operand '" + operand +
                       "'; a shape is written 4x128x64");
    }
    shape.push_back(extent);
    if (cross == std::string_view::npos) break;
    text.remove_prefix(cross + 1);
  }
  if (shape.size() > kMaxRank || !checked_bytes(ElementType::kF64, shape)) {
    throw UsageError("--shapes: the shape of operand '" + operand + "' is too large");
  }
  return shape;
}

// Options count with a sign, and the upper half of all seeds is below zero there.
std::optional<std::int64_t> seed_bits(const std::string& text) {
  std::uint64_t bits = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, bits);
  if (error != std::errc{} || end != last) return std::nullopt;
  return static_cast<std::int64_t>(bits);
}

Case explicit_case(const Operation& operation, const StorageTypes& types, const std::string& word,
                   const Options& options) {
  Case result{.name = word, .why = "asked for", .operands = {}, .options = options};
  result.operands.resize(operation.operands.size());
  std::string_view rest = word;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const auto [name, shape] = split_word(std::string(rest.substr(0, comma)), "--shapes");
    const std::size_t slot = as_usage([&, &name = name] { return operation.slot(name); });
    const std::vector<DType>& allowed = operation.operands[slot].dtypes;
    const DType dtype = types.of(name);
    const bool takes_it =
        allowed.empty() || std::find(allowed.begin(), allowed.end(), dtype) != allowed.end();
    result.operands[slot] =
        TensorSpec::contiguous(takes_it ? dtype : allowed.front(), parse_shape(name, shape));
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
  }
  as_usage([&] { problem_of(operation, result); });
  return result;
}

}  // namespace

void add_device_option(App& app, std::vector<std::string>& devices) {
  app.add_option("--device", devices,
                 "Index, platform, kind, name or UUID; may be repeated (default: all but host)")
      ->allow_extra_args(false);
}

std::vector<DeviceInfo> target_devices(const std::vector<std::string>& selectors) {
  const Probe& probe = probe_devices();
  std::vector<std::string> words = selectors;
  if (words.empty()) words.push_back(environment().device);
  std::vector<DeviceInfo> devices;
  for (const std::string& word : words) {
    const std::vector<DeviceInfo> found = select_devices(probe, word);
    if (found.empty() && !word.empty()) {
      std::vector<std::string> known;
      for (const DeviceInfo& device : probe.devices) known.push_back(device_label(device));
      std::string text = "no device matches " + quote(word) + "; there are " + list(known);
      for (const ProbeFailure& failure : probe.failures)
        text += "; " + failure.where + ": " + failure.why;
      throw NoDevice(text);
    }
    for (const DeviceInfo& device : found) {
      const auto same = [&](const DeviceInfo& other) { return other.index == device.index; };
      if (std::none_of(devices.begin(), devices.end(), same)) devices.push_back(device);
    }
  }
  if (devices.empty()) {
    devices = select_devices(probe, "host");
    note("no OpenCL or Vulkan device was found: using the host reference");
  }
  return devices;
}

Context open_device(const DeviceInfo& device, const std::string& precision) {
  return Context::open(ContextOptions{.device = std::to_string(device.index),
                                      .precision = parse_precision_option(precision)});
}

void add_precision_option(App& app, std::string& precision) {
  app.add_option("--precision", precision,
                 "default, high or highest: what variants may round (default: TESSERA_PRECISION)");
}

std::optional<Precision> parse_precision_option(const std::string& name) {
  if (name.empty()) return std::nullopt;
  return as_usage([&] { return parse_precision(name); });
}

std::string device_label(const DeviceInfo& device) {
  return "[" + std::to_string(device.index) + "] " +
         std::string(to_string(device.profile.backend)) + ":" + device.profile.name;
}

std::string device_tag(const DeviceInfo& device) {
  return std::to_string(device.index) + ":" + std::string(to_string(device.profile.backend));
}

std::vector<const Operation*> target_operations(const std::string& name) {
  if (name.empty()) return all_operations();
  return {as_usage([&] { return &find_operation(name); })};
}

const Variant& find_variant(const Operation& operation, const std::string& name) {
  if (const Variant* variant = operation.find_variant(name)) return *variant;
  std::vector<std::string> known;
  for (const Variant& variant : operation.variants) known.push_back(variant.name);
  throw UsageError(operation.name + " has no variant " + quote(name) + "; it has " + list(known));
}

std::optional<DType> parse_dtype_option(const std::string& name) {
  if (name.empty()) return std::nullopt;
  const DType dtype = as_usage([&] { return parse_dtype(name); });
  if (!is_storage(dtype)) throw UsageError("--dtype takes f32, f16 or bf16, not " + quote(name));
  return dtype;
}

std::vector<StorageTypes> storage_types(const Operation& operation) {
  std::vector<StorageTypes> types = operation.types;
  if (!types.empty()) return types;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    const bool used = std::any_of(
        operation.operands.begin(), operation.operands.end(), [&](const Operand& operand) {
          return is_read(operand.role) && std::find(operand.dtypes.begin(), operand.dtypes.end(),
                                                    dtype) != operand.dtypes.end();
        });
    if (used) types.emplace_back(dtype);
  }
  return types;
}

std::vector<StorageTypes> target_types(const Operation& operation, const std::string& name) {
  std::vector<StorageTypes> known = storage_types(operation);
  if (!name.empty()) std::erase_if(known, [&](const auto& types) { return types.name() != name; });
  return known;
}

void require_types(const std::string& name) {
  if (name.empty()) return;
  std::vector<std::string> known;
  for (const Operation* operation : all_operations()) {
    for (const StorageTypes& types : storage_types(*operation)) {
      if (types.name() == name) return;
      if (std::ranges::find(known, types.name()) == known.end()) known.push_back(types.name());
    }
  }
  throw UsageError("--dtype takes one of " + list(known) + ", not " + quote(name));
}

std::pair<std::string, std::string> split_word(const std::string& word, const char* option) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == word.size()) {
    throw UsageError(std::string(option) + " takes NAME=VALUE, not " + quote(word));
  }
  return {word.substr(0, equals), word.substr(equals + 1)};
}

Options parse_options(const Operation& operation, const std::vector<std::string>& words) {
  Options options;
  const auto set = [&](const std::string& name, const OptionValue& value) {
    if (!options.emplace(name, value).second) {
      throw UsageError("--set names option '" + name + "' twice");
    }
  };
  for (const std::string& word : words) {
    const auto [name, text] = split_word(word, "--set");
    const auto found =
        std::find_if(operation.options.begin(), operation.options.end(),
                     [&, &name = name](const OptionInfo& o) { return o.name == name; });
    if (found == operation.options.end()) {
      std::vector<std::string> known;
      for (const OptionInfo& option : operation.options) known.push_back(option.name);
      throw UsageError(operation.name + " has no option " + quote(name) + "; it has " +
                       (known.empty() ? "none" : list(known)));
    }
    // An option without a default says what it takes in `type` only; without this, "2" would be an
    // integer.
    OptionValue like = found->fallback;
    if (like.index() == 0) {
      if (found->type == "float") like = 0.0;
      if (found->type == "int") like = std::int64_t{0};
      if (found->type == "bool") like = false;
    }
    if (found->type == "seed") {
      if (const auto bits = seed_bits(text)) {
        set(name, *bits);
        continue;
      }
    }
    const OptionValue value =
        as_usage([&, &name = name, &text = text] { return parse_option(name, text, like); });
    set(name, value);
  }
  return options;
}

Problem problem_of(const Operation& operation, const Case& shape) {
  std::vector<bool> requested(operation.operands.size(), false);
  for (std::size_t slot = 0; slot < shape.operands.size() && slot < requested.size(); ++slot) {
    requested[slot] = is_written(operation.operands[slot].role) && shape.operands[slot];
  }
  return make_problem(operation, shape.operands, shape.options, requested);
}

std::vector<Case> benchmark_cases(const Operation& operation, const StorageTypes& types,
                                  const std::string& only) {
  std::vector<Case> cases;
  if (operation.workload.benchmarks) cases = operation.workload.benchmarks(types);
  const bool whole = std::ranges::any_of(cases, [&](const Case& c) { return c.name == only; });
  std::erase_if(cases, [&](const Case& c) {
    return whole ? c.name != only : c.name.find(only) == std::string::npos;
  });
  return cases;
}

std::vector<Case> shape_cases(const Operation& operation, const StorageTypes& types,
                              const std::vector<std::string>& words, const Options& options) {
  std::vector<Case> cases;
  for (const std::string& word : words) {
    std::vector<Case> found;
    if (word.find('=') != std::string::npos) {
      found.push_back(explicit_case(operation, types, word, options));
    } else {
      found = benchmark_cases(operation, types, word);
      for (Case& c : found) {
        for (const auto& [name, value] : options) c.options.insert_or_assign(name, value);
      }
    }
    cases.insert(cases.end(), found.begin(), found.end());
  }
  return cases;
}

}  // namespace tessera::tool
