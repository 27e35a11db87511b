// SPDX-License-Identifier: Apache-2.0
// The conformance table as a program of its own. Prints failures, what was skipped and why, and the
// variants that no device ran; exits with 0 when something ran and nothing failed.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "conformance/conformance.hpp"
#include "conformance/hostile.hpp"
#include "conformance/large.hpp"
#include "conformance/ledger.hpp"
#include "conformance/random.hpp"
#include "support/family.hpp"
#include "tessera/error.hpp"

namespace {

using tessera::conformance::CheckResult;
using tessera::conformance::CheckSummary;

struct Totals {
  std::size_t passed = 0, failed = 0, skipped = 0;
  std::set<std::string> unused;  // variants that no device has run yet
};

struct Arguments {
  std::string selector, family, operation, variant, types, ledger;
  bool full = false, list = false;
  int repeats = 2;
};

bool is_asked_for(const tessera::Operation& operation, const Arguments& arguments) {
  return (arguments.operation.empty() || arguments.operation == operation.name) &&
         (arguments.family.empty() || arguments.family == tessera::testing::family_of(operation));
}

// Says what the checks of each family cost; a default run of a whole family must keep to its
// budget.
void settle(const std::map<std::string, tessera::testing::Ledger>& ledgers, bool quick,
            const Arguments& arguments, Totals& totals) {
  for (const auto& [family, ledger] : ledgers) {
    const std::string line = to_string(ledger, quick);
    std::printf("  %s\n", line.c_str());
    if (!arguments.ledger.empty()) tessera::testing::append_line(arguments.ledger, line);
    if (quick && ledger.programs > tessera::testing::budget_of(family, ledger.backend)) {
      std::printf("  FAILED %s takes more programs than it may (tests/conformance/ledger.cpp)\n",
                  family.c_str());
      ++totals.failed;
    }
  }
}

void check_device(const tessera::DeviceInfo& device, const Arguments& arguments, Totals& totals) {
  std::printf("%d %s\n", device.index, summary(device.profile).c_str());
  const bool host = device.profile.backend == tessera::Backend::kHost;
  const bool quick = !arguments.full && (host || is_cpu(device.profile));
  if (quick)
    std::printf(
        "  quick table: a fifth of the cases of other dtypes and of variants that are not chosen "
        "here\n"
        "  (--full for all)\n");
  // With the store of programs: what is checked is the machine code that applications get.
  const auto context = tessera::Context::open({.device = std::to_string(device.index)});
  std::map<std::string, tessera::testing::Ledger> ledgers;     // by family
  std::map<std::string, tessera::conformance::Shared> shared;  // likewise
  for (const tessera::Operation* operation : tessera::all_operations()) {
    if (!is_asked_for(*operation, arguments)) continue;
    const std::string family = tessera::testing::family_of(*operation);
    std::map<std::string, std::map<std::string, std::size_t>> skips;  // reason, variant, count
    double worst = 0;
    std::string worst_name;
    const CheckSummary summary = tessera::conformance::check(
        context, *operation,
        {.variant = arguments.variant,
         .types = arguments.types.empty() ? std::nullopt : std::optional(arguments.types),
         .quick = quick,
         .list = arguments.list,
         .repeats = arguments.repeats,
         .shared = &shared[family]},
        [&](const CheckResult& result) {
          const std::string name = result.name.substr(0, result.name.find('/'));
          if (arguments.list && !result.skipped) std::printf("  %s\n", result.name.c_str());
          if (result.skipped) {
            ++skips[result.detail][name];
          } else if (!result.passed) {
            std::printf("  FAILED %s: %s\n", result.name.c_str(), result.detail.c_str());
          } else {
            totals.unused.erase(name);
            if (result.worst > worst) {
              worst = result.worst;
              worst_name = result.name;
            }
          }
        });
    std::printf("  %s: %zu passed, %zu failed, %zu skipped", operation->name.c_str(),
                summary.passed, summary.failed, summary.skipped);
    if (!worst_name.empty())
      std::printf("; worst error %.2f of its bound: %s", worst, worst_name.c_str());
    std::printf("\n");
    for (const auto& [why, variants] : skips) {
      for (const auto& [variant, count] : variants) {
        std::printf("    skipped %zu of %s: %s\n", count, variant.c_str(), why.c_str());
      }
    }
    totals.passed += summary.passed;
    totals.failed += summary.failed;
    totals.skipped += summary.skipped;
    tessera::testing::Ledger& ledger = ledgers[family];
    ledger.family = family;
    ledger.backend = device.profile.backend;
    ledger.spent += summary.spent;
  }
  for (auto& [family, ledger] : ledgers) {
    const tessera::conformance::Built& built = shared[family].built;
    ledger.programs =
        quick ? tessera::testing::count_programs(context, family, built) : built.programs.size();
  }
  if (arguments.list) {
    for (const auto& [family, known] : shared)
      for (const std::string& key : known.built.programs) std::printf("  builds %s\n", key.c_str());
  }
  settle(
      ledgers,
      quick && arguments.operation.empty() && arguments.variant.empty() && arguments.types.empty(),
      arguments, totals);
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // progress shows when the output is a pipe, too
  CLI::App app("Checks every kernel against the definition, on every device.");
  Arguments arguments;
  std::uint64_t random_calls = 0, seed = 1;
  app.add_option("device", arguments.selector, "As in TESSERA_DEVICE (default: all, and the host)");
  const std::vector<CLI::Option*> of_operations{
      app.add_option("operation", arguments.operation, "This one only"),
      app.add_option("--family", arguments.family,
                     "Operations whose kernels lie in this folder only")};
  const std::vector<CLI::Option*> of_the_table{
      app.add_option("--variant", arguments.variant, "This one only"),
      app.add_option("--types", arguments.types, "These storage types only, as f16 or bf16_i8"),
      app.add_option("--repeats", arguments.repeats, "Runs of each case, of equal bits")
          ->capture_default_str()
          ->check(CLI::PositiveNumber),
      app.add_option("--ledger", arguments.ledger, "Adds what it cost to this file"),
      app.add_flag("--list", arguments.list, "Says what would run, and runs nothing"),
      app.add_flag("--full", arguments.full,
                   "All cases on CPUs too, whose compilers take seconds for a kernel (default: a "
                   "fifth of those that are not chosen there)")};
  CLI::Option* random = app.add_option("--random", random_calls,
                                       "Instead of the table, so many calls drawn at random");
  CLI::Option* seeded = app.add_option(
      "--seed", seed, "Of the first such call (default: by the kernels' text, or 1)");
  std::string family = "attention";
  CLI::Option* random_of =
      app.add_option("--random-of", family, "Whose calls are drawn: attention, cells or matmul")
          ->needs(random)
          ->capture_default_str();
  bool large = false;
  CLI::Option* huge =
      app.add_flag("--large", large, "Instead of the table, attention with operands beyond 4 GiB");
  std::uint64_t hostile_calls = 0;
  CLI::Option* hostile = app.add_option(
      "--hostile-tables", hostile_calls,
      "Instead of the table, about so many calls with garbage in tables, lengths and offsets");
  random->excludes(huge)->excludes(hostile);
  huge->excludes(hostile);
  for (CLI::Option* option : of_operations) option->excludes(random)->excludes(huge);
  for (CLI::Option* option : of_the_table)
    option->excludes(random)->excludes(huge)->excludes(hostile);
#if TESSERA_TEST_ATTENTION
  random_of->check(CLI::IsMember(tessera::testing::random_families()));
#endif
  CLI11_PARSE(app, argc, argv);
  if (*seeded && !*random && !*hostile)
    return app.exit(CLI::RequiresError("--seed", "--random or --hostile-tables"));
  if (hostile_calls > 0)
    return tessera::testing::run_hostile(
        arguments.selector, hostile_calls, seed,
        [&](const tessera::Operation& operation) { return is_asked_for(operation, arguments); });
#if TESSERA_TEST_ATTENTION
  if (seeded->count() == 0) seed = tessera::testing::seed_of_the_kernels();
  if (large) return tessera::testing::run_large(arguments.selector);
  if (random_calls > 0)
    return tessera::testing::run_random(arguments.selector, family, random_calls, seed);
#else
  if (large || random_calls > 0) {
    std::printf("skipped: built without attention (TESSERA_OPERATIONS)\n");
    return 77;
  }
  static_cast<void>(seeded);
  static_cast<void>(random_of);
#endif
  Totals totals;
  for (const tessera::Operation* record : tessera::all_operations()) {
    if (!is_asked_for(*record, arguments)) continue;
    for (const tessera::Variant& variant : record->variants)
      if (arguments.variant.empty() || arguments.variant == variant.name)
        totals.unused.insert(record->name + "." + variant.name);
  }
  try {
    const tessera::Probe& probe = tessera::probe_devices();
    for (const tessera::ProbeFailure& failure : probe.failures) {
      std::printf("not probed: %s: %s\n", failure.where.c_str(), failure.why.c_str());
    }
    auto devices = select_devices(probe, arguments.selector);
    if (arguments.selector.empty()) {
      for (const tessera::DeviceInfo& host : select_devices(probe, "host")) devices.push_back(host);
    }
    if (devices.empty()) {
      std::printf("no device matches '%s'\n", arguments.selector.c_str());
      return 1;
    }
    for (const tessera::DeviceInfo& device : devices) check_device(device, arguments, totals);
  } catch (const tessera::Error& error) {
    std::printf("error: %s\n", error.what());
    return 1;
  }
  for (const std::string& variant : totals.unused)
    std::printf("%s ran on no device here\n", variant.c_str());
  std::printf("conformance: %zu passed, %zu failed, %zu skipped\n", totals.passed, totals.failed,
              totals.skipped);
  return totals.failed == 0 && totals.passed > 0 ? 0 : 1;
}
