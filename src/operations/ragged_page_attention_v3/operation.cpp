// SPDX-License-Identifier: Apache-2.0
// ragged_page_attention_v3: the new keys and values go into their pages, then the queries attend.
#include <utility>

#include "base/system/out_of_memory.hpp"
#include "kernel/steps.hpp"
#include "operations/attention_core/launch.hpp"
#include "operations/attention_core/records.hpp"
#include "operations/attention_core/typed_call.hpp"
#include "operations/attention_core/validate.hpp"
#include "operations/ragged_page_attention_v3/fused.hpp"
#include "operations/ragged_page_attention_v3/scales.hpp"
#include "tessera/operations/ragged_page_attention_v3.hpp"

namespace tessera {
namespace operations::attention {
namespace {

void require_rank(const Problem& problem, std::size_t slot,
                  std::initializer_list<std::size_t> ranks) {
  require(problem, std::ranges::count(ranks, problem.spec(slot).shape.size()) > 0,
          operand_text(problem, slot) + " must be " + problem.operation->operands[slot].shape);
}

// Values in a cache of their own.
void check_pools(const Problem& problem) {
  const Shape &keys = problem.spec(kKeys).shape, &values = problem.spec(kValues).shape;
  require_rank(problem, kValueCache, {4});
  const Shape &cache = problem.spec(kCache).shape, &other = problem.spec(kValueCache).shape;
  require(problem, cache.size() == 4 && cache[2] == keys[1] && cache[3] == keys[2],
          operand_text(problem, kCache) + " must be [pages, page_size, kv_heads, head_dim] of " +
              operand_text(problem, kKeys) + " beside value_cache");
  require(problem, other == Shape{cache[0], cache[1], values[1], values[2]},
          operand_text(problem, kValueCache) +
              " must be [pages, page_size, kv_heads, value_dim] of " +
              operand_text(problem, kCache) + " and " + operand_text(problem, kValues));
  require(problem, problem.has(kScale) == problem.has(kValueScale),
          "takes kv_scale and value_scale together");
  if (problem.has(kValueScale)) require_rank(problem, kValueScale, {3});
}

void check_cache(const Problem& problem) {
  const TensorSpec& spec = problem.spec(kCache);
  const Shape &cache = spec.shape, &keys = problem.spec(kKeys).shape;
  require_rank(problem, kCache, {4, 5});
  const bool five = cache.size() == 5;
  if (problem.has(kValueCache)) {
    check_pools(problem);
  } else {
    const bool fits = five ? cache[2] * cache[3] >= 2 * keys[1] && cache[4] >= keys[2]
                           : cache[2] == 2 * keys[1] && cache[3] == keys[2];
    require(problem, fits,
            operand_text(problem, kCache) + " and " + operand_text(problem, kKeys) +
                " differ in heads or features; heads are those of keys and values by turns");
    require(problem, !problem.has(kValueScale),
            "value_scale needs value_cache beside it; kv_scale has the scales of both");
  }
  require(problem, !five || cache[2] <= 1 || spec.strides[2] == cache[3] * spec.strides[3],
          operand_text(problem, kCache) + " must count its heads over both axes by one stride");
  const FusedScales scales = scales_of(problem);
  require(problem, !scales.of_codes || scales.key || scales.value,
          "kv_cache holds codes and needs kv_scale, or k_scale and v_scale");
  require(problem, !is_code(spec.dtype) || scales.of_codes || (!scales.key && !scales.value),
          "takes kv_scale, or k_scale and v_scale, and not both");
  if (problem.has(kScale)) require_rank(problem, kScale, {3});
}

void validate(Problem& problem) {
  problem.dtype = problem.spec(kQueries).dtype;
  for (const std::size_t slot : {kQueries, kKeys, kValues}) require_rank(problem, slot, {3});
  const Shape &queries = problem.spec(kQueries).shape, &keys = problem.spec(kKeys).shape,
              &values = problem.spec(kValues).shape;
  const bool apart = problem.has(kValueCache);
  require(problem, keys[0] == values[0] && keys[1] == values[1] && (apart || keys[2] == values[2]),
          operand_text(problem, kKeys) + " and " + operand_text(problem, kValues) +
              (apart ? " must have the same rows and kv_heads" : " must have one shape"));
  require(problem, keys[0] == queries[0] && keys[2] == queries[2],
          operand_text(problem, kQueries) + " and " + operand_text(problem, kKeys) +
              " must have the same rows and head_dim");
  for (const std::size_t slot : {kKeys, kValues}) {
    require(problem, problem.spec(slot).dtype == problem.dtype,
            operand_text(problem, slot) + " must have the dtype of queries");
  }
  require_contiguous_rows(problem, kQueries);
  check_cache(problem);
  require_rank(problem, kLengths, {1});
  require_rank(problem, kTables, {1, 2});
  const std::int64_t sequences = problem.spec(kLengths).shape[0];
  const Shape& tables = problem.spec(kTables).shape;
  require(
      problem,
      sequences > 0 && (tables.size() == 2 ? tables[0] == sequences : tables[0] % sequences == 0),
      operand_text(problem, kTables) + " must have a line for each of the sequences of " +
          operand_text(problem, kLengths));
  require(problem, problem.spec(kStarts).shape == Shape{sequences + 1},
          operand_text(problem, kStarts) + " must be [sequences + 1]");
  require(problem, problem.spec(kDistribution).shape == Shape{3},
          operand_text(problem, kDistribution) + " must be [3]");
  problem.infer_output(kOutput, problem.dtype, {queries[0], queries[1], values[2]});
  problem.infer_output(kLogSumExp, DType::kF32, {queries[1], queries[0]});
  problem.key = "append " + kernel::problem_of(append_step(problem), problem).key + ";attend " +
                kernel::problem_of(attend_step(problem), problem).key;
  problem.set_details(FusedSlot{});
}

Way write_and_attend() {
  Variant variant;
  variant.name = "write_and_attend";
  variant.idea = "append_to_cache, then ragged_page_attention, each as it is chosen";
  variant.dtypes = kStorage;
  variant.passes = fused_passes();
  variant.steps = [](const Problem& problem, const Config&) {
    return std::vector<Step>{LaunchStep{.pass = "begin"}, append_step(problem),
                             attend_step(problem), LaunchStep{.pass = "scaled_outputs"}};
  };
  variant.scratch_bytes = [](const Problem& problem, const Config&) {
    return scaled_bytes(problem);
  };
  variant.rejects = [](const Problem& problem, const Config&, const DeviceProfile& profile) {
    return rejects_far_scaled(problem, profile);
  };
  variant.space = [](const Problem&, const DeviceProfile&) {
    return std::vector<Config>{Config{}};
  };
  return {.variant = std::move(variant),
          .rule = {.why = "the write is small beside what is read",
                   .when = [](const Problem&, const DeviceProfile&) { return true; },
                   .config = [](const Problem&, const DeviceProfile&) { return Config{}; }}};
}

Operand index(std::string name, std::string shape, std::string doc) {
  return {.name = std::move(name),
          .shape = std::move(shape),
          .dtypes = {DType::kI32},
          .doc = std::move(doc)};
}

Operation described() {
  Operation operation;
  operation.name = "ragged_page_attention_v3";
  operation.summary = "writes new keys and values into pages, and attends over them";
  operation.formula =
      "kv_cache[block_tables[n, t / page_size], t % page_size, 2 g or 2 g + 1] = keys or "
      "values[row, g], t = kv_lens[n] - q_len[n] + row - query_start_loc[n]; then "
      "ragged_page_attention";
  operation.operands = {
      input("queries", "[rows, heads, head_dim]", "one sequence after the other"),
      input("keys", "[rows, kv_heads, head_dim]", "of the tokens of the queries"),
      input("values", "[rows, kv_heads, value_dim]",
            "the same; value_dim is head_dim but with value_cache"),
      stored("kv_cache", "[pages, page_size, 2 kv_heads, head_dim]",
             "changed in place; head 2 g is that of keys, 2 g + 1 that of values; also [pages, "
             "page_size, heads / n, n, dim] with more heads and features than there are; of keys "
             "alone, [pages, page_size, kv_heads, head_dim], beside value_cache"),
      index("kv_lens", "[sequences]", "how many tokens each sequence has, the new ones included"),
      index("block_tables", "[sequences, max_blocks]",
            "which page holds tokens page_size n to page_size (n + 1) - 1; also in one line"),
      index("query_start_loc", "[sequences + 1]", "where the rows of each sequence begin"),
      index("distribution", "[3]",
            "ends of the sequences that decode, that are prefilled, and of all; what stands behind "
            "is not looked at"),
      output("output", "[rows, heads, value_dim]", "rows without tokens or sequence are 0"),
      {.name = "log_sum_exp",
       .role = Role::kOutput,
       .optional = true,
       .shape = "[heads, rows]",
       .dtypes = {DType::kF32},
       .doc = "natural logarithm; -inf for rows without tokens"},
      sinks(),
      scale("kv_scale", "kv_cache", "[pages, page_size, 2 kv_heads]"),
      stored("value_cache", "[pages, page_size, kv_heads, value_dim]",
             "changed in place: values apart from keys"),
      scale("value_scale", "value_cache", "[pages, page_size, kv_heads]")};
  for (const std::size_t slot : {kCache, kScale, kValueCache, kValueScale})
    operation.operands[slot].role = Role::kInOut;
  operation.operands[kValueCache].optional = true;
  for (const std::size_t slot : {kScale, kValueScale})
    operation.operands[slot].doc +=
        "; one for each token and head is made and written, others are read";
  operation.types = stored_types("queries", {"kv_cache", "value_cache"});
  operation.options = {
      {.name = "softmax_scale",
       .fallback = {},
       .type = "float",
       .doc = "of the logits; default head_dim^-1/2"},
      {.name = "q_scale",
       .fallback = {},
       .type = "float",
       .doc = "> 0: queries become queries / q_scale in the type of kv_cache, "
              "and logits q_scale times as large"},
      {.name = "k_scale",
       .fallback = {},
       .type = "float",
       .doc = "> 0: what the keys in kv_cache times it mean; of codes in place of "
              "kv_scale, and new keys are divided by it"},
      {.name = "v_scale", .fallback = {}, .type = "float", .doc = "> 0: the same of values"},
      soft_cap(),
      token_window(),
      splits()};
  operation.errors = attend_errors();
  operation.validate = validate;
  operation.reference = reference_fused;
  operation.raises = raises_of_fused;
  operation.writes = written_by_fused;
  add_ways(operation, list_of(write_and_attend()));
  operation.workload = fused_workload();
  return operation;
}

}  // namespace

std::vector<Operation> ragged_page_attention_v3() { return list_of(described()); }

}  // namespace operations::attention

using operations::attention::add;

Tensor ragged_page_attention_v3(const Executor& on, const Tensor& queries, const Tensor& keys,
                                const Tensor& values, const Tensor& kv_cache, const Tensor& kv_lens,
                                const Tensor& block_tables, const Tensor& query_start_loc,
                                const Tensor& distribution,
                                const RaggedPageAttentionV3Options& options) try {
  Tensors tensors;
  add(tensors, "queries", queries);
  add(tensors, "keys", keys);
  add(tensors, "values", values);
  add(tensors, "kv_cache", kv_cache);
  add(tensors, "kv_lens", kv_lens);
  add(tensors, "block_tables", block_tables);
  add(tensors, "query_start_loc", query_start_loc);
  add(tensors, "distribution", distribution);
  add(tensors, "softmax_aux", options.softmax_aux);
  add(tensors, "kv_scale", options.kv_scale);
  add(tensors, "value_cache", options.value_cache);
  add(tensors, "value_scale", options.value_scale);
  Options named = operations::attention::paged_options(options);
  for (const auto& [name, value] :
       {std::pair{"q_scale", options.q_scale}, std::pair{"k_scale", options.k_scale},
        std::pair{"v_scale", options.v_scale}}) {
    if (value) named[name] = static_cast<double>(*value);
  }
  return on.run("ragged_page_attention_v3", tensors, std::move(named)).at("output");
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
