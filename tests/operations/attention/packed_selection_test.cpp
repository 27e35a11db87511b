// SPDX-License-Identifier: Apache-2.0
// Packed sequences, more of them than grids and loops of some devices take: who takes them still.
#include <gtest/gtest.h>

#include "selection/selector.hpp"
#include "support/profiles.hpp"
#include "tessera/record.hpp"

namespace tessera::operations {
namespace {

Problem packed_problem(std::int64_t sequences, std::int64_t rows, std::int64_t sinks = 0) {
  const Operation& operation = find_operation("flash_attention");
  std::vector<std::optional<TensorSpec>> operands(operation.operands.size());
  for (const char* name : {"query", "key", "value"})
    operands[operation.slot(name)] = TensorSpec::contiguous(DType::kF32, {rows, 2, 8});
  for (const char* name : {"cum_seqlens_q", "cum_seqlens_k"})
    operands[operation.slot(name)] = TensorSpec::contiguous(DType::kI32, {sequences + 1});
  if (sinks > 0)
    operands[operation.slot("softmax_aux")] = TensorSpec::contiguous(DType::kF32, {sinks});
  return make_problem(operation, std::move(operands), {});
}

// A list has an item for each sequence, and a grid of these 65535 work-groups.
TEST(PackedSelection, MorePackedSequencesThanAGridHasAreTaken) {
  const Problem problem = packed_problem(70000, 560000);
  for (const char* name : {"lavapipe", "rdna3_vulkan", "arc_vulkan", "pocl_cpu"}) {
    const DeviceProfile profile = testing::load_profile(name);
    selection::Selector selector({}, {});
    EXPECT_NO_THROW(selector.choose({.problem = &problem, .profile = &profile})) << name;
  }
}

// lavapipe ends a kernel's loops after 65535 rounds, and says nothing.
TEST(PackedSelection, DecodeRefusesMoreRoundsThanLavapipeTakes) {
  const DeviceProfile profile = testing::load_profile("lavapipe");
  const Variant& decode = *find_operation("flash_attention").find_variant("decode");
  for (const auto& [problem, fits] : {std::pair{packed_problem(200000, 1000), true},
                                      {packed_problem(700000, 1000), false},
                                      {packed_problem(10, 20, 1000), true},
                                      {packed_problem(10, 20, 30000), false}}) {
    const Config config = decode.space(problem, profile).front();
    const std::string no = decode.rejects(problem, config, profile).value_or("");
    EXPECT_EQ(no.find("rounds of an item's loops") == std::string::npos, fits) << no;
  }
}

}  // namespace
}  // namespace tessera::operations
