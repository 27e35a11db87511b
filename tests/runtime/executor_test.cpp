// SPDX-License-Identifier: Apache-2.0
// The public path of a call, on the host's reference and on the best device of this machine.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "runtime/plan.hpp"
#include "support/contexts.hpp"
#include "support/messages.hpp"
#include "tessera/tessera.hpp"

namespace tessera {
namespace {

using testing::message_of;
using testing::open;
using testing::open_best;

Tensor ramp(const Context& context, Shape shape) {
  std::vector<float> values(
      static_cast<std::size_t>(TensorSpec::contiguous(DType::kF32, shape).elements()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i % 13) * 0.1F - 0.6F;
  return context.upload(values, std::move(shape));
}

TEST(Executor, TheBestDeviceAgreesWithTheReference) {
  const Context host = open("host"), device = open_best();
  std::vector<std::vector<float>> outputs, sums;
  for (const Context& context : {host, device}) {
    const Tensor q = ramp(context, {2, 37, 4, 64}), kv = ramp(context, {2, 53, 2, 64});
    const auto result = flash_attention_forward(context, q, kv, kv, {.causal = true});
    outputs.push_back(context.download<float>(result.output));
    sums.push_back(context.download<float>(result.log_sum_exp));
  }
  ASSERT_EQ(outputs[0].size(), outputs[1].size());
  for (std::size_t i = 0; i < outputs[0].size(); ++i)
    ASSERT_NEAR(outputs[0][i], outputs[1][i], 1e-5) << i;
  for (std::size_t i = 0; i < sums[0].size(); ++i) ASSERT_NEAR(sums[0][i], sums[1][i], 1e-5) << i;
}

TEST(Executor, BothLayoutsGiveTheSame) {
  const Context context = open_best();
  const Tensor bshd = ramp(context, {1, 20, 3, 64});
  const std::vector<float> values = context.download<float>(bshd.permute({0, 2, 1, 3}));
  const Tensor bhsd = context.upload(values, {1, 3, 20, 64}).permute({0, 2, 1, 3});
  const auto a = context.download<float>(flash_attention(context, bshd, bshd, bshd));
  const auto b = context.download<float>(flash_attention(context, bhsd, bhsd, bhsd));
  EXPECT_EQ(a, b);
}

TEST(Executor, TellsWhatRanAndWhy) {
  const Context context = open("host");
  EXPECT_NE(
      message_of([&] { static_cast<void>(context.last_execution()); }).find("has not run anything"),
      std::string::npos);
  const Tensor q = ramp(context, {1, 4, 1, 8});
  flash_attention(context, q, q, q);
  const Execution execution = context.last_execution();
  EXPECT_EQ(execution.name, "flash_attention.reference/f32@host:reference{}");
  EXPECT_EQ(execution.choice.tier, Tier::kHeuristics);
  const Explanation explanation =
      Executor(context).explain("flash_attention", {{"query", q}, {"key", q}, {"value", q}});
  EXPECT_EQ(explanation.execution.choice.variant, "reference");
  EXPECT_EQ(explanation.refused.size(), find_operation("flash_attention").variants.size() - 1);
  for (const Refused& refused : explanation.refused)
    EXPECT_FALSE(refused.why.empty()) << refused.variant;
}

TEST(Executor, AnOverrideThatCannotRunIsAnError) {
  const Context context = open("host");
  const Tensor q = ramp(context, {1, 4, 1, 8});
  EXPECT_NE(message_of([&] {
              flash_attention(Executor(context).with_variant("fastest"), q, q, q);
            }).find("fastest"),
            std::string::npos);
  EXPECT_NE(message_of([&] { flash_attention(Executor(context).with_variant("tile"), q, q, q); }),
            "");
  EXPECT_NE(message_of([&] {
              flash_attention(Executor(context).with_config({{"BLOCK", 0}}), q, q, q);
            }),
            "");
}

TEST(Executor, TiersAndPoliciesAreObeyed) {
  const Context context = open("host");
  const Tensor q = ramp(context, {1, 4, 1, 8});
  EXPECT_THROW(
      flash_attention(Executor(context).with_policy({.autotune = false, .heuristics = false}), q, q,
                      q),
      Error);
  EXPECT_THROW(flash_attention(Executor(context).with_tiers({Tier::kShipped}), q, q, q), Error);
  {
    const ScopedPolicy nothing({.autotune = false, .heuristics = false});
    EXPECT_THROW(flash_attention(Executor(context).with_tiers({Tier::kHeuristics}), q, q, q),
                 Error);
  }
  EXPECT_NO_THROW(flash_attention(context, q, q, q));
}

TEST(Executor, TheNearestWordOnPrecisionCounts) {
  const Context context =
      Context::open({.device = "host", .cache_directory = "", .precision = Precision::kHigh});
  const Tensor q = ramp(context, {1, 4, 1, 8});
  const auto asked = [&](const Executor& on, const FlashAttentionOptions& options) {
    flash_attention(on, q, q, q, options);
    const Options named = options.precision
                              ? Options{{"precision", std::string(to_string(*options.precision))}}
                              : Options{};
    const Explanation explanation =
        on.explain("flash_attention", {{"query", q}, {"key", q}, {"value", q}}, named);
    EXPECT_EQ(explanation.execution.precision, context.last_execution().precision);
    return explanation.execution.precision;
  };
  EXPECT_EQ(asked(context, {}), Precision::kHigh);
  const ScopedPrecision scope(Precision::kHighest);
  EXPECT_EQ(asked(context, {}), Precision::kHighest) << "not from the cached plan";
  EXPECT_EQ(asked(Executor(context).with_precision(Precision::kHigh), {}), Precision::kHigh);
  EXPECT_EQ(asked(context, {.precision = Precision::kDefault}), Precision::kDefault);
  attention(context, q, q, q, {.precision = Precision::kHigh});
  EXPECT_EQ(context.last_execution().precision, Precision::kHigh);
  scaled_dot_product_attention(context, q, q, q, {.precision = Precision::kHigh});
  EXPECT_EQ(context.last_execution().precision, Precision::kHigh);
  const auto pulled = vjp::flash_attention(context, q, q, q, {.precision = Precision::kHigh});
  static_cast<void>(pulled.pullback(pulled.output));
  EXPECT_EQ(context.last_execution().operation, "flash_attention_backward");
  EXPECT_EQ(context.last_execution().precision, Precision::kHigh);
}

// bf16 on a processor has a variant that rounds weights; elsewhere matrix units do.
TEST(Executor, HighestIsAnsweredByAVariantThatKeepsIt) {
  const Context context = open_best();
  const Tensor q = context.empty(DType::kBF16, {1, 256, 2, 64});
  for (const Precision precision : {Precision::kDefault, Precision::kHighest}) {
    const Explanation explanation = Executor(context).with_precision(precision).explain(
        "flash_attention", {{"query", q}, {"key", q}, {"value", q}});
    const Variant& chosen =
        *find_operation("flash_attention").find_variant(explanation.execution.choice.variant);
    EXPECT_GE(precision_of(chosen, DType::kBF16), precision);
  }
}

TEST(Executor, RefusesTensorsThatAreNotItsOwnOrLeaveTheirBuffer) {
  const Context a = open("host"), b = open("host");
  const Tensor q = ramp(a, {1, 4, 1, 8}), foreign = ramp(b, {1, 4, 1, 8});
  EXPECT_EQ(message_of([&] { flash_attention(a, q, foreign, q); }),
            "flash_attention: key f32[1, 4, 1, 8] belongs to another context");
  TensorSpec longer = q.spec();
  longer.shape[1] = 5;
  EXPECT_EQ(message_of([&] {
              flash_attention(a, q, Tensor(longer, q.buffer()), Tensor(longer, q.buffer()));
            }),
            "flash_attention: key f32[1, 5, 1, 8] reaches byte 160 of a buffer of 128");
  EXPECT_EQ(message_of([&] { flash_attention(a, q, Tensor(), q); }),
            "flash_attention: key is an empty tensor");
  EXPECT_EQ(
      message_of([&] {
        Executor(a).run("flash_attention", {{"query", q}, {"key", q}, {"value", q}, {"output", q}});
      }),
      "flash_attention: output 'output' overlaps 'query'");
}

TEST(Executor, WritesIntoTheCallersTensor) {
  const Context context = open_best();
  const Tensor q = ramp(context, {1, 9, 2, 64});
  const Tensor whole = context.empty(DType::kF32, {1, 9, 4, 64});
  const Tensor half = whole.slice(2, 2, 4);
  Executor(context).run("flash_attention",
                        {{"query", q}, {"key", q}, {"value", q}, {"output", half}});
  EXPECT_EQ(context.download<float>(half),
            context.download<float>(flash_attention(context, q, q, q)));
}

TEST(Executor, ThreadsShareAContextAndOwnTheirStreams) {
  const Context context = open_best();
  const Tensor q = ramp(context, {1, 33, 2, 64});
  const auto expected = context.download<float>(flash_attention(context, q, q, q));
  std::vector<std::jthread> threads;
  std::atomic<int> wrong{0};
  for (int n = 0; n < 4; ++n) {
    threads.emplace_back([&, n] {
      Stream stream = context.create_stream();
      const Executor on = n % 2 == 0 ? Executor(context) : Executor(context).on(stream);
      for (int round = 0; round < 10; ++round) {
        const Tensor out = flash_attention(on, q, q, q);
        stream.synchronize();
        if (context.download<float>(out) != expected) ++wrong;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, 0);
}

TEST(Executor, EventsTellTheOriginOfEveryChoice) {
  const Context context = open("host");
  std::vector<std::string> names;
  context.on_event([&](const Event& event) { names.push_back(event.name); });
  const Tensor q = ramp(context, {1, 6, 1, 8});
  flash_attention(context, q, q, q);
  flash_attention(context, q, q, q, {.softmax_scale = 0.5F});  // another call of the same key
  ASSERT_GE(names.size(), 2U);
  EXPECT_EQ(names.front(), "heuristics");
  EXPECT_EQ(names.back(), "cache_hit");
}

TEST(Executor, BuffersBeyondTheDevicesLimitAreRefusedByName) {
  for (const DeviceInfo& device : select_devices(probe_devices(), "")) {
    if (device.profile.max_allocation == 0) continue;
    const Context context = open(std::to_string(device.index));
    const auto bytes = static_cast<std::int64_t>(
                           std::min(device.profile.max_allocation, device.profile.max_binding)) +
                       1;
    const std::string message = message_of([&] { context.empty(DType::kU8, {bytes}); });
    EXPECT_NE(message.find(std::to_string(bytes - 1)), std::string::npos)
        << device.profile.name << ": " << message;
  }
}

TEST(Context, ErrorsListWhatWasProbed) {
  const std::string message = message_of([] { Context::open("no-such-device"); });
  EXPECT_NE(message.find("no device matches 'no-such-device'"), std::string::npos);
  EXPECT_NE(message.find("reference"), std::string::npos);
}

TEST(Context, ErrorsListWhatWasNotProbed) {
  const std::string message = message_of([] { Context::open("host:no-such-device"); });
  EXPECT_NE(message.find("[host] cpu  reference"), std::string::npos) << message;
  EXPECT_NE(message.find("not probed, as the selector rules it out: opencl vulkan"),
            std::string::npos)
      << message;
}

TEST(Context, KnowsItsIndexAmongAllDevices) {
  for (const DeviceInfo& device : probe_devices().devices) {
    const Context by_index = open(std::to_string(device.index));
    EXPECT_EQ(by_index.device_index(), device.index);
    const Context by_name = open(std::string(to_string(device.profile.backend)));
    const auto named = select_devices(probe_devices(), to_string(device.profile.backend));
    EXPECT_EQ(by_name.device_index(), named.front().index);
  }
}

// Calls that differ in nothing but what is named here must not share a plan.
TEST(Executor, AlmostEqualCallsGetPlansOfTheirOwn) {
  const Context context = open("host");
  const Tensor q = ramp(context, {1, 4, 2, 8});
  const Operation& operation = find_operation("flash_attention");
  const auto plan = [&](const Executor& on, const Tensor& query, Options options = {}) {
    std::vector<std::optional<TensorSpec>> specs(operation.operands.size());
    specs[operation.slot("query")] = query.spec();
    for (const char* name : {"key", "value"}) specs[operation.slot(name)] = q.spec();
    return on.plan(make_problem(operation, specs, std::move(options)));
  };
  const auto first = plan(context, q);
  EXPECT_EQ(plan(context, q), first);
  TensorSpec moved = q.spec(), strided = q.spec();
  moved.offset = 1;
  strided.strides = {1000, 16, 8, 1};
  const std::vector<std::shared_ptr<const runtime::Plan>> others{
      plan(context, Tensor(moved, q.buffer())),
      plan(context, Tensor(strided, q.buffer())),
      plan(context, q, {{"causal", true}}),
      plan(context, q, {{"softmax_scale", 0.1}}),
      plan(context, q, {{"softmax_scale", 0.1 + 1e-15}}),
      plan(context, q, {{"sliding_window", std::vector<std::int64_t>{1}}}),
      plan(context, q, {{"sliding_window", std::vector<std::int64_t>{1, 1}}}),
      plan(Executor(context).with_variant("reference"), q),
      plan(Executor(context).with_tiers({Tier::kHeuristics}), q)};
  for (std::size_t i = 0; i < others.size(); ++i) {
    EXPECT_NE(others[i], first) << i;
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(others[i], others[j]) << i << " " << j;
  }
}

// As a named, empty set of tiers allows nothing, it is not the plan of a call that names none.
TEST(Executor, NoTiersAreNotAllTiers) {
  const Context context = open("host");
  const Tensor q = ramp(context, {1, 4, 1, 8});
  flash_attention(context, q, q, q);
  EXPECT_THROW(flash_attention(Executor(context).with_tiers({}), q, q, q), Error);
}

TEST(AttentionFunction, GivesWeightsAndTheirSum) {
  const Context context = open("host");
  const Tensor q = ramp(context, {1, 3, 2, 4}), k = ramp(context, {1, 5, 2, 4});
  const AttentionResult result = attention(context, q, k, k, {.softmax_scale = 0.01F});
  const auto forward = flash_attention_forward(context, q, k, k, {.softmax_scale = 0.01F});
  EXPECT_EQ(result.log_sum_exp.shape(), (Shape{1, 2, 3}));
  EXPECT_EQ(context.download<float>(result.log_sum_exp),
            context.download<float>(forward.log_sum_exp));
}

}  // namespace
}  // namespace tessera
