// SPDX-License-Identifier: Apache-2.0
// tessera devices
#include <cstdio>
#include <iostream>
#include <map>

#include "kernel/embedded.hpp"
#include "kernel/ranking.hpp"
#include "selection/cache/cache.hpp"
#include "selection/selector.hpp"
#include "tessera/commands/commands.hpp"
#include "tessera/measure/targets.hpp"
#include "tessera/output/report.hpp"

namespace tessera::tool {
namespace {

struct DevicesArguments {
  std::vector<std::string> devices;
  bool verbose = false;
  bool json = false;
};

// Whether a variant takes an operation in one dtype, judged on the operation's own benchmark and
// conformance cases.
struct Acceptance {
  const Operation* operation;
  const Variant* variant;
  StorageTypes types;
  std::string why_not;  // empty = takes at least one of them
};

std::vector<Problem> sample_problems(const Operation& operation, const StorageTypes& types) {
  std::vector<Case> cases = benchmark_cases(operation, types, "");
  if (operation.workload.cases) {
    const std::vector<Case> more = operation.workload.cases(types);
    cases.insert(cases.end(), more.begin(), more.end());
  }
  std::vector<Problem> problems;
  for (const Case& shape : cases) {
    try {
      problems.push_back(problem_of(operation, shape));
    } catch (const Error&) {
      // A case may be there to be refused.
    }
  }
  return problems;
}

Acceptance judge(const Operation& operation, const Variant& variant, const StorageTypes& types,
                 const std::vector<Problem>& problems, const DeviceProfile& profile) {
  Acceptance result{&operation, &variant, types,
                    problems.empty() ? "no sample call to ask with" : ""};
  for (const Problem& problem : problems) {
    const Refusal refusal = selection::refusal(problem, variant, profile);
    if (!refusal) return {&operation, &variant, types, ""};
    if (result.why_not.empty()) result.why_not = *refusal;
  }
  return result;
}

using Samples = std::map<std::pair<const Operation*, std::string>, std::vector<Problem>>;

Samples all_samples() {
  Samples samples;
  for (const Operation* operation : all_operations()) {
    for (const StorageTypes& types : storage_types(*operation)) {
      samples[{operation, types.name()}] = sample_problems(*operation, types);
    }
  }
  return samples;
}

std::vector<Acceptance> judge_all(const Samples& samples, const DeviceProfile& profile) {
  std::vector<Acceptance> result;
  for (const Operation* operation : all_operations()) {
    for (const Variant& variant : operation->variants) {
      for (const StorageTypes& types : storage_types(*operation)) {
        result.push_back(
            judge(*operation, variant, types, samples.at({operation, types.name()}), profile));
      }
    }
  }
  return result;
}

std::string kernels_text(const std::vector<Acceptance>& verdicts) {
  std::string text;
  for (std::size_t i = 0; i < verdicts.size();) {
    const Variant* variant = verdicts[i].variant;
    std::string taken;
    std::vector<std::pair<std::string, std::string>> refused;  // reason, dtypes
    for (; i < verdicts.size() && verdicts[i].variant == variant; ++i) {
      const std::string& types = verdicts[i].types.name();
      if (verdicts[i].why_not.empty()) {
        taken += ' ' + types;
      } else if (!refused.empty() && refused.back().first == verdicts[i].why_not) {
        refused.back().second += ' ' + types;
      } else {
        refused.emplace_back(verdicts[i].why_not, types);
      }
    }
    const std::string name = verdicts[i - 1].operation->name + '.' + variant->name;
    if (!taken.empty())
      text.append("      takes   ").append(name).append(":").append(taken) += '\n';
    for (const auto& [why, dtypes] : refused) {
      text.append("      refuses ").append(name).append(": ").append(dtypes);
      text.append(": ").append(why) += '\n';
    }
  }
  return text;
}

std::string number(std::uint64_t value, const char* unit = "") {
  return value == 0 ? "unknown" : std::to_string(value) + unit;
}

std::string size(std::uint64_t value) { return value == 0 ? "unknown" : bytes_text(value); }

std::string details(const DeviceInfo& device, const Samples& samples) {
  const DeviceProfile& p = device.profile;
  std::string features;
  for (const FeatureName& known : feature_names()) {
    features += (features.empty() ? "" : ", ") + std::string(known.name) +
                (has(p.features, known.feature) ? ": yes" : ": no");
  }
  std::string quirks;
  std::string matrices;
  for (const MatrixShape& shape : p.matrix_shapes)
    matrices += (matrices.empty() ? "" : ", ") + to_string(shape);
  const auto line = [](const char* title, const std::string& value) {
    return value.empty() ? "" : "    " + std::string(title) + ": " + value + '\n';
  };
  for (const std::string& quirk : quirks_of(p)) quirks += line("quirk", quirk);
  if (is_gpu(p) && !selection::is_in_shipped_database(p))
    quirks +=
        line("configurations", kernel::is_measured(p)
                                   ? "defaults measured on an H200, not here; tessera tune measures"
                                   : "defaults by model, not measured; tessera tune measures");
  std::array<char, 32> ids{};
  std::snprintf(ids.data(), ids.size(), "%04x:%04x", p.vendor_id, p.device_id);
  return line("vendor", p.vendor + " (" + ids.data() + ")") + line("driver", p.driver) +
         line("interface", p.api_version) + line("compiler", p.compiler) + line("UUID", p.uuid) +
         line("PCI address", p.pci_address) + line("fingerprint", selection::fingerprint(p)) +
         line("features", features) + line("matrices", matrices) + quirks +
         line("compute units", number(p.compute_units)) +
         line("sub-group", number(p.subgroup_size, " lanes")) +
         line("largest work-group", number(p.max_group_size, " work-items")) +
         line("most work-groups", number(p.max_groups[0]) + " x " + number(p.max_groups[1]) +
                                      " x " + number(p.max_groups[2])) +
         line("local memory", size(p.local_memory)) + line("memory", size(p.global_memory)) +
         line("largest buffer", size(p.max_allocation)) +
         line("largest binding", size(p.max_binding)) + "    kernels:\n" +
         kernels_text(judge_all(samples, p));
}

std::string routes(const DeviceInfo& device) {
  std::string text;
  for (const int other : device.same_as) text += (text.empty() ? "" : ", ") + std::to_string(other);
  return text.empty() ? "" : " (same device as " + text + ")";
}

// With the abilities that it is left with when it is opened.
DeviceInfo as_opened(DeviceInfo device) {
  try {
    device.profile = open_device(device).device();
  } catch (const Error& error) {
    std::cout << device.index << " can't be opened: " << error.what() << '\n';
  }
  return device;
}

std::vector<DeviceInfo> listed_devices(const DevicesArguments& arguments) {
  return arguments.devices.empty() ? probe_devices().devices : target_devices(arguments.devices);
}

void print_text(const DevicesArguments& arguments) {
  const Samples samples = arguments.verbose ? all_samples() : Samples{};
  for (const DeviceInfo& device : listed_devices(arguments)) {
    std::cout << device.index << ' ' << summary(device.profile) << routes(device) << '\n';
    if (arguments.verbose) std::cout << details(as_opened(device), samples);
  }
  for (const ProbeFailure& failure : probe_devices().failures) {
    std::cout << "not usable: " << failure.where << ": " << failure.why << '\n';
  }
  const auto skipped = kernel::skipped_modules();
  if (skipped.empty()) return;
  if (!arguments.verbose) {
    std::cout << skipped.size() << " kernels were not built by this build; -v lists them\n";
    return;
  }
  for (const kernel::SkippedModule& module : skipped) {
    std::cout << "not built: " << module.name << ": " << module.why << '\n';
  }
}

void print_json(const DevicesArguments& arguments) {
  const Samples samples = all_samples();
  Json devices = Json::array();
  for (const DeviceInfo& device : listed_devices(arguments)) {
    Json json = profile_json(device);
    json["fingerprint"] = selection::fingerprint(device.profile);
    json["quirks"] = quirks_of(device.profile);
    Json kernels = Json::array();
    for (const Acceptance& verdict : judge_all(samples, device.profile)) {
      Json entry{{"operation", verdict.operation->name},
                 {"variant", verdict.variant->name},
                 {"dtype", verdict.types.name()},
                 {"takes", verdict.why_not.empty()}};
      if (!verdict.why_not.empty()) entry["why_not"] = verdict.why_not;
      kernels.push_back(entry);
    }
    json["kernels"] = kernels;
    devices.push_back(json);
  }
  Json failures = Json::array();
  for (const ProbeFailure& failure : probe_devices().failures) {
    failures.push_back({{"where", failure.where}, {"why", failure.why}});
  }
  Json skipped = Json::array();
  for (const kernel::SkippedModule& module : kernel::skipped_modules()) {
    skipped.push_back({{"name", module.name}, {"why", module.why}});
  }
  std::cout << dump({{"devices", devices}, {"failures", failures}, {"not_built", skipped}}) << '\n';
}

}  // namespace

Command add_devices(App& tool) {
  App* app = tool.add_subcommand("devices", "List the devices of all platforms.");
  const auto arguments = std::make_shared<DevicesArguments>();
  app->add_option("--device", arguments->devices,
                  "Only these: index, platform, kind, name or UUID");
  app->add_flag("-v,--verbose", arguments->verbose,
                "Limits, features, fingerprint, and which kernels each device takes or refuses");
  app->add_flag("--json", arguments->json, "As JSON, with everything that -v tells");
  app->footer(
      "Examples:\n"
      "  tessera devices\n"
      "  tessera devices -v --device vulkan:llvmpipe\n"
      "  tessera devices --json | jq '.devices[].name'");
  return {app, [arguments] {
            if (arguments->json) {
              print_json(*arguments);
            } else {
              print_text(*arguments);
            }
            return 0;
          }};
}

}  // namespace tessera::tool
