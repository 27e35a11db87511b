// SPDX-License-Identifier: Apache-2.0
// Made-up calls: those of ragged_page_attention, whose last tokens are written by the call.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <string>

#include "base/tensors/byte_range.hpp"
#include "kernel/steps.hpp"
#include "operations/common/codes.hpp"
#include "operations/common/numerics.hpp"
#include "operations/ragged_page_attention_v3/fused.hpp"
#include "operations/ragged_page_attention_v3/scales.hpp"

namespace tessera::operations::attention {
namespace {

constexpr std::size_t kChanged[] = {kCache, kScale, kValueCache, kValueScale};

// Where an operand of ragged_page_attention is here; the number of sequences is in `distribution`.
const std::map<std::string, FusedSlot>& slots_by_name() {
  static const auto* const slots = new std::map<std::string, FusedSlot>{
      {"queries", kQueries},        {"kv_pages", kCache},         {"context_lens", kLengths},
      {"block_tables", kTables},    {"query_start_loc", kStarts}, {"output", kOutput},
      {"log_sum_exp", kLogSumExp},  {"softmax_aux", kSinks},      {"kv_scale", kScale},
      {"value_pages", kValueCache}, {"value_scale", kValueScale}};
  return *slots;
}

const Operation& attending() { return find_operation("ragged_page_attention"); }

Case with_new_tokens(const Case& from) {
  Case result = from;
  result.operands.assign(kValueScale + 1, std::nullopt);
  for (std::size_t slot = 0; slot < from.operands.size(); ++slot) {
    const auto at = slots_by_name().find(attending().operands[slot].name);
    if (at != slots_by_name().end()) result.operands[at->second] = from.operands[slot];
  }
  const TensorSpec& queries = *result.operands[kQueries];
  const Shape& cache = result.operands[kCache]->shape;
  const auto& value_cache = result.operands[kValueCache];
  const std::int64_t heads = cache[2] / (value_cache ? 1 : 2);
  const auto rows = [&](std::int64_t dim) {
    return TensorSpec::contiguous(queries.dtype, {queries.shape[0], heads, dim});
  };
  result.operands[kKeys] = rows(cache[3]);
  result.operands[kValues] = rows((value_cache ? value_cache->shape : cache)[3]);
  result.operands[kDistribution] = TensorSpec::contiguous(DType::kI32, {3});
  return result;
}

std::vector<Case> fused_cases(const StorageTypes& types) {
  std::vector<Case> cases;
  for (const Case& from : attending().workload.cases(types)) cases.push_back(with_new_tokens(from));
  const bool codes = is_code(cases.front().operands[kCache]->dtype);
  if (codes) {
    Case made = *std::ranges::find(cases, "pools", &Case::name);
    made.name = "pools_with_made_scales";
    made.why = "scales of tokens and heads in caches of their own, made and written";
    for (const auto& [cache, scale] : {std::pair{kCache, kScale}, {kValueCache, kValueScale}}) {
      const Shape& shape = made.operands[cache]->shape;
      made.operands[scale] = TensorSpec::contiguous(DType::kF32, {shape[0], shape[1], shape[2]});
    }
    cases.push_back(std::move(made));
  }
  Case scaled = cases.front();
  scaled.name = "scales";
  scaled.why = "numbers of queries, keys and values that stand for others";
  scaled.options = {
      {"q_scale", 0.5}, {"k_scale", codes ? 1.0 / 32 : 0.75}, {"v_scale", codes ? 1.0 / 64 : 1.5}};
  scaled.operands[kScale] = std::nullopt;
  cases.push_back(std::move(scaled));
  // Heads by fours, rows of 128: a cache as TPUs have it, and tables in one line.
  Case five = cases.front();
  five.name = "five_axes";
  five.why = "heads on two axes, rows and heads filled up";
  const Shape cache = five.operands[kCache]->shape;
  five.operands[kCache] = TensorSpec::contiguous(five.operands[kCache]->dtype,
                                                 {cache[0], cache[1], cache[2] / 4 + 1, 4, 128});
  const Shape tables = five.operands[kTables]->shape;
  five.operands[kTables] = TensorSpec::contiguous(DType::kI32, {tables[0] * tables[1]});
  if (codes) five.operands[kScale] = TensorSpec::contiguous(DType::kF32, {cache[0], 1, 1});
  cases.push_back(std::move(five));
  return cases;
}

std::vector<Case> fused_benchmarks(const StorageTypes& types) {
  std::vector<Case> cases;
  for (const Case& from : attending().workload.benchmarks(types))
    cases.push_back(with_new_tokens(from));
  return cases;
}

// Numbers whose codes are exact: attention's bounds know no code that is another one.
void fill_new(HostTensor& tensor, DType stored, std::mt19937_64& random) {
  std::vector<double> values(static_cast<std::size_t>(tensor.spec.elements()));
  std::normal_distribution<double> distribution;
  // Steps from 0 to the largest code, which every row has.
  const int steps = stored == DType::kI8 ? 127 : stored == DType::kE4M3FN ? 14 : 7;
  const auto dim = static_cast<std::size_t>(tensor.spec.shape.back());
  for (std::size_t n = 0; n < values.size(); ++n) {
    if (!is_code(stored)) {
      values[n] = distribution(random);
      continue;
    }
    const double step = n % dim == 0 ? steps
                                     : std::clamp(std::round(distribution(random) * steps / 3),
                                                  -steps * 1.0, steps * 1.0);
    values[n] = step / 32;
  }
  tensor.write(values);
}

// A little beside numbers of any type, and far from where roundings part.
void fill_scaled(HostTensor& tensor, double scale, std::mt19937_64& random) {
  std::vector<double> values(static_cast<std::size_t>(tensor.spec.elements()));
  for (double& value : values) value = (static_cast<double>(random() % 15) - 7 + 1.0 / 64) * scale;
  tensor.write(values);
}

void fill(const Problem& problem, const Case& shape, std::span<HostTensor> tensors) {
  std::vector<std::byte> scratch(scaled_bytes(problem));
  const FusedCall attend = fused_call(attend_step(problem), problem, tensors, scratch.data());
  std::vector<HostTensor> views = attend.tensors;
  attend.problem.operation->workload.fill(attend.problem, shape, views);
  std::mt19937_64 random(shape.seed * 1000003 + 43);
  if (const std::optional<double> scale = scales_of(problem).query)
    fill_scaled(tensors[kQueries], *scale, random);
  const DType stored = problem.spec(kCache).dtype;
  fill_new(tensors[kKeys], stored, random);
  fill_new(tensors[kValues], stored, random);
  if (!is_code(stored)) return;
  // A scale that is given is one over which codes are exact.
  for (const std::size_t slot : {kScale, kValueScale}) {
    if (!problem.has(slot) || !written_by_fused(problem, tensors, slot).empty()) continue;
    std::vector<double> scales(static_cast<std::size_t>(problem.spec(slot).elements()));
    const double step = stored == DType::kE4M3FN ? 32 : stored == DType::kE5M2 ? 8192 : 1;
    std::ranges::fill(scales, 1 / (32 * step));
    tensors[slot].write(scales);
  }
}

// Tensors of which some are copies.
struct Copies {
  std::vector<HostTensor> tensors;
  std::vector<std::vector<std::byte>> bytes;
  void copy(std::size_t slot) {
    const auto size = static_cast<std::size_t>(byte_range(tensors[slot].spec, {}).end);
    auto& own = bytes.emplace_back(size);
    std::memcpy(own.data(), tensors[slot].data, size);
    tensors[slot].data = own.data();
  }
};

// Outputs times a factor, rounded once more.
void scale_expected(Expectation& outputs, DType dtype, double factor) {
  double sum = 0;
  for (std::size_t n = 0; n < outputs.values.size(); ++n) {
    outputs.values[n] *= factor;
    const double rounding = storage_unit(dtype) * std::fabs(outputs.values[n]);
    outputs.bounds[n] = factor * outputs.bounds[n] + rounding + smallest_number(dtype);
    if (std::isfinite(rounding)) sum += rounding * rounding;
  }
  const auto count = static_cast<double>(std::max<std::size_t>(outputs.values.size(), 1));
  outputs.rms_bound = factor * outputs.rms_bound + std::sqrt(sum / count);
}

std::vector<Expectation> expect(const Problem& problem, std::span<HostTensor> tensors,
                                const Arithmetic& arithmetic, double max_flops) {
  Copies after{.tensors = {tensors.begin(), tensors.end()}, .bytes = {}};
  for (const std::size_t slot : kChanged) {
    if (problem.has(slot)) after.copy(slot);
  }
  std::vector<std::byte> scratch = scaled_reference(problem, tensors);
  FusedCall append = fused_call(append_step(problem), problem, after.tensors, scratch.data());
  append.problem.operation->reference(append.problem, append.tensors);
  FusedCall attend = fused_call(attend_step(problem), problem, after.tensors, scratch.data());
  std::vector<Expectation> expected = attend.problem.operation->workload.expect(
      attend.problem, attend.tensors, arithmetic, max_flops);
  for (Expectation& one : expected)
    one.slot = slots_by_name().at(attending().operands[one.slot].name);
  if (const double factor = scales_of(problem).of_outputs(); factor != 1)
    scale_expected(expected.front(), problem.dtype, factor);
  for (const std::size_t slot : kChanged) {
    if (!problem.has(slot)) continue;
    Expectation written{.slot = slot, .elements = written_by_fused(problem, tensors, slot)};
    if (written.elements.empty()) continue;
    const std::vector<double> values = after.tensors[slot].read();
    for (const std::size_t n : written.elements) {
      written.values.push_back(values[n]);
      written.bounds.push_back(
          slot == kScale || slot == kValueScale ? 4 * kUnitF32 * std::fabs(values[n]) : 0);
    }
    expected.push_back(std::move(written));
  }
  return expected;
}

}  // namespace

Workload fused_workload() {
  Workload workload;
  workload.cases = fused_cases;
  workload.benchmarks = fused_benchmarks;
  workload.fill = fill;
  workload.expect = expect;
  workload.flops = [](const Problem& problem) {
    const Problem attend = kernel::problem_of(attend_step(problem), problem);
    return attend.operation->workload.flops(attend);
  };
  return workload;
}

}  // namespace tessera::operations::attention
