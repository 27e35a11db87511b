// SPDX-License-Identifier: Apache-2.0
#include "operations/attention/random.hpp"

#include <algorithm>
#include <numeric>
#include <sstream>

#include "operations/attention_core/cases/workload.hpp"
#include "support/draw.hpp"

namespace tessera::testing {
namespace {

using namespace operations::attention;  // NOLINT(google-build-using-namespace): many names

// Types and dims that kernels are compiled for; the first is drawn most.
struct KernelShape {
  DType dtype;
  std::int64_t head_dim, value_dim;
};
constexpr KernelShape kBf16{DType::kBF16, 40, 24};
constexpr KernelShape kKernelShapes[] = {{DType::kF32, 64, 64}, {DType::kF16, 64, 64}, kBf16};
constexpr double kKernelShapeShares[] = {0.4, 0.35, 0.25};

// Lengths around powers of two, and primes; long ones where the other axes are short.
constexpr std::int64_t kLengths[] = {1,  2,  3,  5,  7,  13, 15, 16,  17,  23,  31,  32,  33,
                                     47, 63, 64, 65, 71, 96, 97, 127, 128, 129, 255, 256, 257};
constexpr std::int64_t kLongLength = 1025;
constexpr std::int64_t kMostPairs = 24000;  // of (row, key) in all heads: what the oracle pays for

class Maker {
 public:
  Maker(std::uint64_t seed, bool with_f16) : draw_(seed), with_f16_(with_f16) {
    result_.shape.seed = seed;
  }

  RandomAttention make() {
    constexpr double kOperations[] = {0.6, 0.1, 0.1, 0.2};
    constexpr const char* kNames[] = {"flash_attention", "attention",
                                      "scaled_dot_product_attention", "flash_attention_backward"};
    result_.operation = kNames[draw_.share(kOperations)];
    const Operation& operation = find_operation(result_.operation);
    slots_ = attention_slots(operation.operands);
    backward_ = slots_.output_gradient != kNoOperand;
    flash_ = slots_.alibi_slopes != kNoOperand;
    KernelShape kernel = kKernelShapes[draw_.share(kKernelShapeShares)];
    if (kernel.dtype == DType::kF16 && !with_f16_) kernel = kBf16;
    result_.dtype = kernel.dtype;
    shape_.sizes.head_dim = kernel.head_dim;
    shape_.sizes.value_dim = kernel.value_dim;
    draw_features();
    draw_sizes();
    draw_options();
    draw_data();
    const std::uint64_t seed = result_.shape.seed;
    result_.shape = make_case(slots_, kernel.dtype, shape_);
    result_.shape.seed = seed;
    for (const std::size_t slot : {slots_.mask, slots_.bias}) vary_pairs(slot);
    if (slots_.bias_gradient != kNoOperand && has(kBiasGradient))
      result_.shape.operands[slots_.bias_gradient] = result_.shape.operands[slots_.bias];
    bring_outputs();
    for (const std::size_t slot : {slots_.query, slots_.key, slots_.value, slots_.output_gradient,
                                   slots_.output, slots_.query_gradient, slots_.key_gradient,
                                   slots_.value_gradient, slots_.log_sum_exp, slots_.weights})
      vary_strides(slot, true);
    for (const std::size_t slot : {slots_.mask, slots_.bias, slots_.bias_gradient})
      vary_strides(slot, false);
    result_.kernel = draw_.word() >> 1;
    result_.splits = static_cast<std::uint64_t>(1 + draw_.below(5));
    draw_precision();
    result_.shape.name = describe();
    return result_;
  }

 private:
  bool has(std::uint32_t feature) const { return (shape_.features & feature) != 0; }
  void maybe(double probability, std::uint32_t feature, std::size_t slot) {
    if (draw_.chance(probability) && slot != kNoOperand) shape_.features |= feature;
  }

  void draw_features() {
    maybe(0.7, kLogSumExp, slots_.log_sum_exp);
    if (draw_.chance(0.3)) return;  // the kernels without policies
    constexpr std::uint32_t kMasks[] = {kMask, kSharedMask, kKeyMask};
    constexpr std::uint32_t kBiases[] = {kBias, kSharedBias};
    constexpr std::uint32_t kSinkShapes[] = {kSinks, kHeadSinks};
    maybe(0.25, draw_.of(kMasks), slots_.mask);
    maybe(0.25, draw_.of(kBiases), slots_.bias);
    maybe(0.2, kAlibi, slots_.alibi_slopes);
    maybe(0.2, draw_.of(kSinkShapes), slots_.sinks);
    maybe(0.15, draw_.chance(0.6) ? kPacked : kPadded, slots_.cum_seqlens_q);
    if (!has(kPacked)) {
      maybe(0.15, kQLengths, slots_.q_lengths);
      maybe(0.2, kKvLengths, slots_.kv_lengths);
    }
    maybe(0.15, kSegments, slots_.q_segments);
    maybe(0.12, kPositions, slots_.q_positions);
    if (has(kBias | kSharedBias)) maybe(0.7, kBiasGradient, slots_.bias_gradient);
    if (has(kSinks | kHeadSinks)) maybe(0.7, kSinksGradient, slots_.sinks_gradient);
  }

  void draw_sizes() {
    constexpr std::int64_t kGroups[] = {1, 1, 1, 2, 2, 3, 4, 5, 8};
    AttentionSizes& sizes = shape_.sizes;
    const std::int64_t most = backward_ ? kMostPairs / 4 : kMostPairs;
    sizes.batch = has(kPacked) ? 1 : 1 + draw_.below(3);
    sizes.kv_heads = 1 + draw_.below(3);
    sizes.heads = sizes.kv_heads * draw_.of(kGroups);
    sizes.q_len = draw_.chance(0.25) ? 1 + draw_.below(4) : draw_.of(kLengths);
    sizes.kv_len = draw_.chance(0.25) ? sizes.q_len : draw_.of(kLengths);
    if (sizes.q_len < 4 && draw_.chance(0.1)) sizes.kv_len = kLongLength;
    const auto pairs = [&] { return sizes.batch * sizes.heads * sizes.q_len * sizes.kv_len; };
    if (pairs() > most) sizes.batch = 1;
    if (pairs() > most) sizes.heads = sizes.kv_heads = 1 + draw_.below(2);
    while (pairs() > most) {
      std::int64_t& longer = sizes.q_len > sizes.kv_len ? sizes.q_len : sizes.kv_len;
      longer -= longer / 3;
    }
    if (draw_.chance(0.005)) (draw_.chance(0.5) ? sizes.q_len : sizes.kv_len) = 0;
  }

  void draw_options() {
    Options& options = shape_.options;
    const std::int64_t reach = std::max(shape_.sizes.kv_len, shape_.sizes.q_len) + 3;
    if (draw_.chance(0.45)) options["causal"] = true;
    if (draw_.chance(0.25)) {
      if (has(kPositions) && draw_.chance(0.4)) {  // of positions that are far apart
        constexpr std::int64_t kFar[] = {(std::int64_t{1} << 30) - 1, std::int64_t{1} << 30,
                                         (std::int64_t{1} << 31) - 1, std::int64_t{1} << 31,
                                         std::int64_t{3} << 30,       std::int64_t{1} << 32};
        const std::int64_t left = draw_.of(kFar);
        options["sliding_window"] = std::vector<std::int64_t>{left, draw_.of(kFar)};
      } else if (draw_.chance(0.3)) {
        options["sliding_window"] = draw_.below(reach);
      } else {
        const std::int64_t left = draw_.below(reach);
        options["sliding_window"] = std::vector<std::int64_t>{left, draw_.below(reach)};
      }
    }
    const double scale = draw_.unit();
    if (scale < 0.03) options["softmax_scale"] = 0.0;
    if (scale >= 0.03 && scale < 0.08) options["softmax_scale"] = -0.2 * draw_.unit();
    if (scale > 0.9) options["softmax_scale"] = draw_.unit();
    if (result_.operation == "scaled_dot_product_attention") return;
    if (draw_.chance(0.2)) options["logits_soft_cap"] = 0.5 + 20 * draw_.unit();
    if (draw_.chance(0.2)) {
      constexpr double kProbabilities[] = {0.01, 0.1, 0.3, 0.5, 0.9};
      options["dropout_prob"] = draw_.of(kProbabilities);
      options["dropout_seed"] = static_cast<std::int64_t>(draw_.word());
    }
    if (!flash_) {
      if (draw_.chance(0.3)) options["bias_order"] = std::string("before_cap");
      return;
    }
    if (!has(kPositions) && draw_.chance(0.5))
      options["causal_alignment"] = std::string("bottom_right");
    if (draw_.chance(0.08)) options["chunk_size"] = 1 + draw_.below(reach);
    if (backward_) {
      if (draw_.chance(0.2)) options["bias_order"] = std::string("after_cap");
      return;
    }
    if (draw_.chance(0.05)) options["normalize_output"] = false;
    if (draw_.chance(0.2)) options["num_splits"] = 1 + draw_.below(8);
  }

  // Mostly normal numbers; each of the others shows what those do not.
  void draw_data() {
    constexpr const char* kKinds[] = {"normal",     "sharp",        "ascending",  "descending",
                                      "needle",     "needle_first", "needle_any", "constant_value",
                                      "tiny",       "large",        "integers",   "below_zero",
                                      "hidden_nan", "some_nan"};
    constexpr double kShares[] = {0.30, 0.12,  0.07,  0.04, 0.03, 0.03, 0.03,
                                  0.04, 0.025, 0.025, 0.04, 0.05, 0.12, 0.08};
    shape_.data = kKinds[draw_.share(kShares)];
    // Sums of large values overflow where nothing divides them.
    const bool sums = backward_ || shape_.options.contains("normalize_output") ||
                      shape_.options.contains("dropout_prob");
    if (shape_.data == "large" && sums) shape_.data = "normal";
    // Whether gradients need what is dropped is not promised.
    if (backward_ && shape_.data == "some_nan" && shape_.options.contains("dropout_prob"))
      shape_.data = "hidden_nan";
    if (has(kBias | kSharedBias | kSinks | kHeadSinks) && draw_.chance(0.4))
      shape_.data += "+masking";
    if (has(kPacked | kPadded) && draw_.chance(0.4)) shape_.data += "+unordered";
    if (has(kPositions) && draw_.chance(0.5)) shape_.data += "+far";
  }

  std::optional<TensorSpec>* operand(std::size_t slot) {
    if (slot == kNoOperand || slot >= result_.shape.operands.size()) return nullptr;
    std::optional<TensorSpec>& spec = result_.shape.operands[slot];
    return spec ? &spec : nullptr;
  }

  // Outputs in memory of the caller's layout; the others are allocated.
  void bring_outputs() {
    std::vector<std::optional<TensorSpec>>& operands = result_.shape.operands;
    const auto bring = [&](std::size_t slot, Shape shape) {
      if (slot == kNoOperand || draw_.chance(0.4)) return;
      operands.resize(std::max(operands.size(), slot + 1));
      if (!operands[slot]) operands[slot] = TensorSpec::contiguous(result_.dtype, shape);
    };
    const AttentionSizes& s = shape_.sizes;
    Shape output = operands[slots_.query]->shape;
    output.back() = s.value_dim;
    bring(slots_.output, output);
    bring(slots_.weights, {s.batch, s.heads, s.q_len, s.kv_len});
    bring(slots_.query_gradient, operands[slots_.query]->shape);
    bring(slots_.key_gradient, operands[slots_.key]->shape);
    bring(slots_.value_gradient, operands[slots_.value]->shape);
  }

  // Axes of a mask or a bias that broadcast, and groups of heads that share it.
  void vary_pairs(std::size_t slot) {
    std::optional<TensorSpec>* const spec = operand(slot);
    if (spec == nullptr) return;
    Shape shape = (*spec)->shape;
    if (shape.size() == 4) {
      if (draw_.chance(0.3)) shape[0] = 1;
      if (draw_.chance(0.3)) shape[1] = draw_.chance(0.5) ? 1 : shape_.sizes.kv_heads;
      if (draw_.chance(0.2)) shape[2] = 1;
    }
    *spec = TensorSpec::contiguous((*spec)->dtype, shape);
  }

  // Any order of the axes in memory, gaps after each, and an offset.
  void vary_strides(std::size_t slot, bool last_axis_stays) {
    std::optional<TensorSpec>* const spec = operand(slot);
    if (spec == nullptr || draw_.chance(0.4)) return;
    TensorSpec& tensor = **spec;
    std::vector<std::size_t> order(tensor.shape.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const std::size_t movable = order.size() - (last_axis_stays ? 1 : 0);
    for (std::size_t n = movable; n > 1; --n)
      std::swap(order[n - 1],
                order[static_cast<std::size_t>(draw_.below(static_cast<std::int64_t>(n)))]);
    const bool aligned = draw_.chance(0.5);
    std::int64_t stride = 1;
    for (std::size_t n = order.size(); n-- > 0;) {
      tensor.strides[order[n]] = stride;
      stride *= std::max<std::int64_t>(tensor.shape[order[n]], 1);
      stride += aligned ? 4 * draw_.below(3) : draw_.below(6);
    }
    tensor.offset = aligned ? 4 * draw_.below(3) : draw_.below(8);
  }

  void draw_precision() {
    constexpr const char* kPrecisions[] = {"", "highest", "high", "default"};
    constexpr double kShares[] = {0.7, 0.2, 0.05, 0.05};
    const std::string precision = kPrecisions[draw_.share(kShares)];
    if (precision.empty()) return;
    shape_.options["precision"] = result_.shape.options["precision"] = precision;
  }

  std::string describe() const {
    const AttentionSizes& s = shape_.sizes;
    std::ostringstream text;
    text << "b" << s.batch << " q" << s.q_len << " k" << s.kv_len << " h" << s.heads << "/"
         << s.kv_heads << " features=0x" << std::hex << shape_.features << std::dec << " "
         << shape_.data;
    for (const auto& [name, value] : shape_.options) text << " " << name << "=" << to_string(value);
    return text.str();
  }

  Draw draw_;
  bool with_f16_;
  RandomAttention result_;
  AttentionCaseShape shape_;
  AttentionSlots slots_;
  bool backward_ = false, flash_ = false;
};

}  // namespace

RandomAttention random_attention(std::uint64_t seed, bool with_f16) {
  return Maker(seed, with_f16).make();
}

}  // namespace tessera::testing
