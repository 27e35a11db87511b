// SPDX-License-Identifier: Apache-2.0
#include "tessera/output/report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "base/system/timing.hpp"

namespace tessera::tool {

std::string fixed(double value, int digits) {
  std::array<char, 400> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

std::string significant(double value) {
  if (!std::isfinite(value) || value == 0) return fixed(value, 0);
  const int magnitude = static_cast<int>(std::floor(std::log10(std::abs(value))));
  return fixed(value, std::clamp(2 - magnitude, 0, 9));
}

std::string milliseconds(double seconds) { return significant(seconds * 1e3); }

std::string bytes_text(std::uint64_t bytes) {
  static constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return (value == std::floor(value) ? fixed(value, 0) : fixed(value, 1)) + " " + kUnits.at(unit);
}

bool is_unsteady(double spread, bool settled) { return !settled || spread > kWideSpread; }

std::string spread_text(double spread, bool settled) {
  return fixed(100 * spread, 1) + " %" + (is_unsteady(spread, settled) ? " !" : "");
}

std::string clock_text(double mhz) { return mhz > 0 ? fixed(mhz, 0) + " MHz" : "–"; }

std::string utc_now() { return utc_text(std::time(nullptr)); }

std::string utc_text(std::time_t now) {
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S+00:00", &parts);
  return text.data();
}

std::string tier_text(const Choice& choice) {
  std::string text(to_string(choice.tier));
  if (choice.origin != choice.tier) text += " (" + std::string(to_string(choice.origin)) + ")";
  return text;
}

Json choice_json(const Choice& choice) {
  return {{"variant", choice.variant},
          {"config", choice.config.to_string()},
          {"tier", to_string(choice.tier)},
          {"origin", to_string(choice.origin)},
          {"why", choice.why}};
}

Json execution_json(const Execution& execution) {
  Json json{{"name", execution.name},
            {"operation", execution.operation},
            {"key", execution.key},
            {"precision", to_string(execution.precision)},
            {"device", execution.device}};
  json.update(choice_json(execution.choice));
  if (execution.tuned_milliseconds > 0) {
    json["tuned_milliseconds"] = execution.tuned_milliseconds;
  }
  return json;
}

Json profile_json(const DeviceInfo& device) {
  const DeviceProfile& p = device.profile;
  Json features = Json::array();
  for (const FeatureName& known : feature_names()) {
    if (has(p.features, known.feature)) features.push_back(known.name);
  }
  Json shapes = Json::array();
  for (const MatrixShape& shape : p.matrix_shapes) shapes.push_back(to_string(shape));
  return {{"index", device.index},
          {"backend", to_string(p.backend)},
          {"kind", to_string(p.kind)},
          {"name", p.name},
          {"vendor", p.vendor},
          {"vendor_id", p.vendor_id},
          {"device_id", p.device_id},
          {"driver", p.driver},
          {"api_version", p.api_version},
          {"compiler", p.compiler},
          {"uuid", p.uuid},
          {"pci_address", p.pci_address},
          {"features", features},
          {"compute_units", p.compute_units},
          {"subgroup_size", p.subgroup_size},
          {"native_float_width", p.native_float_width},
          {"max_group_size", p.max_group_size},
          {"max_groups", p.max_groups},
          {"local_memory", p.local_memory},
          {"global_memory", p.global_memory},
          {"max_allocation", p.max_allocation},
          {"max_binding", p.max_binding},
          {"max_push_constants", p.max_push_constants},
          {"matrix_shapes", shapes},
          {"same_as", device.same_as}};
}

}  // namespace tessera::tool
