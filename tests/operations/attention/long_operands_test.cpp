// SPDX-License-Identifier: Apache-2.0
// Operands of more elements than an int counts: who takes them, and what the others say. What
// kernels make of them is for tessera_conformance --large.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "selection/selector.hpp"
#include "support/profiles.hpp"
#include "tessera/record.hpp"

namespace tessera::operations {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kSixGiB = std::int64_t{6} << 30;

Problem decoding(TensorSpec keys) {
  const TensorSpec query = TensorSpec::contiguous(keys.dtype, {keys.shape[0], 1, 8, keys.shape[3]});
  return make_problem(find_operation("flash_attention"), {query, keys, keys}, {});
}

std::string refused(const Problem& problem, const std::string& variant,
                    const std::string& profile) {
  return selection::refusal(problem, *problem.operation->find_variant(variant),
                            testing::load_profile(profile))
      .value_or("");
}

TEST(LongOperands, OpenCLTakesThem) {
  const std::int64_t rows = kSixGiB / 2 / (8 * 128) / 64;
  for (const Problem& problem :
       {decoding(TensorSpec::contiguous(DType::kF16, {64, rows, 8, 128})),
        decoding(TensorSpec::contiguous(DType::kF16, {1, 64 * rows, 8, 128}))}) {
    for (const char* variant : {"decode", "hopper", "mma", "tile"})
      EXPECT_EQ(refused(problem, variant, "h200_opencl"), "") << variant;
  }
}

TEST(LongOperands, OthersSayBothNumbers) {
  const Problem problem =
      decoding(TensorSpec::contiguous(DType::kF16, {kSixGiB / 2 / (8 * 1024 * 128), 1024, 8, 128}));
  const std::string why = refused(problem, "tile", "h200_vulkan");
  EXPECT_THAT(why, HasSubstr("needs 6442450944 bytes of key"));
  EXPECT_THAT(why, HasSubstr("the device has 4292870144"));
}

TEST(LongOperands, StridesAreNumbersOf32Bits) {
  TensorSpec keys = TensorSpec::contiguous(DType::kF16, {2, 1024, 8, 128});
  keys.strides[0] = std::int64_t{1} << 32;
  const std::string why = refused(decoding(keys), "tile", "h200_opencl");
  EXPECT_THAT(why, HasSubstr("has stride 4294967296 along axis 0; strides count to 2^32"));
  keys.strides[0] -= 8;
  EXPECT_EQ(refused(decoding(keys), "tile", "h200_opencl"), "");
}

// A sequence's rows are counted, not all of them.
TEST(LongOperands, ManyShortSequencesAreDecoded) {
  const Operation& operation = find_operation("flash_attention");
  std::vector<std::optional<TensorSpec>> operands(operation.operands.size());
  const auto set = [&](const char* name, DType dtype, Shape shape) {
    operands[operation.slot(name)] = TensorSpec::contiguous(dtype, std::move(shape));
  };
  set("query", DType::kF16, {128, 8, 128});
  set("key", DType::kF16, {131072, 8, 128});
  set("value", DType::kF16, {131072, 8, 128});
  set("cum_seqlens_q", DType::kI32, {129});
  set("cum_seqlens_k", DType::kI32, {129});
  EXPECT_EQ(refused(make_problem(operation, operands, {}), "decode", "h200_opencl"), "");
  set("cum_seqlens_q", DType::kI32, {2});
  set("cum_seqlens_k", DType::kI32, {2});
  EXPECT_THAT(refused(make_problem(operation, operands, {}), "decode", "h200_opencl"),
              HasSubstr("is for few query rows"));
}

}  // namespace
}  // namespace tessera::operations
