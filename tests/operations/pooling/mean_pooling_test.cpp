// SPDX-License-Identifier: Apache-2.0
// What mean pooling refuses, and what is chosen where. No device is needed.
#include "tessera/operations/mean_pooling.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "operations/pooling_core/launch.hpp"
#include "selection/heuristics.hpp"
#include "support/profiles.hpp"
#include "support/reference.hpp"
#include "tessera/error.hpp"
#include "tessera/record.hpp"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using testing::f32;
using testing::i32;
using testing::problem_of;
using testing::Specs;
using testing::u8;

// ---- refusals -----------------------------------------------------------------------------------

struct RefusalRow {
  const char* operation;
  Specs specs;
  Options options;
  const char* message;
};

TEST(MeanPoolingRefusals, SayWhatIsWrong) {
  TensorSpec spread = f32({2, 3, 4});
  spread.strides = {24, 8, 2};
  TensorSpec spread_output = f32({2, 4});
  spread_output.strides = {8, 2};
  const Specs packed{{"input", f32({9, 4})}, {"cu_seqlens", i32({4})}};
  const Specs packed_gradient{{"grad_output", f32({3, 4})}, {"cu_seqlens", i32({4})}};
  const std::int64_t long_sequence = std::int64_t{1} << 30;
  const RefusalRow rows[] = {
      {"sequence_mean",
       {{"input", f32({3, 4})}},
       {},
       "sequence_mean: input f32[3, 4] must be [batch, seq, dim] or [batch, seq, heads, dim]"},
      {"sequence_mean", {{"input", f32({2, 3, 4, 5, 6})}}, {}, "must be [batch, seq, dim] or"},
      {"sequence_mean",
       {{"input", f32({2, 3, 4, 5})}, {"cu_seqlens", i32({4})}},
       {},
       "input f32[2, 3, 4, 5] must be [total, dim] or [total, heads, dim], with cu_seqlens"},
      {"sequence_mean", {{"input", spread}}, {}, "input must be contiguous along its last axis"},
      {"sequence_mean",
       {{"input", f32({2, 3, 4})}, {"output", spread_output}},
       {},
       "output must be contiguous along its last axis"},
      {"sequence_mean",
       {{"input", f32({2, 3, 4})}, {"lengths", i32({2})}, {"mask", u8({2, 3})}},
       {},
       "takes one of lengths, mask and cu_seqlens, not two"},
      {"sequence_mean",
       {{"input", f32({2, 3, 4})}, {"lengths", i32({3})}},
       {},
       "lengths i32[3] must be i32[2]"},
      {"sequence_mean",
       {{"input", f32({2, 3, 4})}, {"mask", u8({3, 2})}},
       {},
       "mask u8[3, 2] must be u8[2, 3]"},
      {"sequence_mean",
       {{"input", f32({9, 4})}, {"cu_seqlens", i32({2, 2})}},
       {},
       "cu_seqlens i32[2, 2] must have one axis, of one element more than there are sequences"},
      {"sequence_mean",
       {{"input", f32({9, 4})}, {"cu_seqlens", i32({0})}},
       {},
       "cu_seqlens i32[0] must have one axis"},
      {"sequence_mean",
       {{"input", f32({1, long_sequence, 1})}},
       {},
       "sequences must be shorter than 2^30 tokens"},
      {"sequence_mean",
       {{"input", TensorSpec::contiguous(DType::kI32, {2, 3, 4})}},
       {},
       "must be one of f32, f16, bf16"},
      {"sequence_mean",
       {{"input", f32({2, 3, 4})}, {"lengths", f32({2})}},
       {},
       "must be one of i32"},
      {"sequence_mean",
       {{"input", f32({2, 3, 4})}, {"output", f32({2, 5})}},
       {},
       "output is f32[2, 5] but must be f32[2, 4]"},
      {"sequence_mean_backward",
       {{"grad_output", f32({2, 4})}},
       {},
       "option 'tokens' must say how many rows grad_input has"},
      {"sequence_mean_backward",
       {{"grad_output", f32({2, 4})}},
       {{"tokens", std::int64_t{-1}}},
       "option 'tokens' must be an integer of at least 0, not '-1'"},
      {"sequence_mean_backward",
       {{"grad_output", f32({4})}},
       {{"tokens", std::int64_t{3}}},
       "grad_output f32[4] must be [batch, dim] or [batch, heads, dim]"},
      {"sequence_mean_backward",
       {{"grad_output", f32({2, 2, 2, 4})}, {"cu_seqlens", i32({3})}},
       {{"tokens", std::int64_t{3}}},
       "must be [sequences, dim] or [sequences, heads, dim], with cu_seqlens"},
      {"sequence_mean_backward",
       {{"grad_output", f32({2, 4})}, {"cu_seqlens", i32({4})}},
       {{"tokens", std::int64_t{9}}},
       "grad_output f32[2, 4] must have a row for each of the 3 sequences"},
      {"sequence_mean_backward",
       {{"grad_output", f32({2, 4})}, {"mask", u8({2, 3})}},
       {{"tokens", std::int64_t{9}}},
       "mask u8[2, 3] must be u8[2, 9]"},
      {"chunk_mean", {{"input", f32({3, 4})}}, {}, "input f32[3, 4] must be [batch, seq, dim] or"},
      {"chunk_mean",
       {{"input", f32({2, 3, 4})}},
       {{"chunk", std::int64_t{0}}},
       "option 'chunk' must be an integer of at least 1, not '0'"},
      {"chunk_mean",
       {{"input", f32({2, 3, 4})}},
       {{"chunks", std::int64_t{2}}},
       "option 'chunks' is for calls with cu_seqlens only"},
      {"chunk_mean", packed, {}, "option 'chunks' must say how many rows the output has"},
      {"chunk_mean",
       packed,
       {{"chunks", std::int64_t{-2}}},
       "option 'chunks' must be an integer of at least 0, not '-2'"},
      {"chunk_mean",
       {{"input", f32({2, 9, 2, 4})}, {"cu_seqlens", i32({4})}},
       {{"chunks", std::int64_t{2}}},
       "must be [total, dim] or [total, heads, dim], with cu_seqlens"},
      {"chunk_mean_backward", {{"grad_output", f32({2, 3, 4})}}, {}, "option 'tokens' must say"},
      {"chunk_mean_backward",
       {{"grad_output", f32({2, 4})}},
       {{"tokens", std::int64_t{9}}},
       "must be [batch, chunks, dim] or [batch, chunks, heads, dim]"},
      {"chunk_mean_backward",
       {{"grad_output", f32({2, 3, 4})}},
       {{"chunk", std::int64_t{4}}, {"tokens", std::int64_t{13}}},
       "grad_output f32[2, 3, 4] must have 4 rows, one for each chunk of 4 of the 13 tokens"},
      {"chunk_mean_backward",
       {{"grad_output", f32({3, 2, 4, 5})}, {"cu_seqlens", i32({4})}},
       {{"tokens", std::int64_t{9}}},
       "must be [chunks, dim] or [chunks, heads, dim], with cu_seqlens"},
  };
  for (const RefusalRow& row : rows) {
    try {
      problem_of(row.operation, row.specs, row.options);
      ADD_FAILURE() << row.operation << " took what it should refuse: " << row.message;
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), HasSubstr(row.message));
    }
  }
}

TEST(MeanPoolingRefusals, ChunkOffsets) {
  const auto message = [](const std::vector<std::int32_t>& cu_seqlens,
                          std::int64_t chunk) -> std::string {
    try {
      chunk_offsets(cu_seqlens, chunk);
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message({0, 1}, 0), "chunk_offsets: chunk must be at least 1, not 0");
  EXPECT_EQ(message({}, 1), "chunk_offsets: cu_seqlens must have at least one element");
  EXPECT_EQ(message({-1, 2}, 1), "chunk_offsets: cu_seqlens must not start below 0");
  EXPECT_EQ(message({0, 3, 2}, 1), "chunk_offsets: cu_seqlens decreases at element 2");
}

TEST(MeanPoolingRefusals, ByVariants) {
  const DeviceProfile profile = testing::load_profile("pocl_cpu");
  const Problem problem = problem_of("sequence_mean", {{"input", f32({2, 3, 4})}});
  const auto said = [&](const char* variant, const Config& config, const Problem& of) {
    return find_operation("sequence_mean")
        .find_variant(variant)
        ->rejects(of, config, profile)
        .value_or("");
  };
  EXPECT_THAT(said("cpu", {{"BLOCK", 24}}, problem), HasSubstr("no multiple of 16"));
  EXPECT_THAT(said("cpu", {{"BLOCK", 1U << 17}}, problem),
              HasSubstr("more than 65536 features on a stack"));
  EXPECT_THAT(said("lanes", {{"TOKENS", 65}, {"SPLITS", 1}}, problem),
              HasSubstr("more than the 64"));
  const Problem wide = problem_of("sequence_mean", {{"input", f32({1 << 20, 1, 1024})}});
  EXPECT_THAT(said("lanes", {{"TOKENS", 4}, {"SPLITS", 64}}, wide), HasSubstr("partial sums of"));
  const Problem large = problem_of("sequence_mean", {{"input", f32({1 << 16, 1 << 10, 64})}});
  EXPECT_EQ(said("lanes", {{"TOKENS", 4}, {"SPLITS", 1}}, large), "");
  DeviceProfile old = testing::load_profile("rdna3_vulkan");
  old.features = without(old.features, Feature::kStorage16);
  const Problem half =
      problem_of("sequence_mean", {{"input", TensorSpec::contiguous(DType::kF16, {2, 3, 4})}});
  const Variant& lanes = *find_operation("sequence_mean").find_variant("lanes");
  EXPECT_THAT(lanes.rejects(half, {{"TOKENS", 4}}, old).value_or(""),
              HasSubstr("f16 needs storage16"));
  EXPECT_EQ(lanes.rejects(problem, {{"TOKENS", 4}}, old), std::nullopt);
  EXPECT_THAT(lanes.rejects(large, {{"TOKENS", 4}, {"SPLITS", 1}}, old).value_or(""),
              HasSubstr("reaches element 4294967295"));
}

// ---- shapes -------------------------------------------------------------------------------------

TEST(MeanPoolingShapes, AreInferred) {
  const auto output = [](const Problem& problem) { return problem.operands.back()->shape; };
  EXPECT_EQ(output(problem_of("sequence_mean", {{"input", f32({4, 20, 64})}})), (Shape{4, 64}));
  EXPECT_EQ(output(problem_of("sequence_mean", {{"input", f32({4, 20, 2, 64})}})),
            (Shape{4, 2, 64}));
  EXPECT_EQ(
      output(problem_of("sequence_mean", {{"input", f32({20, 64})}, {"cu_seqlens", i32({4})}})),
      (Shape{3, 64}));
  EXPECT_EQ(output(problem_of("chunk_mean", {{"input", f32({4, 65, 2, 64})}})),
            (Shape{4, 3, 2, 64}));
  EXPECT_EQ(output(problem_of("chunk_mean", {{"input", f32({20, 2, 64})}, {"cu_seqlens", i32({4})}},
                              {{"chunks", std::int64_t{7}}})),
            (Shape{7, 2, 64}));
  EXPECT_EQ(output(problem_of("chunk_mean_backward", {{"grad_output", f32({4, 3, 64})}},
                              {{"tokens", std::int64_t{96}}})),
            (Shape{4, 96, 64}));
}

TEST(MeanPoolingShapes, KeysDifferByWhatChangesTheKernel) {
  const std::string plain = problem_of("sequence_mean", {{"input", f32({4, 20, 64})}}).key;
  EXPECT_NE(plain,
            problem_of("sequence_mean", {{"input", f32({4, 20, 64})}, {"lengths", i32({4})}}).key);
  EXPECT_NE(plain, problem_of("sequence_mean",
                              {{"input", TensorSpec::contiguous(DType::kF16, {4, 20, 64})}})
                       .key);
  EXPECT_NE(plain, problem_of("sequence_mean", {{"input", f32({4, 20, 256})}}).key);
  EXPECT_EQ(plain, problem_of("sequence_mean", {{"input", f32({4, 21, 64})}}).key);
}

TEST(ChunkOffsets, CountChunks) {
  const std::vector<std::int32_t> boundaries{0, 3, 4, 8, 10};
  EXPECT_THAT(chunk_offsets(boundaries, 2), ElementsAre(0, 2, 3, 5, 6));
  EXPECT_THAT(chunk_offsets(std::vector<std::int32_t>{0, 0, 3, 3, 3}, 2),
              ElementsAre(0, 0, 2, 2, 2));
  EXPECT_THAT(chunk_offsets(std::vector<std::int32_t>{5}, 2), ElementsAre(0));
  EXPECT_THAT(chunk_offsets(boundaries, std::numeric_limits<std::int64_t>::max()),
              ElementsAre(0, 1, 2, 3, 4));
}

// ---- launches -----------------------------------------------------------------------------------

TEST(MeanPoolingLaunch, ScratchPartsDoNotOverlap) {
  const Problem problem =
      problem_of("chunk_mean", {{"input", f32({50, 2, 5})}, {"cu_seqlens", i32({7})}},
                 {{"chunks", std::int64_t{11}}});
  const auto scratch = operations::pooling::scratch_of(problem, 3);
  EXPECT_EQ(scratch.prepared, 7U);
  EXPECT_GE(4 * scratch.partial_sums, scratch.prepared);
  EXPECT_EQ(scratch.partial_counts,
            4 * (scratch.partial_sums + 3 * 11 * 3));  // 10 features are 3 columns
  EXPECT_EQ(scratch.bytes, 4 * (scratch.partial_counts + 3 * 11));
  EXPECT_EQ(operations::pooling::scratch_of(problem, 1).bytes, 4 * 7U);
}

TEST(MeanPoolingLaunch, HeadsThatLieTogetherAreOne) {
  const Problem together = problem_of("chunk_mean", {{"input", f32({2, 50, 3, 5})}});
  EXPECT_EQ(operations::pooling::features_of(together).columns(), 4);
  TensorSpec apart = f32({2, 3, 50, 5});
  apart = {.dtype = apart.dtype, .shape = {2, 50, 3, 5}, .strides = {750, 5, 250, 1}};
  EXPECT_EQ(
      operations::pooling::features_of(problem_of("chunk_mean", {{"input", apart}})).columns(),
      3 * 2);
}

TEST(MeanPoolingLaunch, AlignmentIsThatOfAllOperands) {
  TensorSpec input = f32({2, 50, 8});
  EXPECT_TRUE(operations::pooling::is_aligned(problem_of("sequence_mean", {{"input", input}})));
  input.offset = 2;
  EXPECT_FALSE(operations::pooling::is_aligned(problem_of("sequence_mean", {{"input", input}})));
  EXPECT_FALSE(
      operations::pooling::is_aligned(problem_of("sequence_mean", {{"input", f32({2, 50, 6})}})));
  TensorSpec output = f32({2, 8});
  output.strides[0] = 9;
  EXPECT_FALSE(operations::pooling::is_aligned(
      problem_of("sequence_mean", {{"input", f32({2, 50, 8})}, {"output", output}})));
}

TEST(MeanPoolingLaunch, HeuristicsOnMachinesThatNobodyHereOwns) {
  const Problem long_sequence = problem_of("sequence_mean", {{"input", f32({1, 32768, 1024})}});
  const Problem sentences = problem_of("sequence_mean", {{"input", f32({512, 512, 768})}});
  const auto chosen = [](const Problem& problem, const char* profile) {
    const auto choice =
        selection::heuristic_choice(problem, testing::load_profile(profile), nullptr);
    return choice ? choice->variant + " " + choice->config.to_string() : "nothing";
  };
  EXPECT_EQ(chosen(long_sequence, "h200_opencl"), "lanes SPLITS=64,TOKENS=4,WG_X=32,WG_Y=8");
  EXPECT_EQ(chosen(sentences, "h200_opencl"), "lanes SPLITS=1,TOKENS=4,WG_X=32,WG_Y=8");
  EXPECT_EQ(chosen(sentences, "pocl_cpu"), "cpu BLOCK=1024");
  EXPECT_EQ(chosen(long_sequence, "pocl_cpu").substr(0, 4), "cpu ");
#if TESSERA_HAVE_VULKAN
  EXPECT_EQ(chosen(sentences, "lavapipe"), "nothing") << "its buffers end at 128 MiB";
  const Problem fewer = problem_of("sequence_mean", {{"input", f32({64, 512, 768})}});
  EXPECT_EQ(chosen(fewer, "lavapipe").substr(0, 6), "lanes ");
#endif
}

}  // namespace
}  // namespace tessera
