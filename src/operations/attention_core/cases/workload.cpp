// SPDX-License-Identifier: Apache-2.0
// The cases that fit an operation, its benchmarks, and how much work a call is.
#include "operations/attention_core/cases/workload.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tessera::operations::attention {
namespace {

// An operation's operands and options, as far as cases ask for them.
struct Fits {
  AttentionSlots slots;
  std::vector<std::string> options;

  bool operator()(const AttentionCaseShape& shape) const {
    const std::pair<std::uint32_t, std::size_t> needs[] = {
        {kMask | kSharedMask | kKeyMask, slots.mask},
        {kBias | kSharedBias, slots.bias},
        {kAlibi, slots.alibi_slopes},
        {kSinks | kHeadSinks, slots.sinks},
        {kPacked | kPadded, slots.cum_seqlens_q},
        {kQLengths, slots.q_lengths},
        {kKvLengths, slots.kv_lengths},
        {kSegments, slots.q_segments},
        {kPositions, slots.q_positions}};
    for (const auto& [features, slot] : needs) {
      if ((shape.features & features) != 0 && slot == kNoOperand) return false;
    }
    return std::ranges::all_of(shape.options, [&](const auto& option) {
      return std::ranges::find(options, option.first) != options.end();
    });
  }
};

Fits fits_of(const Operation& operation) {
  Fits fits{.slots = attention_slots(operation.operands), .options = {}};
  std::ranges::transform(operation.options, std::back_inserter(fits.options), &OptionInfo::name);
  return fits;
}

void append(std::vector<AttentionCaseShape>& all, std::vector<AttentionCaseShape> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

std::vector<Case> to_cases(const Fits& fits, DType dtype, std::vector<AttentionCaseShape> shapes) {
  std::erase_if(shapes, [&](const AttentionCaseShape& shape) { return !fits(shape); });
  std::vector<Case> cases;
  for (const AttentionCaseShape& shape : shapes)
    cases.push_back(make_case(fits.slots, dtype, shape));
  return cases;
}

std::vector<Case> edges(const Fits& fits, DType dtype, const Config& config) {
  std::vector<AttentionCaseShape> shapes;
  // Whose lengths are in query rows, whose in keys: the steps are those of groups of the other.
  const std::pair<std::string, bool> tiles[] = {
      {"BLOCK_Q", true}, {"BLOCK_K", false}, {"KEY_STEP", true}, {"QUERY_STEP", false}};
  for (const auto& [tile, of_rows] : tiles) {
    const std::uint32_t size = config.get(tile, 0);
    if (size == 0) continue;
    for (const int step : {-1, 0, 1}) {
      const std::int64_t length = std::max<std::int64_t>(1, static_cast<std::int64_t>(size) + step);
      AttentionSizes sizes{.q_len = 23, .kv_len = 29, .heads = 2, .kv_heads = 1};
      (of_rows ? sizes.q_len : sizes.kv_len) = length;
      shapes.push_back({.name = tile + (step < 0   ? "-1"
                                        : step > 0 ? "+1"
                                                   : ""),
                        .why = "the edge of a tile of this size",
                        .sizes = sizes,
                        .options = {{"causal", step != 0}},
                        .features = kLogSumExp});
    }
  }
  return to_cases(fits, dtype, std::move(shapes));
}

std::vector<AttentionCaseShape> prefill_shapes() {
  std::vector<AttentionCaseShape> shapes;
  for (const std::int64_t dim : {64, 128}) {
    for (const bool causal : {false, true}) {
      shapes.push_back(
          {.name = "b1_h8_s2048_d" + std::to_string(dim) + (causal ? "_causal" : ""),
           .why = "prefill",
           .sizes = {.q_len = 2048, .kv_len = 2048, .heads = 8, .kv_heads = 8, .head_dim = dim},
           .options = {{"causal", causal}}});
    }
  }
  shapes.push_back(
      {.name = "b1_h8_kv2_s1000_d96",
       .why = "grouped heads, a length that divides nothing",
       .sizes = {.q_len = 1000, .kv_len = 1000, .heads = 8, .kv_heads = 2, .head_dim = 96},
       .options = {{"causal", true}}});
  return shapes;
}

std::vector<AttentionCaseShape> forward_shapes() {
  std::vector<AttentionCaseShape> shapes = prefill_shapes();
  for (const std::int64_t dim : {64, 128}) {
    shapes.push_back(
        {.name = "b1_h8_q1_k8192_d" + std::to_string(dim),
         .why = "decoding: bound by memory",
         .sizes = {.q_len = 1, .kv_len = 8192, .heads = 8, .kv_heads = 8, .head_dim = dim}});
  }
  shapes.push_back(
      {.name = "b1_h32_kv8_q1_k8192_d128",
       .why = "decoding with grouped heads",
       .sizes = {.q_len = 1, .kv_len = 8192, .heads = 32, .kv_heads = 8, .head_dim = 128}});
  const OptionValue window = std::vector<std::int64_t>{256, 0};
  shapes.push_back({.name = "b1_h8_s4096_d64_window256",
                    .why = "a mask with a formula costs its visible tiles",
                    .sizes = {.q_len = 4096, .kv_len = 4096, .heads = 8, .kv_heads = 8},
                    .options = {{"causal", true}, {"sliding_window", window}}});
  return shapes;
}

}  // namespace

double forward_flops(const Problem& problem) {
  const auto& call = problem.as<AttentionProblem>();
  return 2 * static_cast<double>(call.batch * call.heads) * call.visible_pairs() *
         static_cast<double>(call.head_dim + call.value_dim);
}

Workload forward_workload(const Operation& operation) {
  const Fits fits = fits_of(operation);
  return {.cases =
              [fits](DType dtype) {
                std::vector<AttentionCaseShape> shapes = forward_cases();
                append(shapes, policy_cases());
                append(shapes, forward_only_cases());
                std::vector<Case> cases = to_cases(fits, dtype, std::move(shapes));
                cases.push_back(strided_case(fits.slots, dtype));
                cases.push_back(aligned_strided_case(fits.slots, dtype));
                if (fits.slots.kv_lengths != kNoOperand)
                  cases.push_back(odd_output_case(fits.slots, dtype));
                return cases;
              },
          .edge_cases = [fits](DType dtype,
                               const Config& config) { return edges(fits, dtype, config); },
          .benchmarks = [fits](DType dtype) { return to_cases(fits, dtype, forward_shapes()); },
          .fill = fill_attention,
          .expect = expect_attention,
          .flops = forward_flops};
}

Workload backward_workload(const Operation& operation) {
  const Fits fits = fits_of(operation);
  return {.cases =
              [fits](DType dtype) {
                std::vector<AttentionCaseShape> shapes = forward_cases();
                append(shapes, policy_cases());
                std::vector<Case> cases = to_cases(fits, dtype, std::move(shapes));
                cases.push_back(strided_case(fits.slots, dtype));
                return cases;
              },
          .edge_cases = [fits](DType dtype,
                               const Config& config) { return edges(fits, dtype, config); },
          .benchmarks = [fits](DType dtype) { return to_cases(fits, dtype, prefill_shapes()); },
          .fill = fill_attention,
          .expect = expect_attention_backward,
          .flops = [](const Problem& problem) { return 2.5 * forward_flops(problem); }};
}

}  // namespace tessera::operations::attention
