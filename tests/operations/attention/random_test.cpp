// SPDX-License-Identifier: Apache-2.0
// The generator of random calls: every call is valid, a seed gives the same call again, and a run
// reaches all features. Needs no device; tessera_conformance --random runs them.
#include "operations/attention/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "operations/attention_core/cases/workload.hpp"

namespace tessera::testing {
namespace {

constexpr std::uint64_t kCalls = 2000;

TEST(AttentionRandom, ASeedGivesTheSameCall) {
  std::set<std::string> names;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const RandomAttention a = random_attention(seed), b = random_attention(seed);
    EXPECT_EQ(a.shape.name, b.shape.name);
    EXPECT_EQ(a.shape.operands, b.shape.operands);
    EXPECT_EQ(a.kernel, b.kernel);
    EXPECT_EQ(a.shape.seed, seed);  // of the data
    names.insert(a.shape.name);
  }
  EXPECT_GT(names.size(), 195U);
}

TEST(AttentionRandom, EveryCallIsValid) {
  for (std::uint64_t seed = 1; seed <= kCalls; ++seed) {
    const RandomAttention drawn = random_attention(seed);
    EXPECT_NO_THROW(
        make_problem(find_operation(drawn.operation), drawn.shape.operands, drawn.shape.options))
        << seed << " " << drawn.operation << " " << drawn.shape.name;
  }
}

TEST(AttentionRandom, ARunReachesEveryFeatureOptionAndKindOfData) {
  std::map<std::string, std::size_t> counts;
  for (std::uint64_t seed = 1; seed <= kCalls; ++seed) {
    const RandomAttention drawn = random_attention(seed);
    const Operation& operation = find_operation(drawn.operation);
    const bool flash = drawn.operation == "flash_attention";
    ++counts["operation " + drawn.operation];
    ++counts["dtype " + std::string(to_string(drawn.dtype))];
    std::istringstream kinds(drawn.shape.data);
    for (std::string kind; std::getline(kinds, kind, '+');) ++counts["data " + kind];
    if (!flash) continue;
    for (const auto& [name, value] : drawn.shape.options) ++counts["option " + name];
    for (std::size_t slot = 0; slot < drawn.shape.operands.size(); ++slot) {
      const auto& spec = drawn.shape.operands[slot];
      if (!spec) continue;
      ++counts["operand " + operation.operands[slot].name];
      if (!spec->is_contiguous()) ++counts["strided " + operation.operands[slot].name];
    }
  }
  std::vector<std::string> expected;
  const Operation& flash = find_operation("flash_attention");
  for (const OptionInfo& option : flash.options) expected.push_back("option " + option.name);
  for (const Operand& operand : flash.operands) expected.push_back("operand " + operand.name);
  for (const char* name : {"query", "key", "value", "output", "attention_mask", "bias"})
    expected.push_back("strided " + std::string(name));
  for (const char* data :
       {"normal", "sharp", "ascending", "descending", "needle", "needle_first", "needle_any",
        "constant_value", "tiny", "large", "integers", "below_zero", "masking", "unordered", "far"})
    expected.push_back("data " + std::string(data));
  for (const std::string& what : expected) EXPECT_GE(counts[what], 10U) << what;
}

}  // namespace
}  // namespace tessera::testing
