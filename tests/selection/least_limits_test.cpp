// SPDX-License-Identifier: Apache-2.0
// Every operation on a device that has no more than Vulkan promises: 16 KiB of work-group memory
// and work-groups of 128 items.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "selection/heuristics.hpp"
#include "selection/selector.hpp"
#include "tessera/error.hpp"

namespace tessera {
namespace {

DeviceProfile least_profile(Backend backend) {
  DeviceProfile profile;
  profile.backend = backend;
  profile.kind = DeviceKind::kDiscreteGpu;
  profile.name = "the least there is";
  profile.features = Feature::kStorage16;
  profile.compute_units = 1;
  profile.max_group_size = 128;
  profile.max_groups = {65535, 65535, 65535};
  profile.local_memory = 16384;
  profile.global_memory = profile.max_allocation = std::uint64_t{1} << 32;
  profile.max_binding = std::uint64_t{1} << 31;
  if (backend == Backend::kVulkan) profile.max_push_constants = 128;
  return profile;
}

// Whether a GPU that Vulkan or OpenCL promise much more of takes the call at all.
bool is_for_gpus(const Problem& problem, Backend backend) {
  DeviceProfile roomy = least_profile(backend);
  roomy.local_memory = 65536;
  roomy.max_group_size = 1024;
  return selection::heuristic_choice(problem, roomy, nullptr).has_value();
}

std::string why_not(const Problem& problem, const Case& shape, const StorageTypes& types,
                    const DeviceProfile& profile) {
  std::string text =
      shape.name + "/" + types.name() + " through " + std::string(to_string(profile.backend));
  for (const Variant& variant : problem.operation->variants) {
    const Refusal no = selection::refusal(problem, variant, profile);
    text += "; " + variant.name + " " + no.value_or("takes it");
  }
  return text;
}

TEST(LeastLimits, EveryOperationHasAVariantThatTakesEachCase) {
  std::set<std::string> operations;
  std::map<std::string, std::string> lacking;  // the first call of each, and why
  for (const Operation* operation : all_operations()) {
    if (!operation->workload.cases) continue;
    const StorageTypes types =
        operation->types.empty() ? StorageTypes(DType::kF32) : operation->types.front();
    for (const Case& shape : operation->workload.cases(types)) {
      std::optional<Problem> problem;
      try {
        problem = make_problem(*operation, shape.operands, shape.options);
      } catch (const Error&) {
        continue;  // a case may be there to be refused
      }
      for (const Backend backend : {Backend::kOpenCL, Backend::kVulkan}) {
        if (!is_for_gpus(*problem, backend)) continue;
        operations.insert(operation->name);
        const DeviceProfile least = least_profile(backend);
        const auto choice = selection::heuristic_choice(*problem, least, nullptr);
        if (!choice) lacking.emplace(operation->name, why_not(*problem, shape, types, least));
      }
    }
  }
  EXPECT_GT(operations.size(), 60U);
  for (const auto& [operation, why] : lacking) ADD_FAILURE() << operation << " " << why;
}

}  // namespace
}  // namespace tessera
