// SPDX-License-Identifier: Apache-2.0
// Every operation on devices whose buffers are too small for it: the sentence has both numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/tensors/byte_range.hpp"
#include "selection/selector.hpp"
#include "support/profiles.hpp"

namespace tessera {
namespace {

using ::testing::HasSubstr;
using testing::load_profile;

std::uint64_t largest_operand(const Problem& problem) {
  std::uint64_t largest = 0;
  for (const auto& spec : problem.operands)
    if (spec) largest = std::max(largest, byte_range(*spec, {}).end);
  return largest;
}

TEST(BufferLimits, NoVariantTakesAnOperandThatNoBufferHolds) {
  std::size_t refused = 0;
  for (const Operation* operation : all_operations()) {
    if (!operation->workload.cases) continue;
    const StorageTypes types =
        operation->types.empty() ? StorageTypes(DType::kF32) : operation->types.front();
    const auto cases = operation->workload.cases(types);
    if (cases.empty()) continue;
    const Problem problem = make_problem(*operation, cases.front().operands, cases.front().options);
    const std::uint64_t limit = largest_operand(problem) - 1;
    for (const char* name : {"pocl_cpu", "lavapipe", "h200_opencl", "h200_vulkan"}) {
      const DeviceProfile roomy = load_profile(name);
      for (const Variant& variant : operation->variants) {
        if (selection::refusal(problem, variant, roomy)) continue;
        for (std::uint64_t DeviceProfile::*field :
             {&DeviceProfile::max_allocation, &DeviceProfile::max_binding}) {
          DeviceProfile small = roomy;
          small.*field = limit;
          EXPECT_THAT(selection::refusal(problem, variant, small).value_or(""),
                      HasSubstr("in one buffer, and the device has " + std::to_string(limit)))
              << operation->name << "." << variant.name << " on " << name;
        }
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 100U);
}

}  // namespace
}  // namespace tessera
