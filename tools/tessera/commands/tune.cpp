// SPDX-License-Identifier: Apache-2.0
// tessera tune
#include <algorithm>
#include <iostream>
#include <set>

#include "tessera/commands/commands.hpp"
#include "tessera/measure/targets.hpp"
#include "tessera/measure/tuning.hpp"
#include "tessera/output/report.hpp"
#include "tessera/output/say.hpp"
#include "tessera/output/table.hpp"
#include "tessera/output/usage.hpp"

namespace tessera::tool {
namespace {

struct TuneArguments {
  std::string operation, dtype;
  std::vector<std::string> devices, shapes, options;
  double budget = 60;
  bool missing = false, json = false, verbose = false;
};

struct Result {
  DeviceInfo device;
  TuneJob job;
  TuneReport report;
  double milliseconds = 0, spread = 0;
  double untuned = 0;  // milliseconds of what rules take, which is tried first; 0: it failed
};

class Tuner {
 public:
  explicit Tuner(const TuneArguments& arguments) : arguments_(arguments) {}

  int run() {
    const std::vector<const Operation*> operations = target_operations(arguments_.operation);
    require_types(arguments_.dtype);
    if (operations.size() > 1 && !arguments_.options.empty()) {
      throw UsageError("--set needs an operation");
    }
    struct Plan {
      DeviceInfo device;
      Context context;
      std::vector<TuneJob> jobs;
    };
    std::vector<Plan> plans;
    std::size_t total = 0;
    for (const DeviceInfo& device : target_devices(arguments_.devices)) {
      try {
        const Context context = open_device(device);
        plans.push_back({device, context, jobs_for(device, context, operations)});
        total += plans.back().jobs.size();
      } catch (const UsageError&) {
        throw;
      } catch (const Error& error) {  // one broken device hides no other
        fail(device_label(device) + ": " + error.what());
      }
    }
    if (!found_case_ && !failed_) {
      throw UsageError("there is nothing to tune for this operation, dtype and --shapes");
    }
    Budget budget(arguments_.budget, total);
    std::size_t done = 0;
    for (const Plan& plan : plans) {
      const Executor executor(plan.context);
      bool tuned = false;
      for (const TuneJob& job : plan.jobs) {
        const double step = 1.0 / static_cast<double>(total);
        const double part = static_cast<double>(done++) * step;
        try {
          take({plan.device, job,
                tune_job(executor, device_tag(plan.device), job, budget, progress_, part, step)});
          tuned = tuned || results_.back().report.best.has_value();
        } catch (const DeviceLost& error) {
          fail(device_label(plan.device) + ": " + error.what());
          break;
        } catch (const Error& error) {
          fail(device_tag(plan.device) + ' ' + job_name(job) + ": not tuned, because " +
               one_line(error.what()));
        }
      }
      if (const auto why = tuned ? why_not_kept(plan.context) : std::nullopt)
        fail(device_label(plan.device) + ": not kept, because " + *why);
    }
    print();
    return failed_ ? 1 : 0;
  }

 private:
  void fail(const std::string& text) {
    progress_.milestone("tessera: " + text);
    failures_.push_back(text);
    failed_ = true;
  }

  std::vector<TuneJob> jobs_for(const DeviceInfo& device, const Context& context,
                                const std::vector<const Operation*>& operations) {
    std::vector<TuneJob> jobs;
    std::set<std::string> keys;
    for (const Operation* operation : operations) {
      for (const StorageTypes& types : target_types(*operation, arguments_.dtype)) {
        for (const Case& shape : cases_for(*operation, types)) {
          found_case_ = true;
          try {
            const Problem problem = problem_of(*operation, shape);
            if (!keys.insert(operation->name + '|' + problem.key).second) continue;
            const Explanation explanation = Executor(context).explain(problem);
            const Choice& choice = explanation.execution.choice;
            if (arguments_.missing && choice.origin == Tier::kAutotune) {
              ++known_;
              continue;
            }
            jobs.push_back({operation, shape, types, problem.key});
          } catch (const Unsupported& error) {
            fail(device_tag(device) + ' ' + operation->name + '/' + shape.name + '/' +
                 types.name() + ": not tuned, because " + one_line(error.what()));
          }
        }
      }
    }
    return jobs;
  }

  std::vector<Case> cases_for(const Operation& operation, const StorageTypes& types) const {
    const Options options = parse_options(operation, arguments_.options);
    if (!arguments_.shapes.empty()) {
      return shape_cases(operation, types, arguments_.shapes, options);
    }
    std::vector<Case> cases = benchmark_cases(operation, types, "");
    for (Case& shape : cases) {
      for (const auto& [name, value] : options) shape.options.insert_or_assign(name, value);
    }
    return cases;
  }

  void take(Result result) {
    if (result.report.best) {
      const Measurement& of_rules = result.report.measurements.front();
      if (of_rules.failure.empty()) result.untuned = of_rules.milliseconds;
      for (const Measurement& m : result.report.measurements) {
        const bool chosen =
            m.variant == result.report.best->variant && m.config == result.report.best->config;
        if (!chosen) continue;
        result.milliseconds = m.milliseconds;
        result.spread = m.spread;
      }
    } else {
      failed_ = true;
    }
    results_.push_back(std::move(result));
  }

  void print() {
    progress_.wipe();
    if (arguments_.json) {
      print_json();
      return;
    }
    Table table({{"device"},
                 {"call"},
                 {"variant"},
                 {"configuration"},
                 {"ms", true},
                 {"untuned", true},
                 {"spread", true},
                 {"clock", true},
                 {"tried", true},
                 {"failed", true},
                 {"s", true}});
    for (const Result& result : results_) {
      const TuneReport& report = result.report;
      const Tally tally = count(report);
      table.add({device_tag(result.device), job_name(result.job),
                 report.best ? report.best->variant : "none",
                 report.best ? report.best->config.to_string() : "",
                 report.best ? significant(result.milliseconds) : "",
                 result.untuned > 0 ? fixed(result.untuned / result.milliseconds, 2) + " x" : "",
                 report.best ? spread_text(result.spread, report.settled) : "",
                 clock_text(report.clock_mhz), tally.text(), std::to_string(tally.failed),
                 fixed(report.seconds, 1)});
    }
    if (!table.empty()) std::cout << table.text();
    const bool unsteady = std::ranges::any_of(results_, [](const Result& result) {
      return result.report.best && is_unsteady(result.spread, result.report.settled);
    });
    if (unsteady) std::cout << kUnsteadyNote;
    if (arguments_.verbose) print_measurements();
    if (known_ > 0) std::cout << known_ << " calls were tuned before and are left as they are\n";
  }

  void print_measurements() const {
    for (const Result& result : results_) {
      std::cout << '\n' << device_tag(result.device) << ' ' << job_name(result.job) << '\n';
      for (const Measurement& m : result.report.measurements) {
        std::cout << "  " << m.variant << '{' << m.config.to_string()
                  << "}: " << (m.failure.empty() ? significant(m.milliseconds) + " ms" : m.failure)
                  << '\n';
      }
    }
  }

  void print_json() const {
    Json list = Json::array();
    for (const Result& result : results_) {
      Json measurements = Json::array();
      for (const Measurement& m : result.report.measurements) {
        measurements.push_back({{"variant", m.variant},
                                {"config", m.config.to_string()},
                                {"milliseconds", m.milliseconds},
                                {"spread", m.spread},
                                {"error_over_bound", m.error_over_bound},
                                {"failure", m.failure}});
      }
      Json json{{"device", result.device.index},
                {"operation", result.job.operation->name},
                {"case", result.job.shape.name},
                {"dtype", result.job.types.name()},
                {"key", result.job.key},
                {"seconds", result.report.seconds},
                {"clock_mhz", result.report.clock_mhz},
                {"settled", result.report.settled},
                {"out_of_budget", result.report.out_of_budget},
                {"tried", count(result.report).tried},
                {"candidates", measurements.size()},
                {"measurements", measurements}};
      if (result.report.best) {
        json["best"] = choice_json(*result.report.best);
        json["best"]["milliseconds"] = result.milliseconds;
        json["best"]["spread"] = result.spread;
        if (result.untuned > 0) json["untuned_milliseconds"] = result.untuned;
        json["best"]["unsteady"] = is_unsteady(result.spread, result.report.settled);
      }
      list.push_back(json);
    }
    std::cout << dump({{"tuned", list}, {"known_before", known_}, {"failures", failures_}}) << '\n';
  }

  const TuneArguments& arguments_;
  Progress progress_;
  std::vector<Result> results_;
  std::vector<std::string> failures_;
  std::size_t known_ = 0;
  bool found_case_ = false;
  bool failed_ = false;
};

}  // namespace

Command add_tune(App& tool) {
  App* app = tool.add_subcommand("tune", "Measure configurations and remember the best.");
  const auto arguments = std::make_shared<TuneArguments>();
  TuneArguments& a = *arguments;
  app->add_option("operation", a.operation, "Only this operation");
  add_device_option(*app, a.devices);
  app->add_option("--budget", a.budget, "Seconds for everything, shared by the calls")
      ->type_name("SECONDS")
      ->seconds_between(0.1, 1e6)
      ->capture_default_str();
  app->add_option("--shapes", a.shapes,
                  "A part of a benchmark's name, or OPERAND=4x128x64,OPERAND=… "
                  "(default: every benchmark)");
  app->add_option("--set", a.options, "Options of the operation")->type_name("OPTION=VALUE");
  app->add_option("--dtype", a.dtype, kTypesHelp);
  app->add_flag("--missing", a.missing, "Only calls that have no tuned configuration yet");
  app->add_flag("-v,--verbose", a.verbose, "Print every candidate");
  app->add_flag("--json", a.json, "Print JSON");
  app->footer(
      "A candidate must be right before it is timed. What wins goes to the cache. 'untuned': how\n"
      "many times as long the choice without tuning takes.\n"
      "Exit code 1 if a call could not be tuned or its result not be kept.\n\n"
      "Examples:\n"
      "  tessera tune --budget 300\n"
      "  tessera tune flash_attention --device vulkan --dtype f16 --set causal=true \\\n"
      "      --shapes query=1x2048x8x64,key=1x2048x8x64,value=1x2048x8x64");
  return {app, [arguments] { return Tuner(*arguments).run(); }, true};
}

}  // namespace tessera::tool
