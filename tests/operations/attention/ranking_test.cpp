// SPDX-License-Identifier: Apache-2.0
// The model that says with which configuration a GPU begins where nothing was measured, held
// against an H200, where everything was; and what it says of GPUs that nobody here owns.
#include "kernel/ranking.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/vendor_ids.hpp"
#include "operations/attention_core/tile/compiled.hpp"
#include "operations/attention_core/tile/ranking.hpp"
#include "selection/selector.hpp"
#include "support/profiles.hpp"

namespace tessera::operations::attention {
namespace {

using Json = nlohmann::ordered_json;

Problem problem_of(const std::string& operation, DType dtype, std::int64_t rows, std::int64_t keys,
                   std::int64_t heads, std::int64_t kv_heads, std::int64_t dim) {
  const TensorSpec q = TensorSpec::contiguous(dtype, {1, rows, heads, dim});
  const TensorSpec k = TensorSpec::contiguous(dtype, {1, keys, kv_heads, dim});
  if (operation == "flash_attention") return make_problem(find_operation(operation), {q, k, k}, {});
  const TensorSpec lse = TensorSpec::contiguous(DType::kF32, {1, heads, rows});
  return make_problem(find_operation(operation), {q, k, k, q, lse, q}, {}, {});
}

double cycles_of(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  return problem.operation->name == "flash_attention"
             ? tile_cycles(problem, config, profile)
             : tile_backward_cycles(problem, config, profile);
}

Json times() {
  std::ifstream file(std::string(TESSERA_SOURCE_DIR) +
                     "/tests/operations/attention/h200_times.json");
  return Json::parse(file);
}

struct Timed {
  Config config;
  double milliseconds = 0;
};

std::vector<Timed> timed(const Json& set) {
  std::vector<Timed> list;
  for (const auto& [text, milliseconds] : set.at("milliseconds").items())
    list.push_back({Config::parse(text), milliseconds});
  return list;
}

double best_of(const std::vector<Timed>& list) {
  return std::ranges::min_element(list, {}, &Timed::milliseconds)->milliseconds;
}

Problem problem_of(const Json& set) {
  return problem_of(set.at("operation"), parse_dtype(set.at("dtype").get<std::string>()),
                    set.at("rows"), set.at("keys"), set.at("heads"), set.at("kv_heads"),
                    set.at("dim"));
}

constexpr double kWithin = 1.15;

TEST(RankingModel, BeginsWithinAFewPercentOfTheBestOnAnH200) {
  int sets = 0;
  const Json all = times();
  for (const Json& set : all.at("sets")) {
    if (!set.at("variant").get<std::string>().starts_with("tile")) continue;
    const DeviceProfile profile =
        testing::load_profile("h200_" + set.at("backend").get<std::string>());
    const Problem problem = problem_of(set);
    const std::vector<Timed> list = timed(set);
    const auto first = std::ranges::min_element(
        list, {}, [&](const Timed& one) { return cycles_of(problem, one.config, profile); });
    const double ratio = first->milliseconds / best_of(list);
    EXPECT_LE(ratio, kWithin) << set.at("operation") << set.at("backend") << set.at("dim") << " "
                              << first->config.to_string();
    ++sets;
  }
  EXPECT_EQ(sets, 8);
}

// What an NVIDIA GPU begins with is the list's first, in the order of measurements.
TEST(RankingModel, MeasuredOrdersBeginNearTheBest) {
  int sets = 0;
  const Json all = times();
  for (const Json& set : all.at("sets")) {
    const DeviceProfile profile =
        testing::load_profile("h200_" + set.at("backend").get<std::string>());
    const Problem problem = problem_of(set);
    const Variant& variant = *problem.operation->find_variant(set.at("variant").get<std::string>());
    const std::vector<Timed> list = timed(set);
    const auto first = selection::first_fitting(problem, variant, profile);
    ASSERT_TRUE(first);
    const auto found = std::ranges::find(list, *first, &Timed::config);
    ASSERT_NE(found, list.end()) << first->to_string();
    EXPECT_LE(found->milliseconds / best_of(list), kWithin) << first->to_string();
    ++sets;
  }
  EXPECT_EQ(sets, 11);
}

// The choice would be another without the compilers' figures, so they must be there.
TEST(RankingModel, EveryCutOfAFirstChoiceWasCompiled) {
  for (const std::string& name : testing::profile_names()) {
    const DeviceProfile profile = testing::load_profile(name);
    if (profile.vendor_id != kVendorAmd && profile.vendor_id != kVendorIntel) continue;
    if (!is_gpu(profile) || profile.backend != Backend::kVulkan) continue;
    for (const std::string operation : {"flash_attention", "flash_attention_backward"}) {
      for (const std::int64_t dim : {40, 64, 96, 128, 256}) {
        const Problem problem = problem_of(operation, DType::kF32, 2048, 2048, 8, 8, dim);
        const auto first =
            selection::first_fitting(problem, *problem.operation->find_variant("tile"), profile);
        ASSERT_TRUE(first);
        const bool backward = operation != "flash_attention";
        for (const TileKernel kernel : backward
                                           ? std::vector{TileKernel::kKeys, TileKernel::kQueries}
                                           : std::vector{TileKernel::kForward}) {
          const auto figures =
              compiled_tile(kernel, *first, static_cast<std::uint32_t>(dim), profile);
          ASSERT_TRUE(figures) << name << " " << operation << dim << " " << first->to_string();
          EXPECT_FALSE(figures->strains)
              << name << " " << operation << dim << " " << first->to_string();
        }
      }
    }
  }
}

TEST(RankingModel, FewWavesAndManyBarriersCost) {
  const DeviceProfile profile = testing::load_profile("navi31_vulkan");
  kernel::Effort one{.groups = 1000, .items = 128, .registers = 64, .local_bytes = 8192};
  one.products = 4096;
  const double time = kernel::predicted_cycles(one, profile);
  kernel::Effort crowded = one;
  crowded.local_bytes = 65536;
  EXPECT_GT(kernel::predicted_cycles(crowded, profile), time);
  kernel::Effort spread = one;
  spread.steps = 64;
  EXPECT_GT(kernel::predicted_cycles(spread, profile), time);
  kernel::Effort twice = one;
  twice.rounds = 2;
  EXPECT_DOUBLE_EQ(kernel::predicted_cycles(twice, profile), 2 * time);
}

TEST(RankingModel, WhatStrainsComesLast) {
  std::vector<Config> configs{{{"A", 3}}, {{"A", 2}}, {{"A", 1}}, {{"A", 5}}};
  kernel::rank(
      configs, [](const Config& config) { return config.at("A") == 1; },
      [](const Config& config) { return config.at("A") < 3 ? config.at("A") : 3; });
  EXPECT_EQ(configs, (std::vector<Config>{{{"A", 2}}, {{"A", 3}}, {{"A", 5}}, {{"A", 1}}}));
}

}  // namespace
}  // namespace tessera::operations::attention
