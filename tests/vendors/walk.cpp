// SPDX-License-Identifier: Apache-2.0
#include "vendors/walk.hpp"

#include <vector>

#include "device/no_store.hpp"
#include "runtime/plan.hpp"
#include "runtime/program_cache.hpp"
#include "selection/heuristics.hpp"
#include "selection/selector.hpp"
#include "support/family.hpp"
#include "tessera/error.hpp"

namespace tessera::vendors {
namespace {

class Walk {
 public:
  Walk(Recorder& recorder, const Wanted& wanted)
      : recorder_(recorder), wanted_(wanted), programs_(recorder, store_) {}

  void run() {
    // Lower levels first: a program counts where it is needed most.
    for (level_ = wanted_.config ? wanted_.level : 0; level_ <= wanted_.level; ++level_) {
      for (const Operation* operation : all_operations()) {
        if (operation->name.find(wanted_.operation) != std::string::npos) walk(*operation);
      }
    }
  }

 private:
  void walk(const Operation& operation) {
    std::vector<StorageTypes> all = operation.types;
    if (all.empty()) all = {DType::kF32, DType::kF16, DType::kBF16};
    for (const StorageTypes& types : all) {
      if (!wanted_.dtype.empty() && types.name() != wanted_.dtype) continue;
      for (const auto& table : {operation.workload.cases, operation.workload.benchmarks}) {
        if (!table) continue;
        for (const Case& shape : table(types)) {
          if (shape.name.find(wanted_.call) != std::string::npos) try_case(operation, shape);
        }
      }
    }
  }

  void try_case(const Operation& operation, const Case& shape) {
    std::optional<Problem> problem;
    try {
      problem = make_problem(operation, shape.operands, shape.options);
    } catch (const Error&) {
      return;  // a case may be there to be refused
    }
    recorder_.set_call(operation.name + " " + shape.name + "/" + problem->types.name(),
                       testing::family_of(operation), level_);
    plan_all(operation, *problem);
  }

  void plan_all(const Operation& operation, const Problem& problem) {
    const DeviceProfile& profile = recorder_.profile();
    if (level_ == 0 && !wanted_.config) {
      const auto choice = selection::heuristic_choice(problem, profile, nullptr);
      if (choice && takes(choice->variant)) plan(problem, *choice);
      return;
    }
    for (const Variant& variant : operation.variants) {
      if (!takes(variant.name)) continue;
      if (wanted_.config) {
        const Config config = selection::complete(variant, *wanted_.config);
        if (!selection::refusal(problem, variant, config, profile))
          plan(problem, {.variant = variant.name, .config = config});
        continue;
      }
      const std::size_t at_most = level_ == 1 ? 1 : ~std::size_t{0};
      for (const Config& config : selection::fitting(problem, variant, profile, at_most))
        plan(problem, {.variant = variant.name, .config = config});
    }
  }

  bool takes(const std::string& variant) const {
    return wanted_.variant.empty() || wanted_.variant == variant;
  }

  void plan(const Problem& problem, const Choice& choice) {
    try {
      count_local_bytes(problem, choice);
      runtime::make_plan(problem, choice, recorder_.profile(), programs_,
                         [this](const Problem& called, const std::string& variant) {
                           Choice chosen =
                               runtime::choose_by_rules(called, variant, recorder_.profile());
                           count_local_bytes(called, chosen);
                           return chosen;
                         });
    } catch (const Error& error) {
      recorder_.fail(choice.variant, error.what());
    }
  }

  void count_local_bytes(const Problem& problem, const Choice& choice) {
    const Variant* variant = problem.operation->find_variant(choice.variant);
    const bool counts = variant != nullptr && variant->local_bytes;
    recorder_.set_local_bytes(problem.operation->name + "." + choice.variant,
                              counts ? variant->local_bytes(problem, choice.config) : 0);
  }

  Recorder& recorder_;
  const Wanted& wanted_;
  int level_ = 0;
  device::NoStore store_;
  runtime::ProgramCache programs_;
};

}  // namespace

void build_all(Recorder& recorder, const Wanted& wanted) { Walk(recorder, wanted).run(); }

}  // namespace tessera::vendors
