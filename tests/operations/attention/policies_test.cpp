// SPDX-License-Identifier: Apache-2.0
// Policies of attention: refusals, the random numbers of dropout, gradients of the definition by
// central differences, and masks as options. Needs no device but the host.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "operations/attention_core/cases/workload.hpp"
#include "operations/attention_core/dropout.hpp"
#include "support/messages.hpp"
#include "tessera/error.hpp"
#include "tessera/operations/attention.hpp"

namespace tessera::operations::attention {
namespace {

using Operands = std::vector<std::pair<const char*, TensorSpec>>;

TensorSpec of(DType dtype, Shape shape) { return TensorSpec::contiguous(dtype, std::move(shape)); }

std::string refusal(const char* name, const Operands& tensors, Options options = {}) {
  const Operation& operation = find_operation(name);
  std::vector<std::optional<TensorSpec>> operands(operation.operands.size());
  for (const auto& [operand, spec] : tensors) operands[operation.slot(operand)] = spec;
  return testing::message_of<InvalidArgument>(
      [&] { make_problem(operation, std::move(operands), std::move(options)); });
}

const TensorSpec kQuery = of(DType::kF32, {2, 8, 4, 16});
const TensorSpec kKey = of(DType::kF32, {2, 12, 2, 16});

std::string refusal_with(const Operands& more, Options options = {}) {
  Operands tensors{{"query", kQuery}, {"key", kKey}, {"value", kKey}};
  tensors.insert(tensors.end(), more.begin(), more.end());
  return refusal("flash_attention", tensors, std::move(options));
}

TEST(AttentionRefusals, NameTheOperandOfAPolicy) {
  const auto contains = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  EXPECT_EQ(refusal_with({{"attention_mask", of(DType::kU8, {2, 4, 8, 12})}}), "");
  EXPECT_EQ(refusal_with({{"attention_mask", of(DType::kU8, {1, 2, 1, 12})}}), "");
  EXPECT_EQ(refusal_with({{"attention_mask", of(DType::kU8, {2, 12})}}), "");
  contains(refusal_with({{"attention_mask", of(DType::kU8, {2, 3, 8, 12})}}),
           "attention_mask u8[2, 3, 8, 12] must be [batch or 1, heads, kv_heads or 1");
  contains(refusal_with({{"bias", of(DType::kBF16, {2, 4, 8, 12})}}),
           "bias bf16[2, 4, 8, 12] must have the dtype of query, f32, or f32");
  contains(refusal_with({{"alibi_slopes", of(DType::kF32, {3})}}),
           "alibi_slopes f32[3] must be [heads] or [batch, heads]");
  contains(refusal_with({{"softmax_aux", of(DType::kF32, {3, 2})}}),
           "softmax_aux f32[3, 2] must be [sinks] or [heads or kv_heads, sinks]");
  contains(refusal_with({{"cum_seqlens_q", of(DType::kI32, {3})}}),
           "cum_seqlens_q needs cum_seqlens_k beside it");
  contains(refusal_with(
               {{"cum_seqlens_q", of(DType::kI32, {4})}, {"cum_seqlens_k", of(DType::kI32, {4})}}),
           "must have batch + 1 = 3 entries");
  contains(refusal_with({{"q_lengths", of(DType::kI32, {3})}}), "must be [batch], [2]");
  contains(refusal_with({{"q_segment_ids", of(DType::kI32, {2, 8})}}),
           "q_segment_ids needs kv_segment_ids beside it");
  contains(refusal_with({{"q_positions", of(DType::kI32, {2, 8})},
                         {"kv_positions", of(DType::kI32, {2, 12})}},
                        {{"causal_alignment", std::string("bottom_right")}}),
           "does not go with positions");
  const TensorSpec rows = of(DType::kF32, {8, 4, 16});
  contains(refusal("flash_attention", {{"query", rows}, {"key", rows}, {"value", rows}}),
           "so cum_seqlens_q and cum_seqlens_k must say where its sequences begin");
}

TEST(AttentionRefusals, NameTheOptionOfAPolicy) {
  EXPECT_NE(refusal_with({}, {{"dropout_prob", 1.0}}).find("at least 0 and less than 1"),
            std::string::npos);
  EXPECT_NE(refusal_with({}, {{"chunk_size", std::int64_t{0}}}).find("from 1 to 2^30 - 1"),
            std::string::npos);
  EXPECT_NE(refusal_with({}, {{"num_splits", std::int64_t{-1}}}).find("from 0 to 1024"),
            std::string::npos);
}

TEST(AttentionRefusals, GradientsOfWhatTheCallDoesNotHave) {
  const TensorSpec lse = of(DType::kF32, {2, 4, 8});
  EXPECT_NE(refusal("flash_attention_backward", {{"query", kQuery},
                                                 {"key", kKey},
                                                 {"value", kKey},
                                                 {"output", kQuery},
                                                 {"log_sum_exp", lse},
                                                 {"output_gradient", kQuery},
                                                 {"bias_gradient", of(DType::kF32, {1, 1, 8, 12})}})
                .find("bias_gradient was asked for, but the call has no bias"),
            std::string::npos);
}

// The published vectors of the generator's authors (Random123, kat_vectors), philox4x32 10.
TEST(Dropout, DrawsThePublishedNumbers) {
  using Words = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox4x32_10({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(
      philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
  EXPECT_EQ(dropout_threshold(0.25), 1U << 30);
  EXPECT_EQ(dropout_threshold(0), 0U);
}

// A call of an operation with double operands, filled as the conformance cases are.
class Call {
 public:
  Call(const char* operation, const AttentionCaseShape& shape) {
    const Operation& record = find_operation(operation);
    const Case made = make_case(attention_slots(record.operands), DType::kF32, shape);
    std::vector<std::optional<TensorSpec>> operands = made.operands;
    problem_ = make_problem(record, operands, made.options);
    values_.resize(problem_.operands.size());
    tensors_.resize(problem_.operands.size());
    for (std::size_t slot = 0; slot < values_.size(); ++slot) {
      if (!problem_.has(slot)) continue;
      const TensorSpec wide = TensorSpec::contiguous(DType::kF64, problem_.spec(slot).shape);
      values_[slot].resize(static_cast<std::size_t>(wide.elements()));
      tensors_[slot] = {.spec = wide, .data = reinterpret_cast<std::byte*>(values_[slot].data())};
    }
    fill_attention(problem_, made, tensors_);
  }

  const Problem& problem() const { return problem_; }
  std::vector<double>& values(std::size_t slot) { return values_[slot]; }
  void run() { problem_.operation->reference(problem_, tensors_); }

 private:
  Problem problem_;
  std::vector<std::vector<double>> values_;
  std::vector<HostTensor> tensors_;
};

// sum of output * weights, a scalar whose gradients are those of output_gradient = weights.
double loss(Call& forward, const std::vector<double>& weights) {
  forward.run();
  const auto& slots = forward.problem().as<AttentionProblem>().slots;
  double sum = 0;
  for (std::size_t n = 0; n < weights.size(); ++n)
    sum += weights[n] * forward.values(slots.output)[n];
  return sum;
}

// Every gradient of the definition is the slope of the definition: central differences in double.
TEST(AttentionGradients, AreTheSlopesOfTheDefinition) {
  for (AttentionCaseShape shape : policy_cases()) {
    const bool packed = (shape.features & kPacked) != 0;
    shape.sizes = {.batch = packed ? 1 : 2,
                   .q_len = 7,
                   .kv_len = 7,
                   .heads = 4,
                   .kv_heads = 2,
                   .head_dim = 5,
                   .value_dim = 3};
    shape.features |= kLogSumExp;
    if (shape.data.starts_with("some_nan")) continue;  // what is NaN has no slope
    // Beside a slope times such a distance a step of a score rounds to nothing.
    if ((shape.features & kAlibi) != 0) shape.data = "normal";
    if ((shape.features & (kBias | kSharedBias)) != 0) shape.features |= kBiasGradient;
    SCOPED_TRACE(shape.name);
    Call forward("flash_attention", shape), backward("flash_attention_backward", shape);
    const AttentionSlots to = backward.problem().as<AttentionProblem>().slots;
    const AttentionSlots from = forward.problem().as<AttentionProblem>().slots;
    // Beside the lowest float a step of a score rounds to nothing: another number in its place.
    if (backward.problem().has(to.bias)) {
      for (double& bias : backward.values(to.bias)) {
        if (std::isfinite(bias) && std::fabs(bias) > 1e15) bias = std::copysign(2, bias);
      }
    }
    // Slots differ, and with them the seeds: the forward call gets the operands of the backward.
    const std::pair<std::size_t, std::size_t> inputs[] = {{from.query, to.query},
                                                          {from.key, to.key},
                                                          {from.value, to.value},
                                                          {from.mask, to.mask},
                                                          {from.bias, to.bias},
                                                          {from.alibi_slopes, to.alibi_slopes},
                                                          {from.sinks, to.sinks},
                                                          {from.cum_seqlens_q, to.cum_seqlens_q},
                                                          {from.cum_seqlens_k, to.cum_seqlens_k},
                                                          {from.q_lengths, to.q_lengths},
                                                          {from.kv_lengths, to.kv_lengths},
                                                          {from.q_segments, to.q_segments},
                                                          {from.kv_segments, to.kv_segments},
                                                          {from.q_positions, to.q_positions},
                                                          {from.kv_positions, to.kv_positions}};
    for (const auto& [mine, theirs] : inputs) {
      if (forward.problem().has(mine)) forward.values(mine) = backward.values(theirs);
    }
    // Rows that see nothing may have any gradient, and add nothing to the sum.
    std::vector<double> weights = backward.values(to.output_gradient);
    std::ranges::replace_if(
        weights, [](double weight) { return !std::isfinite(weight); }, 0);
    forward.run();
    backward.values(to.output) = forward.values(from.output);
    backward.values(to.log_sum_exp) = forward.values(from.log_sum_exp);
    backward.run();

    const std::pair<std::size_t, std::size_t> gradients[] = {{from.query, to.query_gradient},
                                                             {from.key, to.key_gradient},
                                                             {from.value, to.value_gradient},
                                                             {from.bias, to.bias_gradient},
                                                             {from.sinks, to.sinks_gradient}};
    for (const auto& [input, gradient] : gradients) {
      if (!backward.problem().has(gradient)) continue;
      double largest = 0;
      for (const double g : backward.values(gradient)) largest = std::max(largest, std::fabs(g));
      for (std::size_t n = 0; n < backward.values(gradient).size(); n += 3) {
        constexpr double kStep = 1e-5;
        double& x = forward.values(input)[n];
        const double before = x;
        x = before + kStep;
        const double above = loss(forward, weights);
        x = before - kStep;
        const double below = loss(forward, weights);
        x = before;
        EXPECT_NEAR((above - below) / (2 * kStep), backward.values(gradient)[n],
                    1e-6 * std::max(largest, 1e-3))
            << backward.problem().operation->operands[gradient].name << " " << n;
      }
    }
  }
}

std::vector<float> normal_floats(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> distribution;
  std::vector<float> values(count);
  for (float& value : values) value = distribution(random);
  return values;
}

// What a mask says symbolically, its dense form says too.
TEST(AttentionMasks, AsOptionsSeeWhatTheMaskSees) {
  const Context context = Context::open("host");
  const Tensor q = context.upload(normal_floats(2 * 9 * 2 * 4, 1), {2, 9, 2, 4});
  const Tensor k = context.upload(normal_floats(2 * 11 * 2 * 4, 2), {2, 11, 2, 4});
  const Tensor v = context.upload(normal_floats(2 * 11 * 2 * 4, 3), {2, 11, 2, 4});
  const Diagonal bottom_right{.alignment = CausalAlignment::kBottomRight};
  const MaskSpec full = MaskSpec::full(2, 9, 11);
  const std::pair<const char*, MaskSpec> masks[] = {
      {"causal", full.with_causal()},
      {"causal from the end, short keys", full.with_causal(bottom_right).with_kv_lengths({11, 6})},
      {"window", full.with_sliding_window(2, 1)},
      {"window and causal disagree about the diagonal",
       full.with_causal().with_sliding_window(3, 3, bottom_right)},
      {"an offset", full.with_causal({.offsets = {1, 2}})},
      {"chunks", full.with_chunks(4)},
      {"segments",
       full.with_segments(
           {.q = {0, 0, 0, 1, 1, 1, 1, -1, -1, 2, 2, 2, 2, 2, 0, 0, 0, 0},
            .kv = {0, 0, 0, 0, 1, 1, 1, 1, 1, -1, -1, 2, 2, 0, 0, 0, 0, 1, 1, 2, 2, 2}})},
      {"dense", MaskSpec::random(2, 9, 11, 0.4, 5).with_causal()},
      {"token types",
       full.with_causal().with_token_types(
           {.q = std::vector<std::int32_t>(18, 1),
            .kv = {0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0}})},
  };
  for (const auto& [name, mask] : masks) {
    SCOPED_TRACE(name);
    const DenseMask dense = mask.to_dense();
    FlashAttentionOptions as_mask;
    as_mask.attention_mask =
        context.upload(dense.values, {dense.batch, dense.heads, dense.q_len, dense.kv_len});
    const auto wanted = context.download<float>(flash_attention(context, q, k, v, as_mask));
    const auto got =
        context.download<float>(flash_attention(context, q, k, v, with_mask(context, mask)));
    EXPECT_EQ(got, wanted);
  }
}

// One head of one row, whose keys have these biases and the values 1, 2, 3; all logits are 1.
FlashAttentionForward biased(const Context& context, const std::vector<float>& bias) {
  const Tensor q = context.upload(std::vector<float>{1}, {1, 1, 1, 1});
  const Tensor k = context.upload(std::vector<float>{1, 1, 1}, {1, 3, 1, 1});
  const Tensor v = context.upload(std::vector<float>{1, 2, 3}, {1, 3, 1, 1});
  return flash_attention_forward(context, q, k, v, {.bias = context.upload(bias, {1, 1, 1, 3})});
}

// Frameworks mask by the lowest number, and by -inf.
TEST(AttentionBiases, TheLowestNumberIsANumberAndInfinityHides) {
  constexpr float kLowest = std::numeric_limits<float>::lowest(), kLargest = -kLowest;
  constexpr float kHidden = -std::numeric_limits<float>::infinity();
  const Context context = Context::open("host");
  const struct {
    std::vector<float> bias;
    float output, log_sum_exp;
  } kRows[] = {
      {{kLowest, kLowest, kLowest}, 2, kLowest}, {{kLowest, kHidden, kLowest}, 2, kLowest},
      {{kHidden, kHidden, kLowest}, 3, kLowest}, {{kLowest, 0, kHidden}, 2, 1},
      {{kLargest, 0, kLargest}, 2, kLargest},    {{kHidden, kHidden, kHidden}, 0, kHidden}};
  for (const auto& row : kRows) {
    const FlashAttentionForward result = biased(context, row.bias);
    EXPECT_FLOAT_EQ(context.download<float>(result.output)[0], row.output);
    EXPECT_FLOAT_EQ(context.download<float>(result.log_sum_exp)[0], row.log_sum_exp);
  }
}

// Float does not hold ln 3 beside its lowest number; the weights are a third all the same.
TEST(AttentionBiases, WeightsOfALowestRowAddUpToOneInTheGradients) {
  const Context context = Context::open("host");
  const Tensor one = context.upload(std::vector<float>{1}, {1, 1, 1, 1});
  const Tensor k = context.upload(std::vector<float>{1, 2, 4}, {1, 3, 1, 1});
  const std::vector<float> lowest(3, std::numeric_limits<float>::lowest());
  const auto [output, pullback] =
      vjp::flash_attention(context, one, k, k, {.bias = context.upload(lowest, {1, 1, 1, 3})});
  const FlashAttentionGradients gradients = pullback(one, {.bias = true});
  for (const float dv : context.download<float>(gradients.value)) EXPECT_FLOAT_EQ(dv, 1.0F / 3);
  float sum = 0;
  for (const float db : context.download<float>(gradients.bias)) sum += db;
  EXPECT_NEAR(sum, 0, 1e-6);
}

// [batch, rows, heads, dim] with offsets as lengths: those of the second sequence count from the
// first one's end, not from the rows of one batch.
TEST(AttentionSequences, PaddedOffsetsAreLengths) {
  const Context context = Context::open("host");
  const Tensor q = context.upload(normal_floats(2 * 4 * 3, 8), {2, 4, 1, 3});
  const auto run = [&](const FlashAttentionOptions& options) {
    return context.download<float>(flash_attention(context, q, q, q, options));
  };
  const auto padded = [&](const std::vector<std::int32_t>& offsets) {
    const Tensor uploaded = context.upload(offsets, {3});
    return run({.cum_seqlens_q = uploaded, .cum_seqlens_k = uploaded});
  };
  const auto lengths = [&](const std::vector<std::int32_t>& counts) {
    const Tensor uploaded = context.upload(counts, {2});
    return run({.q_lengths = uploaded, .kv_lengths = uploaded});
  };
  EXPECT_EQ(padded({0, 4, 8}), run({}));
  EXPECT_EQ(padded({0, 3, 5}), lengths({3, 2}));
  EXPECT_EQ(padded({-7, -5, 100}), lengths({2, 4}));
  EXPECT_EQ(padded({8, 4, 7}), lengths({0, 3}));
  EXPECT_EQ(padded({std::numeric_limits<std::int32_t>::min(),
                    std::numeric_limits<std::int32_t>::max(), 0}),
            lengths({4, 0}));
}

// Windows and causal masks over all of int32.
TEST(AttentionPositions, MayBeAsFarApartAsTheirTypeAllows) {
  constexpr std::int32_t kFirst = std::numeric_limits<std::int32_t>::min(),
                         kLast = std::numeric_limits<std::int32_t>::max();
  const Context context = Context::open("host");
  const Tensor q = context.upload(std::vector<float>{0, 0}, {1, 2, 1, 1});
  const Tensor v = context.upload(std::vector<float>{1, 3}, {1, 2, 1, 1});
  const Tensor positions = context.upload(std::vector<std::int32_t>{kFirst, kLast}, {1, 2});
  const auto run = [&](FlashAttentionOptions options) {
    options.q_positions = options.kv_positions = positions;
    return context.download<float>(flash_attention(context, q, q, v, options));
  };
  using Rows = std::vector<float>;
  using Window = std::array<std::int64_t, 2>;
  constexpr std::int64_t kApart = (std::int64_t{1} << 32) - 1;
  EXPECT_EQ(run({}), (Rows{2, 2}));
  EXPECT_EQ(run({.causal = true}), (Rows{1, 2}));
  EXPECT_EQ(run({.sliding_window = Window{kApart, kApart - 1}}), (Rows{1, 2}));
  EXPECT_EQ(run({.sliding_window = Window{kApart - 1, kApart}}), (Rows{2, 3}));
  EXPECT_EQ(run({.chunk_size = (std::int64_t{1} << 30) - 1}), (Rows{1, 3}));
}

// Through the public API on the host: the pullback's gradients are slopes, f32 as far as that goes.
TEST(AttentionPullback, GivesSlopes) {
  const Context context = Context::open("host");
  const Shape shape{1, 6, 2, 8};
  std::vector<float> query = normal_floats(96, 4);
  const Tensor k = context.upload(normal_floats(96, 5), shape),
               v = context.upload(normal_floats(96, 6), shape);
  const std::vector<float> weights = normal_floats(96, 7);
  const FlashAttentionOptions options{.causal = true, .dropout_prob = 0.25F, .dropout_seed = 11};
  const auto [output, pullback] =
      vjp::flash_attention(context, context.upload(query, shape), k, v, options);
  const auto dq = context.download<float>(pullback(context.upload(weights, shape)).query);
  for (std::size_t n = 0; n < query.size(); n += 7) {
    const auto value = [&](float step) {
      std::vector<float> moved = query;
      moved[n] += step;
      const auto o = context.download<float>(
          flash_attention(context, context.upload(moved, shape), k, v, options));
      double sum = 0;
      for (std::size_t i = 0; i < o.size(); ++i) sum += double{weights[i]} * double{o[i]};
      return sum;
    };
    EXPECT_NEAR((value(1e-2F) - value(-1e-2F)) / 2e-2, dq[n], 2e-3) << n;
  }
}

}  // namespace
}  // namespace tessera::operations::attention
