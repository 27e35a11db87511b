// SPDX-License-Identifier: Apache-2.0
#include "device/quirks.hpp"

#include <algorithm>

#include "base/system/environment.hpp"
#include "base/system/out_of_memory.hpp"

namespace tessera {
namespace device {

const std::vector<Quirk>& quirks() {
  static const std::vector<Quirk> table{
      {.vendor = "AMD",
       .other_drivers = {"radv"},
       .kinds = {DeviceKind::kIntegratedGpu},
       .without = Feature::kCooperativeMatrix,
       .why = "asking this driver for the shapes of its matrices crashes the process",
       .source = "https://github.com/GPUOpen-Drivers/AMDVLK/issues/422"},
      {.vendor = "AMD",
       .other_drivers = {"radv"},
       .names = {"RX 4", "RX 5", "RX 6", "Vega", "Radeon VII", "Pro W5", "Pro W6", "Pro V"},
       .without = Feature::kCooperativeMatrix,
       .why = "this driver offers matrices on GPUs that have no unit for them",
       .source = "https://github.com/ggml-org/llama.cpp/pull/11074"},
      {.vendor = "Intel",
       .drivers = {"Intel Corporation"},
       .names = {"Arc(TM) A", "Arc(tm) A"},
       .without = Feature::kCooperativeMatrix,
       .why = "this driver's matrices can be a thousand times slower than none on these GPUs",
       .source = "https://github.com/ggml-org/llama.cpp/pull/24404"},
      {.vendor = "Intel",
       .names = {"DG1", "Iris(R) Xe MAX"},
       .without = Feature::kCooperativeMatrix,
       .why = "matrices, which this GPU has no unit for, give wrong numbers",
       .source = "https://github.com/ggml-org/llama.cpp/issues/12690"},
      {.vendor = "NVIDIA",
       .names = {"RTX 20", "GTX 16", "TITAN RTX", "Quadro RTX", "Tesla T4", "NVIDIA T4"},
       .without = Feature::kCooperativeMatrix,
       .why = "attention on this generation's matrices is miscompiled",
       .source = "https://github.com/ggml-org/llama.cpp/pull/19290"},
  };
  return table;
}

bool concerns(const Quirk& quirk, const DeviceProfile& profile) {
  const auto begins = [&](std::string_view text) { return profile.driver.starts_with(text); };
  const auto contains = [&](std::string_view text) {
    return profile.name.find(text) != std::string::npos;
  };
  return profile.backend == quirk.backend && profile.vendor == quirk.vendor &&
         (quirk.drivers.empty() || std::ranges::any_of(quirk.drivers, begins)) &&
         std::ranges::none_of(quirk.other_drivers, begins) &&
         (quirk.names.empty() || std::ranges::any_of(quirk.names, contains)) &&
         (quirk.kinds.empty() || std::ranges::count(quirk.kinds, profile.kind) > 0);
}

Feature withheld_features(const DeviceProfile& profile) {
  Feature withheld = environment().disabled;
  if (!environment().quirks) return withheld;
  for (const Quirk& quirk : quirks()) {
    if (concerns(quirk, profile)) withheld = withheld | quirk.without;
  }
  return withheld;
}

}  // namespace device

std::vector<std::string> quirks_of(const DeviceProfile& profile) try {
  std::vector<std::string> sentences;
  for (const device::Quirk& quirk : device::quirks()) {
    if (!environment().quirks || !device::concerns(quirk, profile)) continue;
    std::string names;
    for (const FeatureName& known : feature_names()) {
      if (!has(quirk.without, known.feature)) continue;
      names += (names.empty() ? "" : ", ") + std::string(known.name);
    }
    sentences.push_back("without " + names + ": " + std::string(quirk.why) + " (" +
                        std::string(quirk.source) + ")");
  }
  return sentences;
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
