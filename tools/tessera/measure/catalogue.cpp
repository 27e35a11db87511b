// SPDX-License-Identifier: Apache-2.0
#include "tessera/measure/catalogue.hpp"

#include <algorithm>

#include "tessera/output/json.hpp"
#include "tessera/output/table.hpp"
#include "tessera/record.hpp"

namespace tessera::tool {
namespace {

constexpr std::array kBackends{Backend::kOpenCL, Backend::kVulkan, Backend::kHost};

bool has_source(const Pass& pass, Backend backend) {
  switch (backend) {
    case Backend::kOpenCL:
      return !pass.opencl.empty();
    case Backend::kVulkan:
      return !pass.vulkan.empty();
    case Backend::kHost:
      return static_cast<bool>(pass.host);
  }
  return false;
}

bool runs_on(const Variant& variant, Backend backend) {
  const std::vector<Backend>& wanted = variant.needs.backends;
  const bool named =
      wanted.empty() || std::find(wanted.begin(), wanted.end(), backend) != wanted.end();
  return named && std::all_of(variant.passes.begin(), variant.passes.end(),
                              [&](const Pass& pass) { return has_source(pass, backend); });
}

template <class Items, class Text>
std::string join(const Items& items, const char* separator, Text text) {
  std::string result;
  for (const auto& item : items)
    result += (result.empty() ? "" : separator) + std::string(text(item));
  return result;
}

std::string names(const std::vector<DType>& dtypes) {
  return dtypes.empty() ? "any" : join(dtypes, " ", [](DType d) { return to_string(d); });
}

std::vector<Backend> backends(const Variant& variant) {
  std::vector<Backend> result;
  for (const Backend backend : kBackends) {
    if (runs_on(variant, backend)) result.push_back(backend);
  }
  return result;
}

// "GPUs with fp16", where a variant is not for every device.
std::string needs(const Requirements& requirements) {
  std::vector<std::string> parts;
  for (const DeviceKind kind : requirements.kinds) parts.emplace_back(to_string(kind));
  for (const FeatureName& known : feature_names()) {
    if (has(requirements.features, known.feature)) parts.emplace_back(known.name);
  }
  return join(parts, ", ", [](const std::string& part) { return part; });
}

std::string indented(const Table& table, const char* indent) {
  std::string result;
  const std::string text = table.text();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    result += indent + text.substr(at, end - at + 1);
    at = end + 1;
  }
  return result;
}

// What the variant takes: dtypes, or combinations of the operation's.
std::vector<std::string> type_names(const Operation& operation, const Variant& variant) {
  std::vector<std::string> names;
  for (const StorageTypes& types : operation.types) {
    if (takes(variant, types)) names.push_back(types.name());
  }
  if (!operation.types.empty()) return names;
  for (const DType dtype : variant.dtypes) names.emplace_back(to_string(dtype));
  return names;
}

std::string types_text(const Operation& operation, const Variant& variant) {
  const std::vector<std::string> names = type_names(operation, variant);
  return names.empty() ? "any" : join(names, " ", [](const std::string& name) { return name; });
}

std::string operation_text(const Operation& operation) {
  std::string text = operation.name + "\n  " + operation.summary + '\n';
  if (!operation.formula.empty()) {
    text += "  ";
    for (const char c : operation.formula)
      text += c == '\n' ? std::string("\n  ") : std::string(1, c);
    text += '\n';
  }
  Table operands({{"operand"}, {""}, {"dtypes"}, {"shape"}, {""}});
  for (const Operand& operand : operation.operands) {
    const std::string role(to_string(operand.role));
    operands.add({operand.name, (operand.optional ? "optional " : "") + role, names(operand.dtypes),
                  operand.shape, operand.doc});
  }
  text += indented(operands, "  ");
  for (const StorageTypes& types : operation.types) text += "  dtypes " + types.to_string() + '\n';
  Table options({{"option"}, {"type"}, {"default"}, {""}});
  for (const OptionInfo& option : operation.options) {
    options.add({option.name, option.type, tessera::to_string(option.fallback), option.doc});
  }
  if (!options.empty()) text += indented(options, "  ");
  Table variants({{"variant"}, {"platforms"}, {"dtypes"}, {"needs"}, {""}});
  for (const Variant& variant : operation.variants) {
    variants.add({variant.name,
                  join(backends(variant), " ", [](Backend b) { return to_string(b); }),
                  types_text(operation, variant), needs(variant.needs), variant.idea});
  }
  return text + indented(variants, "  ");
}

Json dtype_json(const std::vector<DType>& dtypes) {
  Json json = Json::array();
  for (const DType dtype : dtypes) json.push_back(to_string(dtype));
  return json;
}

Json operation_json(const Operation& operation) {
  Json operands = Json::array();
  for (const Operand& operand : operation.operands) {
    operands.push_back({{"name", operand.name},
                        {"role", to_string(operand.role)},
                        {"optional", operand.optional},
                        {"shape", operand.shape},
                        {"dtypes", dtype_json(operand.dtypes)},
                        {"doc", operand.doc}});
  }
  Json options = Json::array();
  for (const OptionInfo& option : operation.options) {
    options.push_back({{"name", option.name},
                       {"type", option.type},
                       {"default", tessera::to_string(option.fallback)},
                       {"doc", option.doc}});
  }
  Json variants = Json::array();
  for (const Variant& variant : operation.variants) {
    Json platforms = Json::array();
    for (const Backend backend : backends(variant)) platforms.push_back(to_string(backend));
    variants.push_back({{"name", variant.name},
                        {"idea", variant.idea},
                        {"platforms", platforms},
                        {"dtypes", type_names(operation, variant)},
                        {"needs", needs(variant.needs)}});
  }
  return {{"name", operation.name}, {"summary", operation.summary}, {"formula", operation.formula},
          {"operands", operands},   {"options", options},           {"variants", variants}};
}

}  // namespace

std::string catalogue_text() {
  return join(all_operations(), "\n", [](const Operation* o) { return operation_text(*o); });
}

std::string catalogue_json() {
  Json json = Json::array();
  for (const Operation* operation : all_operations()) json.push_back(operation_json(*operation));
  return dump({{"operations", json}}) + '\n';
}

std::string catalogue_markdown() {
  Table table({{"operation"}, {"OpenCL"}, {"Vulkan"}, {"host"}});
  for (const Operation* operation : all_operations()) {
    std::vector<std::string> cells{'`' + operation->name + '`'};
    for (const Backend backend : kBackends) {
      std::vector<std::string> parts;
      for (const Variant& variant : operation->variants) {
        if (!runs_on(variant, backend)) continue;
        const std::string types = types_text(*operation, variant);
        const std::string dtypes = types == "any" ? "" : ": " + types;
        const std::string special = needs(variant.needs);
        parts.push_back('`' + variant.name + '`' + dtypes +
                        (special.empty() ? "" : " (" + special + ")"));
      }
      const auto text = [](const std::string& part) { return part; };
      cells.push_back(parts.empty() ? "–" : join(parts, "<br>", text));
    }
    table.add(std::move(cells));
  }
  return table.markdown();
}

}  // namespace tessera::tool
