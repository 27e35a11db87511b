// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>

#include "conformance/conformance.hpp"
#include "conformance/plan.hpp"
#include "runtime/workbench.hpp"
#include "selection/selector.hpp"
#include "tessera/error.hpp"

namespace tessera::conformance {
namespace {

constexpr double kNoLimit = 1e300;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class Checker {
 public:
  Checker(const Context& context, const Operation& operation, const CheckOptions& options,
          const std::function<void(const CheckResult&)>& each)
      : context_(context),
        state_(*context.state()),
        operation_(operation),
        options_(options),
        each_(each),
        plan_(context, operation, options, shared(),
              [this](const Variant& variant, const StorageTypes& types, const Case& shape,
                     const std::string& why) { skip(variant, types, shape, why); }) {}

  CheckSummary run() {
    const auto start = Clock::now();
    const double built_before = state_.programs().build_seconds();
    for (const StorageTypes& types : plan_.all_types()) {
      for (const auto& [shape, subjects] : plan_.cases(types)) check_case(shape, subjects);
    }
    Spent& spent = summary_.spent;
    spent.compilers = state_.programs().build_seconds() - built_before + compiled_at_launch_;
    spent.rest = seconds_since(start) - spent.compilers - spent.oracle - spent.launches;
    return summary_;
  }

 private:
  Shared& shared() { return options_.shared != nullptr ? *options_.shared : own_; }

  void check_case(const Case& shape, const std::vector<Subject>& subjects) {
    std::optional<runtime::Workbench> bench;
    for (const Subject& subject : subjects) {
      const CheckResult result = check_subject(bench, subject, shape);
      // A kernel that is wrong may have left anything in the operands.
      if (!result.passed && !result.skipped) forget(bench);
      report(result);
    }
    forget(bench);
  }

  void forget(std::optional<runtime::Workbench>& bench) {
    if (bench) summary_.spent.oracle += bench->oracle_seconds();
    bench.reset();
  }

  CheckResult check_subject(std::optional<runtime::Workbench>& bench, const Subject& subject,
                            const Case& shape) {
    const auto& [variant, config] = subject;
    CheckResult result;
    try {
      if (options_.list) {
        const Problem problem = make_problem(operation_, shape.operands, shape.options);
        result.name = name_of(subject, problem.types, shape);
        count_programs(problem, subject);
        result.passed = true;
        return result;
      }
      if (!bench) bench.emplace(state_, operation_, shape, kNoLimit);
      result.name = name_of(subject, bench->problem().types, shape);
      if (const Refusal no =
              selection::refusal(bench->problem(), *variant, config, context_.device())) {
        result.skipped = true;
        result.detail = *no;
      } else {
        count_programs(bench->problem(), subject);
        run_repeatedly(*bench, *variant, config, result);
      }
    } catch (const Error& error) {
      if (result.name.empty())
        result.name = operation_.name + "." + variant->name + " " + shape.name;
      result.detail = error.what();
    }
    return result;
  }

  std::string name_of(const Subject& subject, const StorageTypes& types, const Case& shape) const {
    return full_name(operation_, *subject.variant, subject.config, types, context_.device()) + " " +
           shape.name;
  }

  void count_programs(const Problem& problem, const Subject& subject) {
    for (const runtime::ProgramName& program :
         runtime::program_names(problem, *subject.variant, subject.config, context_.device()))
      shared().built.add(program);
  }

  // Same bits from all runs, and all right.
  void run_repeatedly(runtime::Workbench& bench, const Variant& variant, const Config& config,
                      CheckResult& result) {
    const auto plan =
        runtime::make_plan(bench.problem(), {.variant = variant.name, .config = config},
                           context_.device(), state_.programs());
    std::string first_bits;
    double first_launch = 0;
    for (int round = 0; round < options_.repeats; ++round) {
      const auto start = Clock::now();
      bench.launch(*plan);
      state_.default_stream()->use([](device::Stream& stream) { stream.synchronize(); });
      const double launch = seconds_since(start);
      summary_.spent.launches += launch;
      if (round == 0) first_launch = launch;
      if (round == 1) count_compilation(first_launch - launch);
      const runtime::Verdict verdict = bench.verify(*plan);
      result.worst = std::max(result.worst, verdict.worst);
      result.detail = verdict.failure;
      if (!verdict.failure.empty()) return;
      if (round == 0) first_bits = bench.output_bits();
      if (first_bits != bench.output_bits()) {
        result.detail = "runs 1 and " + std::to_string(round + 1) + " gave different bits";
        return;
      }
    }
    result.passed = true;
  }

  // What the first launch took longer than the second: PoCL and lavapipe compile machine code then.
  void count_compilation(double seconds) {
    if (seconds <= 0) return;
    summary_.spent.launches -= seconds;
    compiled_at_launch_ += seconds;
  }

  void skip(const Variant& variant, const StorageTypes& types, const Case& shape,
            const std::string& why) {
    report({.name = operation_.name + "." + variant.name + "/" + types.name() + " " + shape.name,
            .passed = false,
            .skipped = true,
            .detail = why,
            .worst = 0});
  }

  void report(const CheckResult& result) {
    if (result.skipped) {
      ++summary_.skipped;
      if (std::ranges::find(summary_.skip_reasons, result.detail) == summary_.skip_reasons.end()) {
        summary_.skip_reasons.push_back(result.detail);
      }
    } else {
      ++(result.passed ? summary_.passed : summary_.failed);
    }
    each_(result);
  }

  const Context& context_;
  runtime::ContextState& state_;
  const Operation& operation_;
  const CheckOptions& options_;
  const std::function<void(const CheckResult&)>& each_;
  CheckSummary summary_;
  double compiled_at_launch_ = 0;  // seconds
  Shared own_;
  Plan plan_;
};

}  // namespace

Spent& Spent::operator+=(const Spent& other) {
  compilers += other.compilers;
  oracle += other.oracle;
  launches += other.launches;
  rest += other.rest;
  return *this;
}

CheckSummary check(const Context& context, const Operation& operation, const CheckOptions& options,
                   const std::function<void(const CheckResult&)>& each) {
  return Checker(context, operation, options, each).run();
}

}  // namespace tessera::conformance
