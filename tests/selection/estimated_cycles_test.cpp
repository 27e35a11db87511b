// SPDX-License-Identifier: Apache-2.0
// The cut to begin with on GPUs where nothing was measured, held against what Mesa's compilers
// estimate of every cut of its space (tests/vendors/figures.py): the fewest cycles, and no spill;
// or where it spills, fewer cycles than any that does not.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "selection/heuristics.hpp"
#include "selection/selector.hpp"
#include "support/profiles.hpp"
#include "tessera/error.hpp"

namespace tessera {
namespace {

using Json = nlohmann::json;

// Cuts with the same loops for an item differ by less, which says nothing.
constexpr double kWithin = 1.02;

Json sets() {
  std::ifstream file(std::string(TESSERA_SOURCE_DIR) + "/tests/selection/estimated_cycles.json");
  return Json::parse(file);
}

Problem problem_of(const Json& set) {
  const Operation& operation = find_operation(set.at("operation").get<std::string>());
  const StorageTypes types(DType::kF16);
  for (const auto& table : {operation.workload.cases, operation.workload.benchmarks}) {
    for (const Case& shape : table(types)) {
      if (shape.name == set.at("case"))
        return make_problem(operation, shape.operands, shape.options);
    }
  }
  throw InvalidArgument("no case is called " + set.at("case").get<std::string>());
}

// Of several variants what the rules choose, of one its first cut.
Choice first_choice(const Json& set, const Problem& problem, const DeviceProfile& profile) {
  const Json& variants = set.at("variants");
  if (variants.size() > 1)
    return selection::heuristic_choice(problem, profile, nullptr).value_or(Choice{});
  const std::string name = variants.begin().key();
  const auto first =
      selection::first_fitting(problem, *problem.operation->find_variant(name), profile);
  return {.variant = name, .config = first.value_or(Config{})};
}

bool is_cut(const Config& config, const std::string& text) {
  const Config cut = Config::parse(text);
  return std::ranges::all_of(cut.values(), [&](const auto& tunable) {
    const auto found = config.values().find(tunable.first);
    return found == config.values().end() || found->second == tunable.second;
  });
}

bool spills(const Json& figures) { return figures.at("spills") != 0 || figures.at("scratch") != 0; }

TEST(EstimatedCycles, TheCutToBeginWithHasFewest) {
  int compared = 0;
  for (const Json& set : sets()) {
    const DeviceProfile profile = testing::load_profile(set.at("profile").get<std::string>());
    const Problem problem = problem_of(set);
    const Choice choice = first_choice(set, problem, profile);
    SCOPED_TRACE(profile.name + " " + problem.operation->name + " " +
                 set.at("case").get<std::string>() + " " + choice.variant + " " +
                 choice.config.to_string());
    double fewest = std::numeric_limits<double>::max();
    Json mine;
    for (const auto& [variant, cuts] : set.at("variants").items()) {
      for (const auto& [text, figures] : cuts.items()) {
        if (!spills(figures)) fewest = std::min(fewest, figures.at("cycles").get<double>());
        if (variant == choice.variant && is_cut(choice.config, text)) mine = figures;
      }
    }
    ASSERT_FALSE(mine.is_null()) << "nobody compiled it";
    EXPECT_LT(mine.at("cycles").get<double>(), fewest * (spills(mine) ? 1 : kWithin));
    ++compared;
  }
  EXPECT_EQ(compared, 38);
}

}  // namespace
}  // namespace tessera
