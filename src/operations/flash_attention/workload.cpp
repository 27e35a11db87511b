// SPDX-License-Identifier: Apache-2.0
// Cases, inputs and error bounds of flash attention, for tests, benchmarks and the tuner alike.
#include <algorithm>
#include <cmath>
#include <random>

#include "base/parallel.hpp"
#include "operations/flash_attention/reference.hpp"

namespace tessera::operations {
namespace {

constexpr double kUnitF32 = 0x1p-24;

double storage_unit(DType dtype) {
  return dtype == DType::kF16 ? 0x1p-11 : dtype == DType::kBF16 ? 0x1p-8 : kUnitF32;
}

struct Sizes {
  std::int64_t batch = 1, q_len = 1, kv_len = 1, heads = 1, kv_heads = 1, head_dim = 64,
               value_dim = 0;
};

// A dense [batch, rows, heads, dim] operand.
TensorSpec dense(DType dtype, std::int64_t batch, std::int64_t rows, std::int64_t heads,
                 std::int64_t dim) {
  return TensorSpec::contiguous(dtype, {batch, rows, heads, dim});
}

// The same shape as a view of [batch, heads, rows, dim], with `gap` unused elements after each row.
TensorSpec by_heads(DType dtype, std::int64_t batch, std::int64_t rows, std::int64_t heads,
                    std::int64_t dim, std::int64_t gap) {
  const std::int64_t row = dim + gap;
  return {.dtype = dtype,
          .shape = {batch, rows, heads, dim},
          .strides = {heads * rows * row, row, rows * row, 1},
          .offset = 3};
}

Case make_case(std::string name, std::string why, DType dtype, const Sizes& s, Options options = {},
               bool with_lse = true) {
  const std::int64_t value_dim = s.value_dim == 0 ? s.head_dim : s.value_dim;
  Case result{.name = std::move(name), .why = std::move(why)};
  result.operands = {dense(dtype, s.batch, s.q_len, s.heads, s.head_dim),
                     dense(dtype, s.batch, s.kv_len, s.kv_heads, s.head_dim),
                     dense(dtype, s.batch, s.kv_len, s.kv_heads, value_dim), std::nullopt,
                     std::nullopt};
  if (with_lse)
    result.operands[kLogSumExp] = TensorSpec::contiguous(DType::kF32, {s.batch, s.heads, s.q_len});
  result.options = std::move(options);
  return result;
}

Case strided_case(DType dtype) {
  Case result{
      .name = "strided",
      .why = "[batch, heads, seq, dim] views with gaps and odd offsets; output in such a view"};
  result.operands = {by_heads(dtype, 2, 37, 6, 40, 5), by_heads(dtype, 2, 53, 3, 40, 1),
                     by_heads(dtype, 2, 53, 3, 24, 0), by_heads(dtype, 2, 37, 6, 24, 7),
                     TensorSpec::contiguous(DType::kF32, {2, 6, 37})};
  result.options = {{"causal", true}};
  return result;
}

std::vector<Case> cases(DType dtype) {
  const OptionValue window32 = std::vector<std::int64_t>{3, 2};
  const OptionValue window00 = std::vector<std::int64_t>{0, 0};
  const OptionValue bottom_right = std::string("bottom_right");
  const auto one = [&](auto... arguments) { return make_case(arguments...); };
  std::vector<Case> table{
      one("single", "one row, one key: the softmax is 1", dtype, Sizes{.head_dim = 16}),
      one("odd", "lengths and dims that divide no tile, grouped heads", dtype,
          Sizes{.batch = 2, .q_len = 17, .kv_len = 33, .heads = 4, .kv_heads = 2, .head_dim = 40}),
      one("even", "lengths that are multiples of every tile", dtype,
          Sizes{.q_len = 128, .kv_len = 128, .heads = 2, .kv_heads = 2, .head_dim = 64}, Options{},
          false),
      one("causal", "square causal mask over several tiles", dtype,
          Sizes{.q_len = 131, .kv_len = 131, .heads = 2, .kv_heads = 1, .head_dim = 64},
          Options{{"causal", true}}),
      one("causal_top_left", "causal, more keys than rows, top-left: the last keys are never seen",
          dtype, Sizes{.q_len = 33, .kv_len = 77, .heads = 2, .kv_heads = 2, .head_dim = 64},
          Options{{"causal", true}}),
      one("causal_bottom_right", "causal, more keys than rows, bottom-right: decoding", dtype,
          Sizes{.q_len = 33, .kv_len = 77, .heads = 2, .kv_heads = 2, .head_dim = 64},
          Options{{"causal", true}, {"causal_alignment", bottom_right}}),
      one("causal_masked_rows",
          "bottom-right with fewer keys than rows: the first rows see nothing", dtype,
          Sizes{.q_len = 70, .kv_len = 19, .heads = 1, .kv_heads = 1, .head_dim = 64},
          Options{{"causal", true}, {"causal_alignment", bottom_right}}),
      one("window", "a narrow window: most tiles are skipped on both sides", dtype,
          Sizes{.q_len = 200, .kv_len = 200, .heads = 1, .kv_heads = 1, .head_dim = 64},
          Options{{"sliding_window", window32}}),
      one("window_causal", "window and causal together", dtype,
          Sizes{.q_len = 90, .kv_len = 90, .heads = 2, .kv_heads = 1, .head_dim = 64},
          Options{{"sliding_window", std::vector<std::int64_t>{30, 10}}, {"causal", true}}),
      one("window_diagonal", "window (0, 0): each row sees itself, the output is the value row",
          dtype, Sizes{.q_len = 45, .kv_len = 40, .heads = 1, .kv_heads = 1, .head_dim = 64},
          Options{{"sliding_window", window00}}),
      one("soft_cap", "tanh on the logits, before the mask", dtype,
          Sizes{.q_len = 40, .kv_len = 70, .heads = 2, .kv_heads = 1, .head_dim = 64},
          Options{{"logits_soft_cap", 5.0}, {"causal", true}}),
      one("soft_cap_saturated", "logits far beyond the cap: tanh must saturate and not overflow",
          dtype, Sizes{.q_len = 20, .kv_len = 30, .heads = 1, .kv_heads = 1, .head_dim = 64},
          Options{{"logits_soft_cap", 2.0}, {"softmax_scale", 400.0}}),
      one("scale_zero", "scale 0: the mean of the values", dtype,
          Sizes{.q_len = 9, .kv_len = 50, .heads = 1, .kv_heads = 1, .head_dim = 64},
          Options{{"softmax_scale", 0.0}}),
      one("scale_negative", "a negative scale reverses the order of the keys", dtype,
          Sizes{.q_len = 9, .kv_len = 50, .heads = 1, .kv_heads = 1, .head_dim = 64},
          Options{{"softmax_scale", -0.3}}),
      one("no_keys", "kv_len 0: output 0, log-sum-exp -inf", dtype,
          Sizes{.q_len = 5, .kv_len = 0, .heads = 2, .kv_heads = 1, .head_dim = 64}),
      one("no_rows", "q_len 0: nothing to write", dtype,
          Sizes{.q_len = 0, .kv_len = 5, .heads = 2, .kv_heads = 1, .head_dim = 64}),
      one("dim_1", "the smallest dims", dtype,
          Sizes{
              .q_len = 21, .kv_len = 35, .heads = 2, .kv_heads = 2, .head_dim = 1, .value_dim = 3}),
      one("dims_differ", "value_dim > head_dim, neither a power of two", dtype,
          Sizes{.q_len = 21,
                .kv_len = 35,
                .heads = 2,
                .kv_heads = 2,
                .head_dim = 72,
                .value_dim = 100},
          Options{{"causal", true}}),
      one("dim_512", "the largest dims", dtype,
          Sizes{.q_len = 19, .kv_len = 45, .heads = 1, .kv_heads = 1, .head_dim = 512},
          Options{{"causal", true}}),
      strided_case(dtype),
  };
  const auto add = [&](std::string data, std::string why) {
    Case extra = make_case(data, std::move(why), dtype,
                           {.q_len = 50, .kv_len = 150, .heads = 2, .kv_heads = 1, .head_dim = 64});
    extra.data = std::move(data);
    table.push_back(std::move(extra));
  };
  add("ascending", "scores grow with the key: the running maximum changes in every tile");
  add("needle", "one key takes all the weight, the last one among them");
  add("constant_value", "equal value rows: the output is that row whatever the weights");
  Case hidden = make_case("hidden_nan", "NaN in keys that no row sees must not show", dtype,
                          {.q_len = 20, .kv_len = 75, .heads = 2, .kv_heads = 1, .head_dim = 64},
                          {{"causal", true}});
  hidden.data = "hidden_nan";
  table.push_back(std::move(hidden));
  return table;
}

std::vector<Case> edge_cases(DType dtype, const Config& config) {
  std::vector<Case> table;
  for (const std::string tile : {"BLOCK_Q", "BLOCK_K"}) {
    const std::uint32_t size = config.get(tile, 0);
    if (size == 0) continue;
    for (const int step : {-1, 0, 1}) {
      const std::int64_t length = std::max<std::int64_t>(1, static_cast<std::int64_t>(size) + step);
      Sizes sizes{.q_len = 23, .kv_len = 29, .heads = 2, .kv_heads = 1, .head_dim = 64};
      (tile == "BLOCK_Q" ? sizes.q_len : sizes.kv_len) = length;
      table.push_back(make_case(tile + (step < 0   ? "-1"
                                        : step > 0 ? "+1"
                                                   : ""),
                                "the edge of a tile of this size", dtype, sizes,
                                {{"causal", step != 0}}));
    }
  }
  return table;
}

std::vector<Case> benchmarks(DType dtype) {
  std::vector<Case> table;
  for (const std::int64_t dim : {64, 128}) {
    for (const bool causal : {false, true}) {
      table.push_back(make_case(
          "b1_h8_s2048_d" + std::to_string(dim) + (causal ? "_causal" : ""), "prefill", dtype,
          {.q_len = 2048, .kv_len = 2048, .heads = 8, .kv_heads = 8, .head_dim = dim},
          {{"causal", causal}}, false));
    }
  }
  table.push_back(
      make_case("b1_h8_kv2_s1000_d96", "grouped heads, a length that divides nothing", dtype,
                {.q_len = 1000, .kv_len = 1000, .heads = 8, .kv_heads = 2, .head_dim = 96},
                {{"causal", true}}, false));
  return table;
}

void fill(const Problem& problem, const Case& shape, std::span<HostTensor> tensors) {
  const auto& call = problem.as<FlashAttentionProblem>();
  for (const std::size_t slot : {kQuery, kKey, kValue}) {
    std::mt19937_64 generator(shape.seed * 1000003 + slot);
    std::normal_distribution<double> normal;
    const TensorSpec& spec = problem.spec(slot);
    std::vector<double> values(static_cast<std::size_t>(spec.elements()));
    for (double& value : values) value = normal(generator);
    const std::int64_t heads = spec.shape[2], dim = spec.shape[3];
    for (std::size_t at = 0; at < values.size(); ++at) {
      const auto flat = static_cast<std::int64_t>(at);
      const std::int64_t row = flat / (heads * dim) % spec.shape[1];
      const bool last_key = row + 1 == call.kv_len;
      if (shape.data == "ascending" && slot == kQuery) values[at] = 1;
      if (shape.data == "ascending" && slot == kKey)
        values[at] = 4.0 * static_cast<double>(row) / static_cast<double>(dim);
      if (shape.data == "needle" && slot == kQuery) values[at] = 1;
      if (shape.data == "needle" && slot == kKey && last_key) values[at] = 4;
      if (shape.data == "constant_value" && slot == kValue)
        values[at] = 0.25 * static_cast<double>(flat % dim % 7) - 0.5;
      const bool hidden = row > call.q_len - 1 + call.band_high;
      if (shape.data == "hidden_nan" && slot != kQuery && hidden) values[at] = std::nan("");
    }
    tensors[slot].write(values);
  }
}

// Error bounds by the analysis of one pass with float accumulation: the storage rounding of the
// output, and 8 float roundings that grow with the magnitude of the scores and the square root of
// the number of keys.
std::vector<Expectation> expect(const Problem& problem, std::span<HostTensor> tensors,
                                const DeviceProfile& profile, double max_flops) {
  const auto& call = problem.as<FlashAttentionProblem>();
  const AttentionOracle oracle(problem, tensors);
  const double output_unit = storage_unit(problem.dtype);
  const double smallest = problem.dtype == DType::kF16 ? 0x1p-24 : 0x1p-126;
  const double lse_factor =
      profile.backend == Backend::kVulkan ? 16 : 8;  // Vulkan's exp may be less exact

  const std::int64_t rows = call.batch * call.heads * call.q_len;
  const double row_flops = 4 * static_cast<double>(call.kv_len) *
                           static_cast<double>(call.head_dim + call.value_dim) / 2;
  const double affordable = max_flops / std::max(row_flops, 1.0);
  std::vector<std::int64_t> chosen;
  if (static_cast<double>(rows) <= affordable) {
    for (std::int64_t at = 0; at < rows; ++at) chosen.push_back(at);
  } else {
    std::mt19937_64 generator(1);
    const auto count = std::max<std::int64_t>(static_cast<std::int64_t>(affordable), 64);
    for (std::int64_t n = 0; n < count; ++n) {
      chosen.push_back(static_cast<std::int64_t>(generator() % static_cast<std::uint64_t>(rows)));
    }
    std::ranges::sort(chosen);
  }

  const auto dim = static_cast<std::size_t>(call.value_dim);
  Expectation output{.slot = kOutput}, log_sum_exp{.slot = kLogSumExp};
  for (Expectation* expectation : {&output, &log_sum_exp}) {
    const std::size_t count = chosen.size() * (expectation == &output ? dim : 1);
    expectation->elements.resize(count);
    expectation->values.resize(count);
    expectation->bounds.resize(count);
  }
  parallel_for(chosen.size(), [&](std::size_t n) {
    const std::int64_t at = chosen[n];
    const std::int64_t i = at % call.q_len, head = at / call.q_len % call.heads,
                       batch = at / call.q_len / call.heads;
    const AttentionRow row = oracle.row(batch, head, i);
    const double growth = row.score_magnitude + std::sqrt(static_cast<double>(row.keys)) + 8;
    for (std::size_t d = 0; d < dim; ++d) {
      const auto column = static_cast<Eigen::Index>(d);
      const std::size_t index = n * dim + d;
      output.elements[index] =
          static_cast<std::size_t>((batch * call.q_len + i) * call.heads + head) * dim + d;
      output.values[index] = row.output[column];
      output.bounds[index] = output_unit * std::fabs(row.output[column]) +
                             8 * kUnitF32 * row.magnitude[column] * growth + smallest;
    }
    log_sum_exp.elements[n] = static_cast<std::size_t>(at);
    log_sum_exp.values[n] = row.log_sum_exp;
    log_sum_exp.bounds[n] =
        row.keys == 0
            ? 0
            : lse_factor * kUnitF32 * (std::fabs(row.log_sum_exp) + row.score_magnitude + 8);
  });
  std::vector<Expectation> expectations{std::move(output)};
  if (problem.has(kLogSumExp)) expectations.push_back(std::move(log_sum_exp));
  return expectations;
}

double flops(const Problem& problem) {
  const auto& call = problem.as<FlashAttentionProblem>();
  return 2 * static_cast<double>(call.batch * call.heads) * call.visible_pairs() *
         static_cast<double>(call.head_dim + call.value_dim);
}

}  // namespace

Workload flash_attention_workload() {
  return {.cases = cases,
          .edge_cases = edge_cases,
          .benchmarks = benchmarks,
          .fill = fill,
          .expect = expect,
          .flops = flops};
}

}  // namespace tessera::operations
