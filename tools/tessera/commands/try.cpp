// SPDX-License-Identifier: Apache-2.0
// tessera try: flash attention on every device, from probe to table.
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <set>

#include "base/printable.hpp"
#include "selection/cache/cache.hpp"
#include "tessera/commands/commands.hpp"
#include "tessera/measure/measure.hpp"
#include "tessera/measure/targets.hpp"
#include "tessera/measure/tuning.hpp"
#include "tessera/output/progress.hpp"
#include "tessera/output/report.hpp"
#include "tessera/output/table.hpp"
#include "tessera/output/usage.hpp"
#include "tessera/version.hpp"

namespace tessera::tool {
namespace {

constexpr const char* kOperation = "flash_attention";
// The large shape may take a device this long at its measured peak. Software devices reach a tenth
// of theirs, and the tuner runs every shape a hundred times.
constexpr double kLargeSeconds = 0.05;
constexpr double kSlowestPeak = 1e9;  // where no peak could be measured
constexpr std::int64_t kQuickSequence = 128;

struct TryArguments {
  std::vector<std::string> devices;
  double budget = 120;
  double min_time = 0.2;
  bool quick = false;
};

struct Sizes {
  std::int64_t batch, q_len, kv_len, heads, kv_heads, dim, value_dim;
};

Case make_case(const Operation& operation, const std::string& name, DType dtype, const Sizes& s,
               bool causal) {
  Case result{.name = name + (causal ? " causal" : ""), .why = "", .operands = {}, .options = {}};
  result.operands.resize(operation.operands.size());
  const auto set = [&](const char* operand, Shape shape) {
    result.operands[operation.slot(operand)] = TensorSpec::contiguous(dtype, std::move(shape));
  };
  set("query", {s.batch, s.q_len, s.heads, s.dim});
  set("key", {s.batch, s.kv_len, s.kv_heads, s.dim});
  set("value", {s.batch, s.kv_len, s.kv_heads, s.value_dim});
  result.options["causal"] = causal;
  if (causal && s.q_len != s.kv_len) {
    result.options["causal_alignment"] = std::string("bottom_right");
  }
  return result;
}

constexpr Sizes large_sizes(std::int64_t sequence) { return {1, sequence, sequence, 8, 8, 64, 64}; }

// The longest sequence whose attention fits the time that the large shape may take.
std::int64_t large_sequence(const Operation& operation, const conformance::Peaks& peaks) {
  const double peak = peaks.fma_flops > 0 ? peaks.fma_flops : kSlowestPeak;
  std::int64_t chosen = 256;
  for (std::int64_t sequence = chosen; sequence <= 16384; sequence *= 2) {
    const Problem problem =
        problem_of(operation, make_case(operation, "", DType::kF32, large_sizes(sequence), false));
    const double length = static_cast<double>(sequence);
    const double flops =
        operation.workload.flops ? operation.workload.flops(problem) : 4 * 8 * 64 * length * length;
    if (flops <= peak * kLargeSeconds) chosen = sequence;
  }
  return chosen;
}

std::vector<std::pair<DType, Case>> cases_for(const Operation& operation, std::int64_t sequence) {
  std::vector<std::pair<DType, Case>> cases;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    Sizes grouped = large_sizes(sequence / 2);
    grouped.kv_heads = 2;
    const Sizes odd{2, 131, 197, 6, 3, 40, 24};
    cases.emplace_back(dtype, make_case(operation, "large", dtype, large_sizes(sequence), false));
    cases.emplace_back(dtype, make_case(operation, "large", dtype, large_sizes(sequence), true));
    cases.emplace_back(dtype, make_case(operation, "grouped heads", dtype, grouped, false));
    cases.emplace_back(dtype, make_case(operation, "odd", dtype, odd, true));
  }
  return cases;
}

std::string shape_text(const Case& shape, const Operation& operation) {
  std::string text;
  for (const char* name : {"query", "key", "value"}) {
    const Shape& extents = shape.operands[operation.slot(name)]->shape;
    text += (text.empty() ? "" : " ") + std::string(name) + ' ';
    for (std::size_t i = 0; i < extents.size(); ++i) {
      text += (i == 0 ? "" : "x") + std::to_string(extents[i]);
    }
  }
  return text;
}

// How many configurations came from where, over all devices and keys.
struct Origins {
  std::map<std::string, std::size_t> from;
  std::size_t tuned = 0;

  void add(Tier tier, std::size_t number) {
    from[tier == Tier::kPersistent ? "from the persistent cache"
         : tier == Tier::kShipped  ? "from the shipped database"
                                   : "by heuristics"] += number;
  }

  std::string text() const {
    std::string text = "configurations: ";
    for (const auto& [origin, number] : from) {
      text += std::to_string(number) + ' ' + origin + ", ";
    }
    return text + std::to_string(tuned) + " tuned";
  }
};

class Trial {
 public:
  explicit Trial(const TryArguments& arguments)
      : arguments_(arguments), operation_(find_operation(kOperation)) {}

  int run() {
    std::cout << "tessera " << kVersion << '\n';
    for (const DeviceInfo& device : probe_devices().devices) {
      std::cout << "  " << device.index << ' ' << summary(device.profile) << '\n';
    }
    for (const ProbeFailure& failure : probe_devices().failures) {
      std::cout << "  not usable: " << failure.where << ": " << failure.why << '\n';
    }
    std::cout << std::endl;
    const selection::CacheDirectory cache = selection::open_cache_directory(std::nullopt, true);
    prepare();
    first_look();
    tune();
    second_look();
    progress_.wipe();
    std::cout << '\n' << origins_.text() << '\n';
    if (cache.path.empty()) {
      std::cout << "nothing is remembered: no persistent cache: " << cache.why_not << '\n';
    } else if (origins_.tuned > 0 && not_kept_.empty()) {
      std::cout << "remembered in " << printable(cache.path.string()) << " for the next run\n";
    }
    for (const std::string& why : not_kept_) std::cout << "not kept, because " << why << '\n';
    std::cout << '\n';
    for (const Target& target : targets_) {
      std::cout << device_label(target.device) << ": " << peaks_text(target.meter.peaks()) << '\n';
    }
    std::cout
        << unsteady_note(rows_)
        << "\nof peak: of the f32 FMA rate, on CPUs as it was in turns with the call; f16 and "
           "bf16 may pass it where there are matrix units\nerror/bound: the worst element's "
           "error over what rounding allows; 1 is the most\n";
    for (const std::string& failure : failures_) std::cout << "FAILED " << failure << '\n';
    return failures_.empty() ? 0 : 1;
  }

 private:
  struct Call {
    DType dtype;
    Case shape;
    std::string key;
    std::optional<std::size_t> row;  // in rows_, when it was measured
  };
  struct Target {
    DeviceInfo device;
    Context context;
    PeakMeter meter;
    std::vector<Call> calls;
    std::vector<TuneJob> jobs;                // calls whose key has no tuned configuration
    std::map<std::string, std::string> tier;  // by key: what chose it in this run
    std::set<std::string> tuned;              // keys
  };

  void fail(const std::string& text) {
    progress_.wipe();
    failures_.push_back(text);
  }

  // Opens each device, measures its peaks, and asks which configurations are known.
  void prepare() {
    for (const DeviceInfo& device : target_devices(arguments_.devices)) {
      try {
        progress_.update(device_label(device) + ": measuring its peaks");
        const Context context = open_device(device);
        PeakMeter meter(context);
        meter.measure();
        const std::int64_t sequence =
            arguments_.quick ? kQuickSequence : large_sequence(operation_, meter.peaks());
        Target target{device, context, meter, {}, {}, {}, {}};
        progress_.wipe();
        std::cout << device_label(device) << '\n';
        for (auto& [dtype, shape] : cases_for(operation_, sequence)) {
          add_call(target, dtype, std::move(shape));
        }
        targets_.push_back(std::move(target));
      } catch (const Error& error) {  // one broken device hides no other
        fail(device_label(device) + ": " + error.what());
      }
    }
  }

  void add_call(Target& target, DType dtype, Case shape) {
    const Problem problem = problem_of(operation_, shape);
    if (dtype == DType::kF32 && shape.name != "large causal") {
      std::cout << "    " << shape.name << ": " << shape_text(shape, operation_) << std::endl;
    }
    target.calls.push_back({dtype, shape, problem.key, std::nullopt});
    if (target.tier.contains(problem.key)) return;
    Choice choice;
    try {
      choice = Executor(target.context).explain(problem).execution.choice;
    } catch (const Unsupported&) {
      return;  // the row will say so
    }
    target.tier[problem.key] = tier_text(choice);
    if (choice.origin == Tier::kAutotune || choice.tier == Tier::kShipped ||
        target.device.profile.backend == Backend::kHost) {
      origins_.add(choice.tier, 1);
    } else {
      target.jobs.push_back({&operation_, std::move(shape), dtype, problem.key});
    }
  }

  // The large calls of every device come first: what the budget does not reach matters least.
  void tune() {
    struct Pending {
      Target* target;
      const TuneJob* job;
      std::size_t rank;
    };
    std::vector<Pending> pending;
    for (Target& target : targets_) {
      for (const TuneJob& job : target.jobs) {
        const auto first =
            std::find_if(target.calls.begin(), target.calls.end(),
                         [&](const Call& c) { return c.shape.name == job.shape.name; });
        pending.push_back({&target, &job, static_cast<std::size_t>(first - target.calls.begin())});
      }
    }
    if (pending.empty()) return;
    std::stable_sort(pending.begin(), pending.end(),
                     [](const Pending& a, const Pending& b) { return a.rank < b.rank; });
    show("\nautotuning " + std::to_string(pending.size()) + " configurations within " +
         fixed(arguments_.budget, 0) + " s; a candidate must be right before it is timed\n");
    Budget budget(arguments_.budget, pending.size());
    const double step = 1.0 / static_cast<double>(pending.size());
    for (std::size_t i = 0; i < pending.size(); ++i) {
      if (budget.used_up()) {
        origins_.add(Tier::kHeuristics, pending.size() - i);
        progress_.milestone("the budget is used up: " + std::to_string(pending.size() - i) +
                            " configurations are left to the heuristics; run again to tune them");
        return;
      }
      tune_one(*pending[i].target, *pending[i].job, budget, static_cast<double>(i) * step, step);
    }
  }

  void tune_one(Target& target, const TuneJob& job, Budget& budget, double part, double step) {
    const std::string device = device_tag(target.device);
    try {
      const TuneReport report =
          tune_job(Executor(target.context), device, job, budget, progress_, part, step);
      if (report.best) {
        target.tier[job.key] = "autotune";
        target.tuned.insert(job.key);
        ++origins_.tuned;
        return;
      }
    } catch (const Error& error) {
      fail(device + ' ' + job_name(job) + ": " + error.what());
    }
    origins_.add(Tier::kHeuristics, 1);
  }

  // Every call as it runs before anything is tuned, each row as soon as it is known.
  void first_look() {
    std::size_t total = 0;
    for (const Target& target : targets_) total += target.calls.size();
    progress_.wipe();
    std::cout << std::endl;
    progress_.begin_draft();
    Table table = empty_table();
    show(table.title_line());
    for (Target& target : targets_) {
      measure_device(target, [&](Call& call) {
        call.row = rows_.size();
        rows_.push_back(measure_call(target, call, rows_.size(), total));
        rows_.back().compare_with({.fma_flops = target.meter.peaks().fma_flops});
        add_to(table, rows_.back());
        show(table.last_line());
      });
    }
  }

  // What was tuned, in the places of the rows before. Without a terminal, below them.
  void second_look() {
    std::size_t total = 0, done = 0;
    for (Target& target : targets_) {
      total += static_cast<std::size_t>(std::ranges::count_if(
          target.calls, [&](const Call& call) { return target.tuned.contains(call.key); }));
    }
    for (Target& target : targets_) {
      if (!target.tuned.empty()) {
        measure_device(target, [&](const Call& call) {
          if (call.row && target.tuned.contains(call.key))
            rows_[*call.row] = measure_call(target, call, done++, total);
        });
        if (const auto why = why_not_kept(target.context)) not_kept_.insert(*why);
      }
      for (const Call& call : target.calls) {
        if (!call.row) continue;
        rows_[*call.row].compare_with({.fma_flops = target.meter.peaks().fma_flops});
        const conformance::VerifiedRun& run = rows_[*call.row].run;
        if (!run.failure.empty()) fail(rows_[*call.row].name() + ": " + run.failure);
      }
    }
    if (total == 0) return;
    progress_.wipe();
    const bool replaced = progress_.erase_draft();
    std::cout << (replaced ? "" : "\nafter tuning:\n") << table() << std::flush;
  }

  void measure_device(Target& target, const std::function<void(Call&)>& each) {
    std::string dtype;
    try {
      for (Call& call : target.calls) {
        const std::string name(to_string(call.dtype));
        if (name != dtype) target.meter.measure();
        dtype = name;
        each(call);
      }
      target.meter.measure();
    } catch (const Error& error) {  // one broken device hides no other
      fail(device_label(target.device) + ": " + error.what());
    }
  }

  Measured measure_call(const Target& target, const Call& call, std::size_t done,
                        std::size_t total) {
    progress_.update("checking and timing " + device_tag(target.device) + ' ' + call.shape.name +
                         ' ' + std::string(to_string(call.dtype)),
                     static_cast<double>(done) / static_cast<double>(total));
    Policy policy = current_policy();
    policy.autotune = false;
    Measured row = measure(Executor(target.context).with_policy(policy), target.device, operation_,
                           call.shape, call.dtype, arguments_.min_time);
    const auto tier = target.tier.find(call.key);
    if (tier != target.tier.end()) row.tier = tier->second;
    return row;
  }

  void show(const std::string& text) {
    progress_.wipe();
    std::cout << text << std::flush;
    progress_.count_draft(text);
  }

  static Table empty_table() {
    return Table({{"device", false, 8},
                  {"call", false, 13},
                  {"dtype"},
                  {"variant", false, 8},
                  {"configuration", false, 32},
                  {"tier", false, 10},
                  {"ms", true, 6},
                  {"spread", true, 6},
                  {"clock", true, 8},
                  {"rate", true, 11},
                  {"of peak", true, 14},
                  {"error/bound", true}});
  }

  static void add_to(Table& table, const Measured& row) {
    const conformance::VerifiedRun& run = row.run;
    const Choice& choice = run.execution.choice;
    const bool failed = !run.failure.empty();
    const bool timed = !failed && run.median_seconds > 0;
    table.add({device_tag(row.device), row.shape.name, row.types.name(), choice.variant,
               choice.config.to_string(), failed ? "FAILED" : row.tier,
               timed ? milliseconds(run.median_seconds) : "–",
               timed ? spread_text(run.spread, run.settled) : "–",
               timed ? clock_text(run.clock_mhz) : "–", timed ? rate_text(row) : "–",
               timed ? percent_text(row) : "–", failed ? "–" : error_text(row)});
  }

  std::string table() const {
    Table table = empty_table();
    for (const Measured& row : rows_) add_to(table, row);
    return table.text();
  }

  const TryArguments& arguments_;
  const Operation& operation_;
  Progress progress_;
  std::vector<Target> targets_;
  std::vector<Measured> rows_;
  std::vector<std::string> failures_;
  std::set<std::string> not_kept_;  // why
  Origins origins_;
};

}  // namespace

Command add_try(App& tool) {
  App* app = tool.add_subcommand(
      "try", "Flash attention on every device: tuned once, checked, timed, in one table.");
  const auto arguments = std::make_shared<TryArguments>();
  TryArguments& a = *arguments;
  add_device_option(*app, a.devices);
  app->add_option("--budget", a.budget, "Seconds for autotuning, all devices together")
      ->type_name("SECONDS")
      ->seconds_between(0.1, 1e6)
      ->capture_default_str();
  app->add_option("--min-time", a.min_time, "Seconds to time each call for")
      ->type_name("SECONDS")
      ->seconds_between(0, 3600)
      ->capture_default_str();
  app->add_flag("--quick", a.quick, "Small shapes only: a look in seconds, no figures to quote");
  app->footer(
      "f32, f16 and bf16; a large shape, causal and not, one with grouped heads, an odd one.\n"
      "The large shape is chosen by the device's measured peak. The first rows are of what runs\n"
      "untuned; after tuning, new ones take their places. The second run finds the\n"
      "configurations of the first in the cache.\n\n"
      "Examples:\n"
      "  tessera try\n"
      "  tessera try --device vulkan --budget 30");
  return {app, [arguments] { return Trial(*arguments).run(); }, true};
}

}  // namespace tessera::tool
