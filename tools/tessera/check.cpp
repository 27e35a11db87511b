// SPDX-License-Identifier: Apache-2.0
// tessera check
#include <cstdio>
#include <iostream>
#include <map>
#include <set>

#include "commands.hpp"
#include "conformance/conformance.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "targets.hpp"
#include "usage.hpp"

namespace tessera::tool {
namespace {

struct Arguments {
  std::string operation, variant, config, only, dtype, precision;
  std::vector<std::string> devices;
  bool quick = false, json = false, verbose = false;
};

struct Totals {
  std::size_t passed = 0, failed = 0, skipped = 0, broken_devices = 0;
  std::map<std::string, std::size_t> skip_reasons;
  std::set<std::string> ran;  // "operation.variant" that ran somewhere
};

// "flash_attention.tile" of "flash_attention.tile/f16@…" and of "flash_attention.tile CASE"
std::string kernel_of(const std::string& name) { return name.substr(0, name.find_first_of("/ ")); }

class Checker {
 public:
  explicit Checker(const Arguments& arguments) : arguments_(arguments) {
    options_.only = arguments.only;
    options_.variant = arguments.variant;
    if (!arguments.config.empty()) {
      if (arguments.variant.empty()) throw UsageError("--config needs --variant");
      options_.config = as_usage([&] { return Config::parse(arguments.config); });
    }
    options_.dtype = parse_dtype_option(arguments.dtype);
    options_.precision = parse_precision_option(arguments.precision);
    options_.edge_cases = !arguments.quick;
    if (arguments.quick) options_.max_configs = 1;
  }

  int run() {
    const std::vector<const Operation*> operations = target_operations(arguments_.operation);
    if (!arguments_.variant.empty()) require_variant(operations);
    for (const DeviceInfo& device : target_devices(arguments_.devices)) {
      try {
        check_device(device, operations);
      } catch (const Error& error) {  // one broken device hides no other
        ++totals_.broken_devices;
        print(device_label(device) + ": " + error.what());
        broken_.push_back({{"device", device_label(device)}, {"why", error.what()}});
      }
    }
    finish(operations);
    return totals_.failed + totals_.broken_devices > 0 || totals_.passed == 0 ? 1 : 0;
  }

 private:
  void require_variant(const std::vector<const Operation*>& operations) const {
    for (const Operation* operation : operations) {
      if (operation->find_variant(arguments_.variant) != nullptr) return;
    }
    find_variant(*operations.front(), arguments_.variant);  // throws, listing what there is
  }

  void print(const std::string& line) {
    progress_.wipe();
    if (!arguments_.json) std::cout << line << std::endl;
  }

  void check_device(const DeviceInfo& device, const std::vector<const Operation*>& operations) {
    const Context context = open_device(device);
    print(device.profile.backend == Backend::kHost
              ? device_label(device) + " (the reference checks itself here)"
              : device_label(device));
    for (const Operation* operation : operations) {
      if (!arguments_.variant.empty() && operation->find_variant(arguments_.variant) == nullptr) {
        continue;
      }
      std::size_t done = 0;
      double worst = 0;
      const auto each = [&](const conformance::CheckResult& result) {
        ++done;
        progress_.update(std::to_string(done) + " " + result.name);
        if (!result.skipped) totals_.ran.insert(kernel_of(result.name));
        if (result.passed && !(result.worst <= worst)) worst = result.worst;
        take(device, result);
      };
      const conformance::CheckSummary summary =
          conformance::check(context, *operation, options_, each);
      totals_.passed += summary.passed;
      totals_.failed += summary.failed;
      totals_.skipped += summary.skipped;
      for (const std::string& reason : summary.skip_reasons) ++totals_.skip_reasons[reason];
      print("  " + operation->name + ": " + std::to_string(summary.passed) + " passed, " +
            std::to_string(summary.failed) + " failed, " + std::to_string(summary.skipped) +
            " skipped, worst error " + significant(worst) + " of its bound");
    }
  }

  void take(const DeviceInfo& device, const conformance::CheckResult& result) {
    const char* verdict = result.skipped ? "skipped" : result.passed ? "passed" : "failed";
    if (arguments_.json) {
      results_.push_back({{"device", device.index},
                          {"name", result.name},
                          {"result", verdict},
                          {"error_over_bound", result.worst},
                          {"detail", result.detail}});
      return;
    }
    if (result.skipped || result.passed) {
      if (arguments_.verbose) {
        print("    " + std::string(verdict) + ' ' + result.name +
              (result.detail.empty() ? "" : ": " + result.detail));
      }
    } else {
      print("    FAILED " + result.name + ": " + result.detail);
    }
  }

  std::vector<std::string> never_ran(const std::vector<const Operation*>& operations) const {
    std::vector<std::string> names;
    for (const Operation* operation : operations) {
      for (const Variant& variant : operation->variants) {
        const std::string name = operation->name + '.' + variant.name;
        const bool asked = arguments_.variant.empty() || variant.name == arguments_.variant;
        if (asked && !totals_.ran.contains(name)) names.push_back(name);
      }
    }
    return names;
  }

  void finish(const std::vector<const Operation*>& operations) {
    progress_.wipe();
    const std::vector<std::string> idle = never_ran(operations);
    if (arguments_.json) {
      Json reasons = Json::object();
      for (const auto& [reason, count] : totals_.skip_reasons) reasons[reason] = count;
      std::cout << dump({{"passed", totals_.passed},
                         {"failed", totals_.failed},
                         {"skipped", totals_.skipped},
                         {"skip_reasons", reasons},
                         {"variants_that_ran_nowhere", idle},
                         {"broken_devices", broken_},
                         {"results", results_}})
                << '\n';
      return;
    }
    if (!totals_.skip_reasons.empty()) std::cout << "skipped:\n";
    for (const auto& [reason, count] : totals_.skip_reasons) {
      std::cout << "  " << reason << (count > 1 ? " (" + std::to_string(count) + " times)" : "")
                << '\n';
    }
    for (const std::string& name : idle) std::cout << "ran on no device: " << name << '\n';
    std::cout << totals_.passed << " passed, " << totals_.failed << " failed, " << totals_.skipped
              << " skipped\n";
    if (totals_.passed + totals_.failed == 0) {
      std::cout << "nothing was checked"
                << (arguments_.only.empty() ? "" : ": no case matches --only") << '\n';
    }
  }

  const Arguments& arguments_;
  conformance::CheckOptions options_;
  Totals totals_;
  Progress progress_;
  Json results_ = Json::array();
  Json broken_ = Json::array();
};

}  // namespace

Command add_check(CLI::App& tool) {
  CLI::App* app = tool.add_subcommand("check", "Check every kernel against the reference.");
  const auto arguments = std::make_shared<Arguments>();
  Arguments& a = *arguments;
  app->add_option("operation", a.operation, "Only this operation");
  add_device_option(*app, a.devices);
  app->add_option("--variant", a.variant, "Only this variant");
  app->add_option("--config", a.config, "Only this configuration of the variant")
      ->type_name("KEY=VALUE,…");
  app->add_option("--only", a.only, "Only cases whose name contains this");
  app->add_option("--dtype", a.dtype, "Only f32, f16 or bf16");
  app->add_option("--precision", a.precision,
                  "Only variants that keep default, high or highest (default: all)");
  app->add_flag("--quick", a.quick, "One configuration of each variant, no cases at tile edges");
  app->add_flag("-v,--verbose", a.verbose, "Print what passed and what was skipped, too");
  app->add_flag("--json", a.json, "Print JSON");
  app->footer(
      "Exit code 1 if anything failed or nothing was checked.\n\n"
      "Examples:\n"
      "  tessera check\n"
      "  tessera check flash_attention --device vulkan --variant tile --dtype f16\n"
      "  tessera check --only window -v");
  return {app, [arguments] { return Checker(*arguments).run(); }};
}

}  // namespace tessera::tool
