// SPDX-License-Identifier: Apache-2.0
#include "tessera/prewarm.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/context_state.hpp"
#include "support/contexts.hpp"
#include "support/messages.hpp"
#include "tessera/tessera.hpp"

namespace tessera {
namespace {

using ::testing::HasSubstr;
using testing::message_of;
using testing::open;
using testing::open_best;

Problem mean_of(Shape shape) {
  return problem_of("sequence_mean", {{"input", TensorSpec::contiguous(DType::kF32, shape)}});
}

TEST(Prewarm, ARunFindsThePlanThatWasMade) {
  const Context context = open_best();
  const Executor executor(context);
  const std::vector<Problem> problems{mean_of({2, 5, 8})};
  prewarm(executor, problems);
  // As run() asks for it: inputs and what was said of options only.
  const TensorSpec spec = TensorSpec::contiguous(DType::kF32, {2, 5, 8});
  const Operation& operation = find_operation("sequence_mean");
  std::vector<const TensorSpec*> specs(operation.operands.size(), nullptr);
  specs[operation.slot("input")] = &spec;
  EXPECT_EQ(context.state()->plan(operation, specs, {}, std::vector<bool>(specs.size()), {}),
            executor.plan(problems[0]));
}

TEST(Prewarm, NamesTheCallThatFails) {
  const Executor executor = Executor(open("host")).with_variant("nonsense");
  EXPECT_THAT(message_of<InvalidArgument>([&] {
                prewarm(executor, std::vector{mean_of({1, 2, 3})});
              }),
              HasSubstr("nonsense"));
  EXPECT_THROW(prewarm(Executor(Context()), std::vector<Problem>{}), InvalidArgument);
}

TEST(Prewarm, ProblemsAreCheckedAsCallsAre) {
  const TensorSpec spec = TensorSpec::contiguous(DType::kF32, {2, 5, 8});
  EXPECT_THROW(problem_of("nonsense", {}), InvalidArgument);
  EXPECT_THROW(problem_of("sequence_mean", {}), InvalidArgument);
  EXPECT_THROW(problem_of("sequence_mean", {{"nonsense", spec}}), InvalidArgument);
  EXPECT_THROW(problem_of("sequence_mean", {{"input", spec}}, {{"nonsense", true}}),
               InvalidArgument);
  EXPECT_THROW(problem_of("sequence_mean", {{"input", spec}}, {}, {"nonsense"}), InvalidArgument);
}

TEST(QuerySupport, SaysWhyNot) {
  const Executor host(open("host"));
  EXPECT_EQ(query_support(host, mean_of({1, 2, 3})), std::nullopt);
  const auto no = query_support(host.with_variant("cpu"), mean_of({1, 2, 3}));
  ASSERT_TRUE(no.has_value());
  EXPECT_THAT(*no, HasSubstr("cpu"));
}

TEST(ScratchBytes, IsWhatTheVariantSays) {
  const Context context = open_best();
  EXPECT_EQ(scratch_bytes(Executor(open("host")), mean_of({1, 2, 3})), 0U);
  const TensorSpec a = TensorSpec::contiguous(DType::kF32, {8, 64}),
                   b = TensorSpec::contiguous(DType::kF32, {64, 8});
  const Problem problem = problem_of("matmul", {{"a", a}, {"b", b}});
  const auto plan = Executor(context).plan(problem);
  const Variant* variant = plan->problem.operation->find_variant(plan->execution->choice.variant);
  const std::uint64_t expected =
      variant->scratch_bytes ? variant->scratch_bytes(problem, plan->execution->choice.config) : 0;
  EXPECT_EQ(scratch_bytes(Executor(context), problem), expected);
}

}  // namespace
}  // namespace tessera
