// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>

#include "base/normal_numbers.hpp"
#include "kernel/repeated.hpp"
#include "operations/common/cases.hpp"
#include "operations/common/numerics.hpp"
#include "operations/merge_attention_states/oracle.hpp"

namespace tessera::operations::attention_states {
namespace {

struct StatesCase {
  const char* name;
  const char* why;
  Shape shape{};  // of outputs
  bool other = false, merged = true;
  const char* data = "normal";
};

Case make(bool backward, DType dtype, const StatesCase& from) {
  Case result{.name = from.name, .why = from.why, .data = from.data};
  result.operands.resize(backward ? kGradOtherSum + 1 : kMerged + 1);
  const Shape& shape = from.shape;
  Shape sums{shape[0], shape[1], shape[2]};
  if (shape.size() == 5) sums = {shape[0], shape[1], shape[3], shape[2]};
  const Shape one(shape.begin() + 1, shape.end()), one_sum(sums.begin() + 1, sums.end());
  const auto add = [&](std::size_t slot, DType type, const Shape& of) {
    result.operands[slot] = TensorSpec::contiguous(type, of);
  };
  add(kOutputs, dtype, shape);
  add(kSums, DType::kF32, sums);
  if (from.other) {
    add(kOther, dtype, one);
    add(kOtherSum, DType::kF32, one_sum);
  }
  if (backward) add(kOutput, dtype, one);
  if (from.merged) add(kMerged, DType::kF32, one_sum);
  return result;
}

std::vector<Case> cases(bool backward, DType dtype) {
  std::vector<Case> result;
  for (const StatesCase& from : std::vector<StatesCase>{
           {"two", "two parts, packed rows that no vector divides", {2, 7, 3, 21}},
           {"other", "the second part lies elsewhere", {1, 9, 2, 64}, true},
           {"batched", "as flash attention returns them", {3, 2, 5, 3, 40}, true},
           {"plain", "the log-sum-exp is not wanted", {4, 17, 2, 128}, false, false},
           {"one", "one part stays what it is", {1, 3, 2, 8}},
           {"nan",
            "rows of NaN, whose other parts are not there",
            {1, 5, 3, 20},
            false,
            true,
            "nan"},
           {"many", "more parts than a device has splits", {37, 4, 2, 12}},
           {"wild",
            "parts that saw no key hold NaN; lowest floats and infinity",
            {4, 12, 2, 20},
            false,
            true,
            "wild"},
           {"none", "no rows", {2, 0, 2, 16}}})
    result.push_back(make(backward, dtype, from));
  result.push_back(make(backward, dtype, {"strided", "gaps between rows", {2, 6, 3, 10}}));
  result.back().operands[kOutputs] = strided_view(dtype, {2, 6, 3, 10}, {2, 0, 1}, 3, 5);
  result.back().operands[kSums] = strided_view(DType::kF32, {2, 6, 3}, {0, 1}, 2, 1);
  return result;
}

// By row n: parts without keys, all of them without, lowest floats, and an infinite one.
void make_wild(const Problem& problem, std::span<HostTensor> tensors) {
  const auto& call = problem.as<StatesProblem>();
  std::vector<double> sums = tensors[kSums].read(), outputs = tensors[kOutputs].read();
  const double infinity = std::numeric_limits<double>::infinity();
  const double lowest = -std::numeric_limits<float>::max();
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const std::size_t part = i / static_cast<std::size_t>(call.rows());
    const std::size_t n = i % static_cast<std::size_t>(call.rows()) % 6;
    if (n == 0 && part % 2 == 1) sums[i] = -infinity;
    if (n == 1) sums[i] = -infinity;
    if (n == 2) sums[i] = lowest;
    if (n == 3 && part == 2) sums[i] = lowest;
    if (n == 4 && part == 1) sums[i] = infinity;
    if (sums[i] == -infinity) {
      for (std::int64_t j = 0; j < call.dim; ++j)
        outputs[i * static_cast<std::size_t>(call.dim) + static_cast<std::size_t>(j)] =
            std::numeric_limits<double>::quiet_NaN();
    }
  }
  tensors[kSums].write(sums);
  tensors[kOutputs].write(outputs);
}

void fill(const Problem& problem, const Case& shape, std::span<HostTensor> tensors) {
  std::mt19937_64 random(shape.seed * 1000003 + 3);
  for (std::size_t slot = 0; slot < tensors.size(); ++slot) {
    if (!problem.has(slot) || !is_read(problem.operation->operands[slot].role)) continue;
    const bool is_sum = slot == kSums || slot == kOtherSum;
    std::vector<double> values =
        normal_numbers(static_cast<std::size_t>(problem.spec(slot).elements()), random);
    if (is_sum) {
      for (double& value : values) value = 5 + 3 * value;
    }
    kernel::write_repeated(tensors[slot], values);
  }
  if (shape.data == "wild") make_wild(problem, tensors);
  if (shape.data == "nan") {
    std::vector<double> sums = tensors[kSums].read();
    for (std::size_t i = 0; i < sums.size(); i += 2) sums[i] = std::nan("");
    tensors[kSums].write(sums);
  }
}

std::vector<Expectation> expect(const Problem& problem, std::span<HostTensor> tensors,
                                const Arithmetic&, double /*max_flops*/) {
  States states = merged_states(problem, tensors);
  std::vector<Expectation> expected;
  for (std::size_t slot = kOutput; slot < states.size(); ++slot) {
    auto& [values, bounds] = states[slot];
    if (values.empty()) continue;
    const DType dtype = problem.spec(slot).dtype;
    for (std::size_t i = 0; i < values.size(); ++i)
      bounds[i] +=
          storage_unit(dtype) * (std::fabs(values[i]) + bounds[i]) + smallest_number(dtype);
    expected.push_back({.slot = slot, .values = std::move(values), .bounds = std::move(bounds)});
  }
  return expected;
}

}  // namespace

Workload states_workload(bool backward) {
  Workload workload;
  workload.cases = [backward](const StorageTypes& types) { return cases(backward, types); };
  workload.benchmarks = [backward](const StorageTypes& types) {
    return std::vector<Case>{make(
        backward, types,
        {"t8192_h32_d128", "a prefill over a shared prefix and its own keys", {2, 8192, 32, 128}})};
  };
  workload.fill = fill;
  workload.expect = expect;
  return workload;
}

}  // namespace tessera::operations::attention_states
