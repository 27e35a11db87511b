// SPDX-License-Identifier: Apache-2.0
// Calls without heads, rows, keys or batches, and with a single packed sequence: on no device do
// the functions of a record divide by what there is none of.
#include <gtest/gtest.h>

#include "operations/attention/host_case.hpp"
#include "selection/selector.hpp"
#include "support/profiles.hpp"

namespace tessera::operations {
namespace {

struct Sizes {
  std::int64_t batch, rows, keys, heads;
};
constexpr Sizes kDegenerate[] = {{2, 8, 12, 0}, {0, 8, 12, 4}, {2, 0, 12, 4},
                                 {2, 8, 0, 4},  {2, 1, 12, 0}, {0, 0, 0, 0}};

Case degenerate_case(const Operation& operation, const Sizes& sizes, DType dtype) {
  const auto of = [](DType type, Shape shape) {
    return TensorSpec::contiguous(type, std::move(shape));
  };
  const auto& [batch, rows, keys, heads] = sizes;
  Case shape;
  shape.operands.resize(operation.operands.size());
  const auto set = [&](std::string_view name, const TensorSpec& spec) {
    shape.operands[operation.slot(name)] = spec;
  };
  set("query", of(dtype, {batch, rows, heads, 64}));
  set("key", of(dtype, {batch, keys, 2, 64}));
  set("value", of(dtype, {batch, keys, 2, 64}));
  if (operation.name == "flash_attention_backward") {
    set("output", of(dtype, {batch, rows, heads, 64}));
    set("output_gradient", of(dtype, {batch, rows, heads, 64}));
    set("log_sum_exp", of(DType::kF32, {batch, heads, rows}));
  }
  return shape;
}

TEST(AttentionDegenerate, EveryVariantOfEveryDeviceAnswers) {
  std::size_t accepted = 0;
  for (const char* name : {"flash_attention", "flash_attention_backward"}) {
    const Operation& operation = find_operation(name);
    for (const Sizes& sizes : kDegenerate) {
      for (const DType dtype : {DType::kF32, DType::kF16}) {
        const Case shape = degenerate_case(operation, sizes, dtype);
        const Problem problem = make_problem(operation, shape.operands, shape.options);
        for (const std::string& device : testing::profile_names()) {
          const DeviceProfile profile = testing::load_profile(device);
          for (const selection::Candidate& candidate : selection::candidates(problem, profile)) {
            for (const Pass& pass : candidate.variant->passes) {
              const Dim3 groups = pass.groups(problem, candidate.config);
              if (groups.x == 0 || groups.y == 0 || groups.z == 0) continue;  // as the launcher
              if (pass.args) pass.args(problem, candidate.config);
              if (pass.constants) pass.constants(problem, candidate.config);
            }
            ++accepted;
          }
        }
      }
    }
  }
  EXPECT_GT(accepted, 0U);
}

TEST(AttentionDegenerate, OnePackedSequenceHasAllRows) {
  const Operation& operation = find_operation("flash_attention");
  for (const std::int64_t sequences : {1, 2, 3}) {
    Case shape;
    shape.name = "packed";
    shape.operands.resize(operation.operands.size());
    const auto set = [&](std::string_view name, DType dtype, Shape extents) {
      shape.operands[operation.slot(name)] = TensorSpec::contiguous(dtype, std::move(extents));
    };
    for (const char* name : {"query", "key", "value"}) set(name, DType::kF32, {6, 1, 8});
    for (const char* name : {"cum_seqlens_q", "cum_seqlens_k"})
      set(name, DType::kI32, {sequences + 1});
    testing::HostCase made(operation, shape);
    const std::vector<double> offsets = made.tensors()[operation.slot("cum_seqlens_q")].read();
    EXPECT_EQ(offsets.front(), 0) << sequences;
    EXPECT_EQ(offsets.back(), 6) << sequences;
  }
}

}  // namespace
}  // namespace tessera::operations
