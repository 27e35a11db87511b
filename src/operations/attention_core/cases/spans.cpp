// SPDX-License-Identifier: Apache-2.0
// Made-up calls of one query for each sequence, with the keys that it sees.
#include <algorithm>
#include <limits>
#include <random>

#include "base/system/parallel.hpp"
#include "operations/attention_core/cases/workload.hpp"
#include "operations/common/cases.hpp"

namespace tessera::operations::attention {
namespace {

// Keys that no row sees are NaN. Data: "normal", all keys are seen; "ragged", of all kinds;
// "hostile", anything in starts and ends.
struct SpanCaseShape {
  std::string name, why;
  AttentionSizes sizes{.batch = 5, .kv_len = 301, .heads = 8, .kv_heads = 2};
  Options options{};
  std::uint32_t features = 0;  // kSinks, kHeadSinks, kLogSumExp, kBias, kSharedBias
  std::string data = "ragged";
  std::uint64_t seed = 1;
  bool row_axis = false;
};

Case make_span_case(const AttentionSlots& slots, const StorageTypes& types,
                    const SpanCaseShape& shape) {
  const DType dtype = types.dtype(), stored = stored_dtype(types);
  const AttentionSizes& s = shape.sizes;
  const std::int64_t value_dim = s.value_dim == 0 ? s.head_dim : s.value_dim;
  Case result{.name = shape.name,
              .why = shape.why,
              .options = shape.options,
              .data = shape.data,
              .seed = shape.seed};
  const auto set = [&](std::size_t slot, DType type, Shape dims) {
    result.operands.resize(std::max(result.operands.size(), slot + 1));
    result.operands[slot] = TensorSpec::contiguous(type, std::move(dims));
  };
  set(slots.query, dtype,
      shape.row_axis ? Shape{s.batch, 1, s.heads, s.head_dim}
                     : Shape{s.batch, s.heads, s.head_dim});
  set(slots.key, stored, {s.batch, s.kv_len, s.kv_heads, s.head_dim});
  set(slots.value, stored, {s.batch, s.kv_len, s.kv_heads, value_dim});
  set(slots.sequence_start, DType::kI32, {s.batch});
  set(slots.sequence_end, DType::kI32, {s.batch});
  if ((shape.features & kSinks) != 0) set(slots.sinks, DType::kF32, {2});
  if ((shape.features & kHeadSinks) != 0) set(slots.sinks, dtype, {s.kv_heads, 3});
  if ((shape.features & kBias) != 0) set(slots.position_bias, dtype, {s.heads, 70});
  if ((shape.features & kSharedBias) != 0) set(slots.position_bias, DType::kF32, {s.kv_len + 9});
  if ((shape.features & kLogSumExp) != 0) {
    set(slots.log_sum_exp, DType::kF32,
        shape.row_axis ? Shape{s.batch, s.heads, 1} : Shape{s.batch, s.heads});
  }
  for (const auto& [slot, heads] :
       {std::pair{slots.key_scale, s.kv_heads}, std::pair{slots.value_scale, std::int64_t{1}}}) {
    if (is_code(stored)) set(slot, DType::kF32, {s.batch, s.kv_len, heads});
  }
  return result;
}

double any_number(std::mt19937_64& random, std::int64_t near) {
  const double kinds[] = {-1, static_cast<double>(near + 1),
                          double{std::numeric_limits<std::int32_t>::min()},
                          double{std::numeric_limits<std::int32_t>::max()}};
  return kinds[random() % std::size(kinds)];
}

void fill_spans(const Problem& problem, const Case& shape, std::span<HostTensor> tensors) {
  const auto& call = problem.as<AttentionProblem>();
  const AttentionSlots& slots = call.slots;
  const auto batches = static_cast<std::size_t>(call.batch);
  std::vector<double> starts(batches, 0), ends(batches, static_cast<double>(call.kv_len));
  std::mt19937_64 random(shape.seed * 1000003 + 29);
  const auto below = [&](std::int64_t end) {
    return static_cast<double>(random() %
                               static_cast<std::uint64_t>(std::max<std::int64_t>(end, 1)));
  };
  for (std::size_t n = 0; n < batches && shape.data != "normal"; ++n) {
    if (n % 4 != 0) starts[n] = below(call.kv_len);  // all, some, none, one
    if (n % 4 == 1) ends[n] -= below(call.kv_len - static_cast<std::int64_t>(starts[n]));
    if (n % 4 == 2) ends[n] = starts[n];
    if (n % 4 == 3) ends[n] = std::min(ends[n], starts[n] + 1);
    if (shape.data != "hostile") continue;
    if (random() % 3 == 0) starts[n] = any_number(random, call.kv_len);
    if (random() % 3 == 0) ends[n] = any_number(random, call.kv_len);
  }
  if (problem.has(slots.sequence_start)) tensors[slots.sequence_start].write(starts);
  if (problem.has(slots.sequence_end)) tensors[slots.sequence_end].write(ends);

  for (const std::size_t slot :
       {slots.query, slots.key, slots.value, slots.sinks, slots.position_bias}) {
    if (!problem.has(slot)) continue;
    const bool keys = slot == slots.key || slot == slots.value;
    std::vector<double> values(static_cast<std::size_t>(problem.spec(slot).elements()));
    const std::size_t lines = keys ? batches : 1, line = lines == 0 ? 0 : values.size() / lines;
    const std::uint64_t seed = shape.seed * 1000003 + 31 * slot;
    const double range = keys && call.has_codes() ? typical_code(call.stored) : 1;
    parallel_for(lines, [&](std::size_t n) {
      std::mt19937_64 own(seed + n);
      std::normal_distribution<double> distribution;
      const double room = static_cast<double>(call.kv_len);
      const double end = keys ? std::clamp(ends[n], std::clamp(starts[n], 0.0, room), room) : 0;
      const double start = keys ? std::max(std::clamp(starts[n], 0.0, room),
                                           end - 1 - static_cast<double>(call.window_left))
                                : 0;
      for (std::size_t i = 0; i < line; ++i) {
        const auto key =
            static_cast<double>(keys ? i / (line / static_cast<std::size_t>(call.kv_len)) : 0);
        const double value = distribution(own);
        values[n * line + i] =
            range * (keys && (key < start || key >= end) ? std::numeric_limits<double>::quiet_NaN()
                                                         : value);
      }
    });
    tensors[slot].write(values);
  }
  for (const std::size_t slot : {slots.key_scale, slots.value_scale}) {
    if (!problem.has(slot)) continue;
    std::vector<double> scales(static_cast<std::size_t>(problem.spec(slot).elements()));
    std::uniform_real_distribution<double> distribution(0.5, 1.5);
    for (double& value : scales) value = distribution(random) / typical_code(call.stored);
    tensors[slot].write(scales);
  }
}

std::vector<Case> span_cases(const AttentionSlots& slots, const StorageTypes& types) {
  const OptionValue window = std::vector<std::int64_t>{29, 4};
  std::vector<SpanCaseShape> shapes{
      {.name = "spans",
       .why = "all keys, some, none and one, NaN in all others",
       .features = kLogSumExp},
      {.name = "row_axis",
       .why = "queries with an axis of one row",
       .features = kLogSumExp,
       .row_axis = true},
      {.name = "policies",
       .why = "a window that ends at the last key, a cap, a scale and sinks",
       .options = {{"sliding_window", window}, {"logits_soft_cap", 5.0}, {"softmax_scale", 0.3}},
       .features = kHeadSinks | kLogSumExp},
      {.name = "sinks", .why = "rows that see nothing but sinks", .features = kSinks | kLogSumExp},
      {.name = "splits",
       .why = "a pinned number of splits",
       .options = {{"num_splits", std::int64_t{3}}},
       .features = kHeadSinks | kLogSumExp},
      {.name = "position_bias",
       .why = "biases of the first rows, some of which are hidden, behind a cap, with sinks",
       .options = {{"logits_soft_cap", 2.0}},
       .features = kBias | kSinks | kLogSumExp},
      {.name = "long_position_bias",
       .why = "biases of more rows than there are, which all heads share, in parts",
       .options = {{"num_splits", std::int64_t{2}}},
       .features = kSharedBias | kLogSumExp},
      {.name = "odd",
       .why = "a head_dim that divides no vector, one head",
       .sizes = {.batch = 4, .kv_len = 50, .heads = 1, .kv_heads = 1, .head_dim = 7}},
      {.name = "hostile",
       .why = "anything in sequence_start and sequence_end",
       .sizes = {.batch = 17, .kv_len = 77, .heads = 8, .kv_heads = 2},
       .features = kLogSumExp,
       .data = "hostile"}};
  std::vector<Case> cases;
  for (SpanCaseShape& shape : shapes)
    if (shape.name == "odd" && is_packed(stored_dtype(types))) shape.sizes.head_dim = 6;
  for (const SpanCaseShape& shape : shapes) cases.push_back(make_span_case(slots, types, shape));
  Case strided =
      make_span_case(slots, types, {.name = "strided", .why = "heads before rows in memory"});
  const DType stored = stored_dtype(types);
  for (const std::size_t slot : {slots.key, slots.value})
    strided.operands[slot] = strided_view(stored, strided.operands[slot]->shape, {0, 2, 1}, 8, 16);
  cases.push_back(strided);
  return cases;
}

std::vector<Case> span_benchmarks(const AttentionSlots& slots, const StorageTypes& types) {
  return {make_span_case(
      slots, types,
      {.name = "b8_h32_kv8_k4096_d128",
       .why = "decoding: bound by memory",
       .sizes = {.batch = 8, .kv_len = 4096, .heads = 32, .kv_heads = 8, .head_dim = 128},
       .data = "normal"})};
}

}  // namespace

Workload ragged_decode_workload(const Operation& operation) {
  const AttentionSlots slots = attention_slots(operation.operands);
  return {
      .cases = [slots](const StorageTypes& types) { return span_cases(slots, types); },
      .benchmarks = [slots](const StorageTypes& types) { return span_benchmarks(slots, types); },
      .fill = fill_spans,
      .expect = expect_attention,
      .flops = forward_flops};
}

}  // namespace tessera::operations::attention
