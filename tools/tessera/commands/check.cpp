// SPDX-License-Identifier: Apache-2.0
// tessera check
#include <csignal>
#include <cstring>
#include <iostream>
#include <map>
#include <mutex>
#include <set>

#include "conformance/conformance.hpp"
#include "tessera/commands/commands.hpp"
#include "tessera/files/tensor_files.hpp"
#include "tessera/measure/targets.hpp"
#include "tessera/on_signal.hpp"
#include "tessera/output/progress.hpp"
#include "tessera/output/report.hpp"
#include "tessera/output/say.hpp"
#include "tessera/output/usage.hpp"

namespace tessera::tool {
namespace {

struct CheckArguments {
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
  explicit Checker(const CheckArguments& arguments) : arguments_(arguments) {
    options_.only = arguments.only;
    options_.variant = arguments.variant;
    if (!arguments.config.empty()) {
      if (arguments.variant.empty()) throw UsageError("--config needs --variant");
      options_.config = as_usage([&] { return Config::parse(arguments.config); });
    }
    require_types(arguments.dtype);
    if (!arguments.dtype.empty()) options_.types = arguments.dtype;
    options_.precision = parse_precision_option(arguments.precision);
    options_.edge_cases = !arguments.quick;
    if (arguments.quick) options_.max_configs = 1;
  }

  int run() {
    operations_ = target_operations(arguments_.operation);
    if (!arguments_.variant.empty()) require_variant();
    // Before drivers start threads.
    const OnSignal on_signal([this](int signal) { stop(signal); });
    const std::vector<DeviceInfo> devices = target_devices(arguments_.devices);
    const double step = 1.0 / static_cast<double>(devices.size());
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const DeviceInfo& device = devices[i];
      try {
        check_device(device, static_cast<double>(i) * step, step);
      } catch (const Error& error) {  // one broken device hides no other
        const std::lock_guard lock(mutex_);
        ++totals_.broken_devices;
        print(device_label(device) + ": " + error.what());
        broken_.push_back({{"device", device_label(device)}, {"why", error.what()}});
      }
    }
    const std::lock_guard lock(mutex_);
    finish();
    if (totals_.passed + totals_.failed == 0) note("nothing was checked" + why_nothing());
    return totals_.failed + totals_.broken_devices > 0 || totals_.passed == 0 ? 1 : 0;
  }

 private:
  void require_variant() const {
    for (const Operation* operation : operations_) {
      if (operation->find_variant(arguments_.variant) != nullptr) return;
    }
    find_variant(*operations_.front(), arguments_.variant);  // throws, listing what there is
  }

  // The summary of what was checked until now.
  void stop(int signal) {
    const std::lock_guard lock(mutex_);
    if (finished_) return;
    stopped_by_ = strsignal(signal);
    finish();
    std::cout.flush();
    note("stopped by a signal (" + stopped_by_ + ") before everything was checked");
  }

  // ": …" where --only names nothing; the names that there are.
  std::string why_nothing() const {
    if (arguments_.only.empty() || totals_.skipped > 0) return "";
    std::set<std::string> names;
    for (const Operation* operation : operations_) {
      if (!operation->workload.cases) continue;
      for (const StorageTypes& types : target_types(*operation, arguments_.dtype)) {
        for (const Case& shape : operation->workload.cases(types)) names.insert(shape.name);
      }
    }
    std::string list;
    for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
    return ": no case has " + quote(arguments_.only) + " in its name; there are " + list;
  }

  // With the lock.
  void print(const std::string& line) {
    progress_.wipe();
    if (!arguments_.json) std::cout << line << std::endl;
  }

  void check_device(const DeviceInfo& device, double part, double step) {
    const Context context = open_device(device);
    {
      const std::lock_guard lock(mutex_);
      print(device.profile.backend == Backend::kHost
                ? device_label(device) + " (the reference checks itself here)"
                : device_label(device));
    }
    std::vector<const Operation*> operations = operations_;
    if (!arguments_.variant.empty()) {
      std::erase_if(operations, [&](const Operation* operation) {
        return operation->find_variant(arguments_.variant) == nullptr;
      });
    }
    step /= static_cast<double>(operations.size());
    for (const Operation* operation : operations) {
      check_operation(context, device, *operation, part, step);
      part += step;
    }
  }

  void check_operation(const Context& context, const DeviceInfo& device, const Operation& operation,
                       double part, double step) {
    std::size_t passed = 0, failed = 0, skipped = 0;
    double worst = 0;
    std::set<std::string> reasons;
    const auto each = [&](const conformance::CheckResult& result) {
      const std::lock_guard lock(mutex_);
      ++(result.skipped ? skipped : result.passed ? passed : failed);
      ++(result.skipped ? totals_.skipped : result.passed ? totals_.passed : totals_.failed);
      progress_.update(std::to_string(passed + failed + skipped) + " " + result.name,
                       part + step * part_of(operation, result.name));
      if (!result.skipped) totals_.ran.insert(kernel_of(result.name));
      if (result.skipped && reasons.insert(result.detail).second)
        ++totals_.skip_reasons[result.detail];
      if (result.passed && !(result.worst <= worst)) worst = result.worst;
      take(device, result);
    };
    conformance::check(context, operation, options_, each);
    const std::lock_guard lock(mutex_);
    print("  " + operation.name + ": " + std::to_string(passed) + " passed, " +
          std::to_string(failed) + " failed, " + std::to_string(skipped) +
          " skipped, worst error " + significant(worst) + " of its bound");
  }

  // Of an operation's variants, those before the one that is being checked.
  static double part_of(const Operation& operation, const std::string& name) {
    const std::string kernel = kernel_of(name);
    for (std::size_t i = 0; i < operation.variants.size(); ++i) {
      if (kernel == operation.name + '.' + operation.variants[i].name)
        return static_cast<double>(i) / static_cast<double>(operation.variants.size());
    }
    return 0;
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

  std::vector<std::string> never_ran() const {
    std::vector<std::string> names;
    for (const Operation* operation : operations_) {
      for (const Variant& variant : operation->variants) {
        const std::string name = operation->name + '.' + variant.name;
        const bool asked = arguments_.variant.empty() || variant.name == arguments_.variant;
        if (asked && !totals_.ran.contains(name)) names.push_back(name);
      }
    }
    return names;
  }

  // With the lock.
  void finish() {
    finished_ = true;
    progress_.wipe();
    const std::vector<std::string> idle = never_ran();
    if (arguments_.json) {
      Json reasons = Json::object();
      for (const auto& [reason, count] : totals_.skip_reasons) reasons[reason] = count;
      std::cout << dump({{"passed", totals_.passed},
                         {"failed", totals_.failed},
                         {"skipped", totals_.skipped},
                         {"stopped_by", stopped_by_},
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
              << " skipped" << (stopped_by_.empty() ? "" : " until it was stopped") << '\n';
  }

  const CheckArguments& arguments_;
  conformance::CheckOptions options_;
  std::vector<const Operation*> operations_;
  std::mutex mutex_;  // of what follows: a signal has its own thread print it
  bool finished_ = false;
  std::string stopped_by_;  // a signal
  Totals totals_;
  Progress progress_;
  Json results_ = Json::array();
  Json broken_ = Json::array();
};

}  // namespace

Command add_check(App& tool) {
  App* app = tool.add_subcommand("check", "Check every kernel against the reference.");
  const auto arguments = std::make_shared<CheckArguments>();
  CheckArguments& a = *arguments;
  app->add_option("operation", a.operation, "Only this operation");
  add_device_option(*app, a.devices);
  app->add_option("--variant", a.variant, "Only this variant");
  app->add_option("--config", a.config, "Only this configuration of the variant")
      ->type_name("KEY=VALUE,…");
  app->add_option("--only", a.only, "Only cases whose name contains this");
  app->add_option("--dtype", a.dtype, kTypesHelp);
  app->add_option("--precision", a.precision,
                  "Only variants that keep default, high or highest (default: all)");
  app->add_flag("--quick", a.quick, "One configuration of each variant, no cases at tile edges");
  app->add_flag("-v,--verbose", a.verbose, "Print what passed and what was skipped, too");
  app->add_flag("--json", a.json, "Print JSON");
  app->footer(
      "Exit code 1 if anything failed or nothing was checked. A signal (Ctrl-C) has the summary "
      "of\n"
      "what was checked until then printed; the exit code is then 128 + its number.\n\n"
      "Examples:\n"
      "  tessera check\n"
      "  tessera check flash_attention --device vulkan --variant tile --dtype f16\n"
      "  tessera check --only window -v");
  return {app, [arguments] { return Checker(*arguments).run(); }};
}

}  // namespace tessera::tool
