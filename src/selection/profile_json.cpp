// SPDX-License-Identifier: Apache-2.0
#include "selection/profile_json.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <string_view>

namespace tessera::selection {
namespace {

// Every field once; `visit(name, member)` reads or writes it.
template <class Profile, class Visit>
void visit_fields(Profile& profile, Visit visit) {
  visit("backend", profile.backend);
  visit("kind", profile.kind);
  visit("name", profile.name);
  visit("vendor", profile.vendor);
  visit("vendor_id", profile.vendor_id);
  visit("device_id", profile.device_id);
  visit("driver", profile.driver);
  visit("api_version", profile.api_version);
  visit("compiler", profile.compiler);
  visit("uuid", profile.uuid);
  visit("pci_address", profile.pci_address);
  visit("features", profile.features);
  visit("compute_units", profile.compute_units);
  visit("subgroup_size", profile.subgroup_size);
  visit("native_float_width", profile.native_float_width);
  visit("max_group_size", profile.max_group_size);
  visit("max_groups", profile.max_groups);
  visit("local_memory", profile.local_memory);
  visit("global_memory", profile.global_memory);
  visit("max_allocation", profile.max_allocation);
  visit("max_binding", profile.max_binding);
  visit("max_push_constants", profile.max_push_constants);
  visit("matrix_shapes", profile.matrix_shapes);
}

struct Writer {
  nlohmann::ordered_json& json;

  void operator()(const char* name, const std::string& value) const {
    if (!value.empty()) json[name] = value;
  }
  void operator()(const char* name, std::uint32_t value) const {
    if (value != 0) json[name] = value;
  }
  void operator()(const char* name, std::uint64_t value) const {
    if (value != 0) json[name] = value;
  }
  void operator()(const char* name, const std::array<std::uint32_t, 3>& value) const {
    if (value != std::array<std::uint32_t, 3>{}) json[name] = value;
  }
  void operator()(const char* name, const std::vector<MatrixShape>& value) const {
    for (const MatrixShape& shape : value) json[name].push_back(to_string(shape));
  }
  void operator()(const char* name, Backend value) const { json[name] = to_string(value); }
  void operator()(const char* name, DeviceKind value) const { json[name] = to_string(value); }
  void operator()(const char* name, Feature value) const {
    auto names = nlohmann::ordered_json::array();
    for (const FeatureName& known : feature_names()) {
      if (has(value, known.feature)) names.push_back(known.name);
    }
    json[name] = names;
  }
};

class Reader {
 public:
  Reader(const nlohmann::json& json, std::string& problem) : json_(json), problem_(problem) {}

  template <class T>
  void operator()(const char* name, T& value) const {
    const auto found = json_.find(name);
    if (found == json_.end() || !problem_.empty()) return;
    if (!read(*found, value)) {
      problem_ =
          "the device's '" + std::string(name) + "' is " + found->dump(-1, ' ', true, kLossy);
    }
  }

 private:
  static constexpr auto kLossy = nlohmann::json::error_handler_t::replace;

  static bool read(const nlohmann::json& json, std::string& value) {
    if (!json.is_string()) return false;
    value = json.get<std::string>();
    return true;
  }
  static bool read(const nlohmann::json& json, std::uint64_t& value) {
    if (!json.is_number_unsigned()) return false;
    value = json.get<std::uint64_t>();
    return true;
  }
  static bool read(const nlohmann::json& json, std::uint32_t& value) {
    std::uint64_t wide = 0;
    if (!read(json, wide) || wide > std::numeric_limits<std::uint32_t>::max()) return false;
    value = static_cast<std::uint32_t>(wide);
    return true;
  }
  static bool read(const nlohmann::json& json, std::array<std::uint32_t, 3>& value) {
    return json.is_array() && json.size() == value.size() && read(json[0], value[0]) &&
           read(json[1], value[1]) && read(json[2], value[2]);
  }
  static bool read(const nlohmann::json& json, std::vector<MatrixShape>& value) {
    if (!json.is_array()) return false;
    value.clear();
    for (const nlohmann::json& item : json) {
      if (!item.is_string()) return false;
      const std::string text = item.get<std::string>();
      MatrixShape shape;
      if (text.starts_with("bf16 ")) shape.input = DType::kBF16;
      if (std::sscanf(text.c_str(), "%*s %ux%ux%u", &shape.m, &shape.n, &shape.k) != 3 ||
          to_string(shape) != text) {
        return false;
      }
      value.push_back(shape);
    }
    return true;
  }
  static bool read(const nlohmann::json& json, Backend& value) {
    return one_of(json, value, {Backend::kOpenCL, Backend::kVulkan, Backend::kHost});
  }
  static bool read(const nlohmann::json& json, DeviceKind& value) {
    return one_of(json, value,
                  {DeviceKind::kDiscreteGpu, DeviceKind::kIntegratedGpu, DeviceKind::kCpu,
                   DeviceKind::kAccelerator, DeviceKind::kOther});
  }
  static bool read(const nlohmann::json& json, Feature& value) {
    if (!json.is_array()) return false;
    value = Feature::kNone;
    for (const nlohmann::json& name : json) {
      if (!name.is_string()) return false;
      const auto& text = name.get_ref<const std::string&>();
      const auto known = std::ranges::find(feature_names(), text, &FeatureName::name);
      if (known != feature_names().end()) value = value | known->feature;
    }
    return true;
  }
  template <class T>
  static bool one_of(const nlohmann::json& json, T& value, std::initializer_list<T> all) {
    if (!json.is_string()) return false;
    const auto& text = json.get_ref<const std::string&>();
    const auto found = std::ranges::find_if(all, [&](T one) { return text == to_string(one); });
    if (found == all.end()) return false;
    value = *found;
    return true;
  }

  const nlohmann::json& json_;
  std::string& problem_;
};

}  // namespace

nlohmann::ordered_json profile_to_json(const DeviceProfile& profile) {
  nlohmann::ordered_json json;
  visit_fields(profile, Writer{json});
  return json;
}

std::optional<DeviceProfile> profile_from_json(const nlohmann::json& json, std::string& problem) {
  problem.clear();
  if (!json.is_object()) {
    problem = "the device is no object";
    return std::nullopt;
  }
  DeviceProfile profile;
  visit_fields(profile, Reader(json, problem));
  if (!problem.empty()) return std::nullopt;
  return profile;
}

}  // namespace tessera::selection
