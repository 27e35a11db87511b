// SPDX-License-Identifier: Apache-2.0
// tessera bench
#include <cstdio>
#include <iostream>
#include <optional>

#include "tessera/commands/commands.hpp"
#include "tessera/files/file_io.hpp"
#include "tessera/files/tensor_files.hpp"
#include "tessera/measure/bench_json.hpp"
#include "tessera/measure/measure.hpp"
#include "tessera/measure/targets.hpp"
#include "tessera/output/progress.hpp"
#include "tessera/output/report.hpp"
#include "tessera/output/table.hpp"
#include "tessera/output/usage.hpp"

namespace tessera::tool {
namespace {

constexpr std::size_t kCallsPerPeak = 8;  // between two measurements of the peaks
constexpr int kMostCalls = 1000;
constexpr double kRegression = 1.05;  // slower than the compared run by more than this is flagged

struct BenchArguments {
  std::string operation, only, dtype, variant, config, precision, json_file, compare_file;
  std::vector<std::string> devices, shapes, options;
  double min_time = 0.5;
  int calls = 1;
};

class Bench {
 public:
  explicit Bench(const BenchArguments& arguments) : arguments_(arguments) {}

  int run() {
    const std::vector<const Operation*> operations = target_operations(arguments_.operation);
    require_types(arguments_.dtype);
    if (arguments_.calls < 1 || arguments_.calls > kMostCalls)
      throw UsageError("--calls takes 1 to " + std::to_string(kMostCalls));
    parse_precision_option(arguments_.precision);
    if (operations.size() > 1 && !(arguments_.options.empty() && arguments_.shapes.empty())) {
      throw UsageError("--shapes and --set need an operation");
    }
    if (!arguments_.config.empty()) {
      if (arguments_.variant.empty()) throw UsageError("--config needs --variant");
      config_ = as_usage([&] { return Config::parse(arguments_.config); });
    }
    if (!arguments_.compare_file.empty()) before_ = read_bench_json(arguments_.compare_file);
    const std::vector<Call> calls = calls_for(operations);
    if (calls.empty()) {
      throw UsageError("there is no benchmark for this operation, dtype, variant and --only");
    }
    const std::vector<DeviceInfo> devices = target_devices(arguments_.devices);
    std::optional<OutputFile> json;  // now: measuring takes minutes
    if (!arguments_.json_file.empty()) json.emplace(arguments_.json_file);
    for (const DeviceInfo& device : devices) {
      try {
        bench_device(device, calls);
      } catch (const Error& error) {  // one broken device hides no other
        progress_.milestone("tessera: " + device_label(device) + ": " + error.what());
        failed_ = true;
      }
    }
    progress_.wipe();
    print_table();
    if (json) {
      json->write(dump(bench_json(devices_, rows_)) + '\n');
      json->commit();
    }
    const bool slower = !arguments_.compare_file.empty() && compare();
    return failed_ || slower ? 1 : 0;
  }

 private:
  struct Call {
    const Operation* operation;
    Case shape;
    StorageTypes types;
  };

  void bench_device(const DeviceInfo& device, const std::vector<Call>& calls) {
    const Context context = open_device(device, arguments_.precision);
    progress_.wipe();
    std::cout << device_label(device) << std::endl;
    Executor executor(context);
    if (!arguments_.variant.empty()) executor = executor.with_variant(arguments_.variant);
    if (config_) executor = executor.with_config(*config_);
    PeakMeter meter(context);
    const std::size_t first = rows_.size();
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const Call& call = calls[i];
      if (i % kCallsPerPeak == 0) meter.measure();
      progress_.update(device_tag(device) + ' ' + call.operation->name + '/' + call.shape.name +
                           '/' + call.types.name(),
                       static_cast<double>(i) / static_cast<double>(calls.size()));
      rows_.push_back(measure(executor, device, *call.operation, call.shape, call.types,
                              arguments_.min_time, arguments_.calls));
      if (!rows_.back().run.failure.empty()) {
        progress_.milestone("tessera: " + rows_.back().name() + ": " + rows_.back().run.failure);
        failed_ = true;
      }
    }
    meter.measure();
    for (std::size_t i = first; i < rows_.size(); ++i) rows_[i].compare_with(meter.peaks());
    progress_.wipe();
    std::cout << "    " << peaks_text(meter.peaks()) << std::endl;
    devices_.push_back({device, meter.peaks(), context.fingerprint()});
  }

  std::vector<Call> calls_for(const std::vector<const Operation*>& operations) const {
    std::vector<Call> calls;
    for (const Operation* operation : operations) {
      const bool asked_for = operations.size() == 1;
      if (!arguments_.variant.empty()) {
        if (asked_for) find_variant(*operation, arguments_.variant);
        if (operation->find_variant(arguments_.variant) == nullptr) continue;
      }
      for (const StorageTypes& types : target_types(*operation, arguments_.dtype)) {
        for (const Case& shape : cases_for(*operation, types)) {
          calls.push_back({operation, shape, types});
        }
      }
    }
    return calls;
  }

  std::vector<Case> cases_for(const Operation& operation, const StorageTypes& types) const {
    const Options options = parse_options(operation, arguments_.options);
    if (!arguments_.shapes.empty())
      return shape_cases(operation, types, arguments_.shapes, options);
    std::vector<Case> cases = benchmark_cases(operation, types, arguments_.only);
    for (Case& shape : cases) {
      for (const auto& [name, value] : options) shape.options.insert_or_assign(name, value);
    }
    return cases;
  }

  void print_table() const {
    Table table({{"device"},
                 {"benchmark"},
                 {"dtype"},
                 {"variant"},
                 {"configuration"},
                 {"tier"},
                 {"ms", true},
                 {"spread", true},
                 {"clock", true},
                 {"rate", true},
                 {"of peak", true},
                 {"error/bound", true}});
    for (const Measured& row : rows_) {
      if (!row.run.failure.empty()) {
        table.add({device_tag(row.device), row.operation->name + '/' + row.shape.name,
                   row.types.name(), row.run.execution.choice.variant,
                   row.run.execution.choice.config.to_string(), "FAILED"});
        continue;
      }
      table.add(
          {device_tag(row.device), row.operation->name + '/' + row.shape.name, row.types.name(),
           row.run.execution.choice.variant, row.run.execution.choice.config.to_string(), row.tier,
           milliseconds(row.run.median_seconds), spread_text(row.run.spread, row.run.settled),
           clock_text(row.run.clock_mhz), rate_text(row), percent_text(row), error_text(row)});
    }
    std::cout << table.text() << unsteady_note(rows_);
  }

  // Prints new over old time of every benchmark that both runs have. True if any became too slow.
  bool compare() const {
    Table table({{"benchmark"}, {"before ms", true}, {"now ms", true}, {"ratio", true}, {""}});
    std::size_t slower = 0;
    std::size_t unmatched = 0;
    for (const Measured& row : rows_) {
      const auto before = before_.find(row.name());
      if (!row.run.failure.empty()) continue;
      if (before == before_.end()) {
        ++unmatched;
        continue;
      }
      const double ratio = row.run.median_seconds / before->second;
      const bool regressed = !(ratio <= kRegression);
      slower += regressed ? 1 : 0;
      table.add({row.name(), milliseconds(before->second), milliseconds(row.run.median_seconds),
                 fixed(ratio, 3),
                 regressed                 ? "REGRESSION"
                 : ratio < 1 / kRegression ? "faster"
                                           : ""});
    }
    std::cout << "\ncompared with " << quote(arguments_.compare_file) << ":\n"
              << table.text() << slower << " slower by more than 5 %";
    if (unmatched > 0) std::cout << ", " << unmatched << " not in that file";
    std::cout << '\n';
    return slower > 0;
  }

  const BenchArguments& arguments_;
  std::optional<Config> config_;
  Progress progress_;
  std::map<std::string, double> before_;
  std::vector<MeasuredDevice> devices_;
  std::vector<Measured> rows_;
  bool failed_ = false;
};

}  // namespace

Command add_bench(App& tool) {
  App* app = tool.add_subcommand("bench", "Check, then time, with the device's own clock.");
  const auto arguments = std::make_shared<BenchArguments>();
  BenchArguments& a = *arguments;
  app->add_option("operation", a.operation, "Only this operation");
  add_device_option(*app, a.devices);
  app->add_option("--only", a.only,
                  "Only the benchmark of this name, or else those whose name contains this");
  app->add_option("--shapes", a.shapes,
                  "Instead of the operation's own: parts of their names, or "
                  "OPERAND=1x2048x8x64,…")
      ->type_name("SHAPE");
  app->add_option("--set", a.options, "Options of the operation")->type_name("OPTION=VALUE");
  app->add_option("--dtype", a.dtype, kTypesHelp);
  app->add_option("--variant", a.variant, "This variant instead of the chosen one");
  add_precision_option(*app, a.precision);
  app->add_option("--config", a.config, "This configuration of the variant, or an error")
      ->type_name("KEY=VALUE,…");
  app->add_option("--min-time", a.min_time, "Seconds to time each benchmark for")
      ->type_name("SECONDS")
      ->seconds_between(0, 3600)
      ->capture_default_str();
  app->add_option("--calls", a.calls,
                  "Calls in a row that are timed together: what launching one costs does not count")
      ->type_name("COUNT")
      ->capture_default_str();
  app->add_option("--json", a.json_file, "Write the results, in Google Benchmark's schema")
      ->type_name("FILE");
  app->add_option("--compare", a.compare_file, "Compare with the results in this file")
      ->type_name("FILE");
  app->footer(
      "Exit code 1 if a result was wrong or, with --compare, slower by more than 5 %.\n"
      "A device works until its speed settles, then it is timed; the clock is shown where its\n"
      "driver tells. Percentages are of the f32 FMA rate (for variants made of bf16 dot\n"
      "products: of theirs) or the copy bandwidth that the tool measures, whichever limits the\n"
      "call, and stand beside it; on CPUs it was measured in turns with the call. Calls that\n"
      "only read, such as decoding on CPUs, find nothing in the caches and stand beside the\n"
      "read bandwidth.\n\n"
      "Examples:\n"
      "  tessera bench flash_attention --device opencl --dtype f32\n"
      "  tessera bench --json before.json\n"
      "  tessera bench --compare before.json");
  return {app, [arguments] { return Bench(*arguments).run(); }, true};
}

}  // namespace tessera::tool
