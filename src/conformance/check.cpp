// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "conformance/conformance.hpp"
#include "runtime/workbench.hpp"
#include "selection/selector.hpp"
#include "tessera/error.hpp"

namespace tessera::conformance {
namespace {

constexpr double kNoLimit = 1e300;

class Checker {
 public:
  Checker(const Context& context, const Operation& operation, const CheckOptions& options,
          const std::function<void(const CheckResult&)>& each)
      : context_(context),
        state_(*context.state()),
        operation_(operation),
        options_(options),
        each_(each) {}

  CheckSummary run() {
    for (const Variant& variant : operation_.variants) {
      if (!options_.variant.empty() && options_.variant != variant.name) continue;
      for (const DType dtype : dtypes_of(variant)) check_variant(variant, dtype);
    }
    return summary_;
  }

 private:
  std::vector<DType> dtypes_of(const Variant& variant) const {
    std::vector<DType> dtypes = variant.dtypes;
    if (dtypes.empty()) dtypes = operation_.operands.front().dtypes;
    if (options_.dtype) {
      std::erase_if(dtypes, [&](DType dtype) { return dtype != *options_.dtype; });
    }
    return dtypes;
  }

  void check_variant(const Variant& variant, DType dtype) {
    const std::vector<Case> cases =
        operation_.workload.cases ? operation_.workload.cases(dtype) : std::vector<Case>{};
    const bool first_dtype = dtype == dtypes_of(variant).front();
    std::vector<Config> tried;
    for (std::size_t n = 0; n < cases.size(); ++n) {
      const Case& shape = cases[n];
      const Problem problem = make_problem(operation_, shape.operands, shape.options);
      if (options_.quick && !is_in_sample(n, first_dtype, is_chosen(variant, problem, shape)))
        continue;
      const std::vector<Config> configs = accepted(problem, variant);
      if (configs.empty()) {
        skip(variant, dtype, shape,
             selection::refusal(problem, variant, context_.device()).value_or("no configuration"));
        continue;
      }
      check_case(variant, configs.front(), shape);
      for (const Config& config : configs) {
        if (tried.size() < (options_.quick ? 1 : options_.max_configs) &&
            std::ranges::find(tried, config) == tried.end()) {
          tried.push_back(config);
        }
      }
    }
    if (!options_.edge_cases || !operation_.workload.edge_cases) return;
    if (options_.quick && !first_dtype) return;
    for (const Config& config : tried) {
      for (const Case& shape : operation_.workload.edge_cases(dtype, config))
        check_case(variant, config, shape);
    }
  }

  // Whether it is what this call gets here where nothing has been tuned.
  bool is_chosen(const Variant& variant, const Problem& problem, const Case& shape) {
    const auto [known, is_new] = chosen_.try_emplace({problem.dtype, shape.name});
    if (is_new) {
      try {
        const Executor untuned = Executor(context_).with_tiers({Tier::kShipped, Tier::kHeuristics});
        known->second = untuned.explain(problem).execution.choice.variant;
      } catch (const Unsupported&) {  // nothing is chosen
      }
    }
    return known->second == variant.name;
  }

  // A quick check takes every case of the first dtype where this variant is chosen, every fifth
  // where one of the two does not hold, every 25th where neither does.
  static bool is_in_sample(std::size_t n, bool first_dtype, bool chosen) {
    const std::size_t stride = (first_dtype ? 1 : 5) * (chosen ? 1 : 5);
    return n % stride == stride / 2;
  }

  std::vector<Config> accepted(const Problem& problem, const Variant& variant) const {
    if (options_.config) return {*options_.config};  // check_case() says why not
    std::vector<Config> configs = variant.space(problem, context_.device());
    std::erase_if(configs, [&](const Config& config) {
      return selection::refusal(problem, variant, config, context_.device()).has_value();
    });
    return configs;
  }

  void check_case(const Variant& variant, const Config& config, const Case& shape) {
    if (!options_.only.empty() && shape.name.find(options_.only) == std::string::npos) return;
    CheckResult result;
    try {
      runtime::Workbench bench(state_, operation_, shape, kNoLimit);
      result.name =
          full_name(operation_, variant, config, bench.problem().dtype, context_.device()) + " " +
          shape.name;
      if (const Refusal no =
              selection::refusal(bench.problem(), variant, config, context_.device())) {
        result.skipped = true;
        result.detail = *no;
      } else {
        run_repeatedly(bench, variant, config, result);
      }
    } catch (const Error& error) {
      if (result.name.empty())
        result.name = operation_.name + "." + variant.name + " " + shape.name;
      result.detail = error.what();
    }
    report(result);
  }

  // Same bits from all runs, and all right.
  void run_repeatedly(runtime::Workbench& bench, const Variant& variant, const Config& config,
                      CheckResult& result) {
    const auto plan =
        runtime::make_plan(bench.problem(), {.variant = variant.name, .config = config},
                           context_.device(), state_.programs());
    std::string first_bits;
    for (int round = 0; round < options_.repeats; ++round) {
      bench.reset_outputs();
      state_.default_stream()->launch(*plan, bench.buffers());
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

  void skip(const Variant& variant, DType dtype, const Case& shape, const std::string& why) {
    if (!options_.only.empty() && shape.name.find(options_.only) == std::string::npos) return;
    report({.name = operation_.name + "." + variant.name + "/" + std::string(to_string(dtype)) +
                    " " + shape.name,
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
  std::map<std::pair<DType, std::string>, std::string> chosen_;  // the variant, by case
};

}  // namespace

CheckSummary check(const Context& context, const Operation& operation, const CheckOptions& options,
                   const std::function<void(const CheckResult&)>& each) {
  return Checker(context, operation, options, each).run();
}

}  // namespace tessera::conformance
