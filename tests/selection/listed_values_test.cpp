// SPDX-License-Identifier: Apache-2.0
// What variants list for a device has values that they take: a configuration that is refused for
// them is one that nobody can ever have.
#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "selection/selector.hpp"
#include "support/profiles.hpp"
#include "tessera/error.hpp"

namespace tessera {
namespace {

// Of refusals, those of values that no device has anything to do with.
bool is_of_values(const std::string& refusal) {
  return refusal.rfind("has 0 for ", 0) == 0 || refusal.rfind("has no tunable ", 0) == 0 ||
         refusal.find(", more than 1048576") != std::string::npos;
}

// Whether the device has what a variant needs for a call, whatever its configuration: then it knows
// what its own values are.
bool looks_at_values(const Problem& problem, const Variant& variant, const DeviceProfile& profile) {
  const Refusal no = selection::refusal(problem, variant, {{"NOBODY_KNOWS_IT", 1}}, profile);
  return no && no->rfind("has no tunable ", 0) == 0;
}

TEST(ListedValues, AreThoseThatVariantsTake) {
  std::size_t listed = 0;
  std::map<std::string, std::string> refused;  // the first configuration of each variant, and why
  for (const char* name : {"pocl_cpu", "lavapipe", "h200_opencl", "rdna3_vulkan", "arc_vulkan"}) {
    const DeviceProfile profile = testing::load_profile(name);
    for (const Operation* operation : all_operations()) {
      const StorageTypes types =
          operation->types.empty() ? StorageTypes(DType::kF32) : operation->types.front();
      const Workload& workload = operation->workload;
      for (const auto& table : {workload.cases, workload.benchmarks}) {
        if (!table) continue;
        for (const Case& shape : table(types)) {
          std::optional<Problem> problem;
          try {
            problem = make_problem(*operation, shape.operands, shape.options);
          } catch (const Error&) {
            continue;  // a case may be there to be refused
          }
          for (const Variant& variant : operation->variants) {
            if (!variant.space || !looks_at_values(*problem, variant, profile)) continue;
            for (const Config& values : variant.space(*problem, profile)) {
              const Config config = selection::complete(variant, values);
              const Refusal no = selection::refusal(*problem, variant, config, profile);
              ++listed;
              if (no && is_of_values(*no))
                refused.emplace(operation->name + "." + variant.name + " on " + name,
                                shape.name + " {" + config.to_string() + "} " + *no);
            }
          }
        }
      }
    }
  }
  EXPECT_GT(listed, 10000U);
  for (const auto& [variant, why] : refused) ADD_FAILURE() << variant << ": " << why;
}

}  // namespace
}  // namespace tessera
