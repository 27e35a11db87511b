// SPDX-License-Identifier: Apache-2.0
// The gate of the comparator: a model of a kernel that is right raises no alarm, and each of its
// mutants is found in every storage type, or it says here why that type can't show it. Prints which
// check found which mutant in which case. Needs no device.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <set>

#include "operations/attention/host_case.hpp"
#include "operations/attention/model.hpp"
#include "operations/attention_core/cases/workload.hpp"
#include "operations/attention_core/oracle/thresholds.hpp"

namespace tessera::testing {
namespace {

using operations::attention::AttentionCaseShape;

const DType kStorage[] = {DType::kF32, DType::kF16, DType::kBF16};

// Mutants that a storage type can't show, and why: their error is a rounding of that type or none.
const std::map<std::pair<Fault, DType>, std::string> kHarmless{
    {{Fault::kOutputInStorage, DType::kF32}, "float is the storage type"},
    {{Fault::kQueryInStorage, DType::kF32}, "float is the storage type"},
    {{Fault::kKeyGradientInStorage, DType::kF32}, "float is the storage type"},
    {{Fault::kOutputTruncated, DType::kF32}, "float is the storage type"},
    {{Fault::kWeightsInStorage, DType::kF32}, "float is the storage type"},
    {{Fault::kOutputRoundedTwice, DType::kBF16}, "the second rounding to bf16 changes nothing"},
};

// The table of cases with narrower heads, so that hundreds of runs take seconds: what the mutants
// do wrong does not depend on the width. What the right model may do wrong does, on one kind of
// data.
AttentionCaseShape narrowed(AttentionCaseShape shape) {
  if (shape.data == "positive") return shape;
  for (std::int64_t* dim : {&shape.sizes.head_dim, &shape.sizes.value_dim}) {
    if (*dim > 8) *dim = std::max<std::int64_t>(8, *dim / 8);
  }
  return shape;
}

class Gate : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    for (const DType dtype : kStorage) {
      std::vector<AttentionCaseShape> shapes = operations::attention::forward_cases();
      for (AttentionCaseShape& shape : operations::attention::policy_cases()) {
        shape.features |= operations::attention::kLogSumExp;
        shapes.push_back(std::move(shape));
      }
      build(find_operation("flash_attention_backward"), dtype, shapes, cases_[{dtype, true}]);
      for (AttentionCaseShape& shape : operations::attention::forward_only_cases())
        shapes.push_back(std::move(shape));
      build(find_operation("flash_attention"), dtype, shapes, cases_[{dtype, false}]);
    }
  }
  static void TearDownTestSuite() { cases_.clear(); }

  static void build(const Operation& operation, DType dtype,
                    const std::vector<AttentionCaseShape>& shapes,
                    std::vector<std::unique_ptr<HostCase>>& cases) {
    const operations::attention::AttentionSlots slots =
        operations::attention::attention_slots(operation.operands);
    for (const AttentionCaseShape& shape : shapes) {
      cases.push_back(
          std::make_unique<HostCase>(operation, make_case(slots, dtype, narrowed(shape))));
    }
    cases.push_back(std::make_unique<HostCase>(operation, strided_case(slots, dtype)));
  }

  static void run(HostCase& host_case, Fault fault, bool backward) {
    host_case.reset_outputs();
    AttentionModel model(host_case.problem(), host_case.tensors(), fault);
    if (backward) {
      model.backward();
    } else {
      model.forward();
    }
  }

  // Which checks object, as "output bound, log_sum_exp bound, output rms"; empty = none does.
  static std::string objections(HostCase& host_case) {
    std::string found;
    for (Expectation expected : host_case.expectations()) {
      const std::string& name = host_case.problem().operation->operands[expected.slot].name;
      const auto check = [&](const char* kind) {
        const runtime::Verdict verdict = host_case.verdict({&expected, 1});
        if (verdict.failure.empty()) return;
        const bool nan = verdict.failure.find(" is nan") != std::string::npos ||
                         verdict.failure.find(" is -nan") != std::string::npos;
        found += (found.empty() ? "" : ", ") + name + (nan ? " NaN" : kind);
      };
      const double rms = std::exchange(expected.rms_bound, kNoBound);
      check(" bound");
      expected.rms_bound = rms;
      std::ranges::fill(expected.bounds, kNoBound);
      if (rms < kNoBound && found.find(name + " NaN") == std::string::npos) check(" rms");
    }
    return found;
  }

  struct Kill {
    std::string where{}, by{};
    bool backward = false;
    std::size_t at = 0;  // the case's number
  };
  static Kill try_case(Fault fault, DType dtype, bool backward, std::size_t at) {
    HostCase& host_case = *cases_[{dtype, backward}][at];
    run(host_case, fault, backward);
    return {.where = host_case.name() + (backward ? " backward" : ""),
            .by = objections(host_case),
            .backward = backward,
            .at = at};
  }
  // The first case whose outputs are refused; `likely` found the mutant in another type.
  static Kill first_kill(const FaultInfo& info, DType dtype, const Kill& likely) {
    if (!likely.by.empty()) {
      Kill again = try_case(info.fault, dtype, likely.backward, likely.at);
      if (!again.by.empty()) return again;
    }
    for (const bool backward : {false, true}) {
      if (info.direction == (backward ? Direction::kForward : Direction::kBackward)) continue;
      for (std::size_t at = 0; at < cases_[{dtype, backward}].size(); ++at) {
        Kill kill = try_case(info.fault, dtype, backward, at);
        if (!kill.by.empty()) return kill;
      }
    }
    return {};
  }

  static constexpr double kNoBound = std::numeric_limits<double>::infinity();
  static std::map<std::pair<DType, bool>, std::vector<std::unique_ptr<HostCase>>> cases_;
};

std::map<std::pair<DType, bool>, std::vector<std::unique_ptr<HostCase>>> Gate::cases_;

TEST_F(Gate, TheRightModelRaisesNoAlarm) {
  for (const auto& [key, cases] : cases_) {
    double worst = 0;
    for (const auto& host_case : cases) {
      run(*host_case, Fault::kNone, key.second);
      const runtime::Verdict verdict = host_case->verdict(host_case->expectations());
      EXPECT_EQ(verdict.failure, "") << to_string(key.first) << " " << host_case->name();
      worst = std::max(worst, verdict.worst);
    }
    std::printf("right model, %s %s: worst error %.2f of its bound\n",
                std::string(to_string(key.first)).c_str(), key.second ? "backward" : "forward",
                worst);
  }
}

// A case that shows little passes whatever a kernel does; those that do are meant to.
TEST_F(Gate, TheTableMeansSomething) {
  const std::set<std::string> meant{
      "output of no_keys",                      // nothing to see: all 0
      "query_gradient of no_keys",              //
      "key_gradient of no_rows",                //
      "value_gradient of no_rows",              //
      "query_gradient of single",               // one key has weight 1 whatever its score
      "key_gradient of single",                 //
      "query_gradient of window_diagonal",      //
      "key_gradient of window_diagonal",        //
      "query_gradient of constant_value",       // weights do not matter
      "key_gradient of constant_value",         //
      "query_gradient of scale_zero",           // scores do not matter
      "key_gradient of scale_zero",             //
      "query_gradient of some_nan_scale_zero",  //
      "key_gradient of some_nan_scale_zero",    //
      "query_gradient of soft_cap_saturated",   // nor where tanh is flat
      "key_gradient of soft_cap_saturated",     //
      "bias_gradient of everything",            // hardly anything is seen
      "query_gradient of below_zero",           // keys are large, and their weighted sum cancels
      "query_gradient of descending",           //
      "query_gradient of bias_masks",           // f16: scores beside -65504 are coarse
      "query_gradient of bias_masks_cap",       //
      "softmax_aux_gradient of hidden_nan_bias_masks",  // sinks of the lowest number have no weight
      "output of positions_far_all",                    // float does not tell the scores apart
      "query_gradient of positions_far_all",            //
      "key_gradient of positions_far_all",              //
      "value_gradient of positions_far_all",            //
  };
  for (const auto& [key, cases] : cases_) {
    for (const auto& host_case : cases) {
      for (const Expectation& expected : host_case->expectations()) {
        const std::string why = runtime::mistrusted(expected);
        const std::string output = host_case->problem().operation->operands[expected.slot].name +
                                   " of " + host_case->name();
        EXPECT_TRUE(why.empty() || meant.contains(output))
            << to_string(key.first) << ", " << output << ": " << why;
      }
    }
  }
}

// Each of them on every case, in one storage type.
TEST_F(Gate, EquivalentModelsRaiseNoAlarm) {
  std::size_t turn = 0;
  for (const FaultInfo& info : attention_equivalents()) {
    for (const bool backward : {false, true}) {
      if (info.direction == (backward ? Direction::kForward : Direction::kBackward)) continue;
      for (std::size_t at = 0; at < cases_[{DType::kF32, backward}].size(); ++at) {
        const DType dtype = kStorage[turn++ % std::size(kStorage)];
        const Kill kill = try_case(info.fault, dtype, backward, at);
        EXPECT_EQ(kill.by, "") << info.name << " (" << info.why << ") in " << kill.where << ", "
                               << to_string(dtype);
      }
    }
  }
}

TEST_F(Gate, EveryMutantIsFoundInEveryStorageType) {
  std::map<std::string, std::size_t> kills;
  for (const FaultInfo& info : attention_faults()) {
    std::printf("%s: %s\n", info.name.c_str(), info.why.c_str());
    Kill found;
    for (const DType dtype : kStorage) {
      const std::string type(to_string(dtype));
      const Kill kill = first_kill(info, dtype, found);
      const auto harmless = kHarmless.find({info.fault, dtype});
      if (kill.by.empty() && harmless != kHarmless.end()) {
        std::printf("  %-4s survives: %s\n", type.c_str(), harmless->second.c_str());
        ++kills["survived, harmless"];
        continue;
      }
      EXPECT_NE(kill.by, "") << info.name << " survives in " << type << ": " << info.why;
      EXPECT_EQ(harmless, kHarmless.end())
          << info.name << " is found in " << type << " by " << kill.by << " of " << kill.where;
      std::printf("  %-4s %s by %s\n", type.c_str(), kill.where.c_str(), kill.by.c_str());
      ++kills[kill.by];
      found = kill;
    }
  }
  std::printf("%zu mutants in 3 storage types\n", attention_faults().size());
  for (const auto& [by, count] : kills) std::printf("  %3zu %s\n", count, by.c_str());
}

}  // namespace
}  // namespace tessera::testing
