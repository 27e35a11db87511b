// SPDX-License-Identifier: Apache-2.0
// Inputs and error bounds of mean pooling, for tests, benchmarks and the tuner alike.
#include "operations/pooling_core/workload.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "base/normal_numbers.hpp"
#include "operations/common/numerics.hpp"
#include "operations/pooling_core/reference.hpp"

namespace tessera::operations::pooling {
namespace {

using Generator = std::mt19937_64;

// In [0, count).
std::int64_t pick(Generator& generator, std::int64_t count) {
  return static_cast<std::int64_t>(generator() % static_cast<std::uint64_t>(count));
}

std::vector<double> made_up_lengths(const MeanPoolingProblem& call, const std::string& data,
                                    Generator& generator) {
  std::vector<double> lengths(static_cast<std::size_t>(call.batch));
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    lengths[i] = static_cast<double>(i == 0   ? 0
                                     : i == 1 ? call.tokens
                                              : pick(generator, call.tokens + 1));
    if (data == "out_of_range" && i % 2 == 0)
      lengths[i] = i == 0 ? std::numeric_limits<std::int32_t>::min() : -1;
    if (data == "out_of_range" && i % 2 == 1) {
      lengths[i] =
          i == 1 ? std::numeric_limits<std::int32_t>::max() : static_cast<double>(call.tokens + 1);
    }
  }
  return lengths;
}

std::vector<double> made_up_mask(const MeanPoolingProblem& call, Generator& generator) {
  constexpr double kValues[] = {0, 1, 0, 255, 0, 128};
  std::vector<double> mask(static_cast<std::size_t>(call.batch * call.tokens));
  for (std::size_t i = 0; i < mask.size(); ++i) {
    const std::int64_t batch = static_cast<std::int64_t>(i) / call.tokens;
    mask[i] = batch == 1 ? 0 : batch == 2 ? 1 : kValues[pick(generator, 6)];
  }
  return mask;
}

std::vector<double> made_up_boundaries(const MeanPoolingProblem& call, const std::string& data,
                                       Generator& generator) {
  const std::int64_t first = data == "gap" ? call.tokens / 5 : 0;
  const std::int64_t last = data == "gap" ? call.tokens - call.tokens / 7 : call.tokens;
  std::vector<double> cu_seqlens(static_cast<std::size_t>(call.sequences) + 1);
  for (double& boundary : cu_seqlens)
    boundary = static_cast<double>(first + pick(generator, last - first + 1));
  std::ranges::sort(cu_seqlens);
  cu_seqlens.front() = static_cast<double>(first);
  if (cu_seqlens.size() == 1) return cu_seqlens;
  cu_seqlens.back() = static_cast<double>(last);
  if (cu_seqlens.size() > 4) {  // empty sequences at the start, between and at the end
    cu_seqlens[1] = cu_seqlens[0];
    cu_seqlens[3] = cu_seqlens[2];
    cu_seqlens[cu_seqlens.size() - 2] = cu_seqlens.back();
  }
  if (data == "out_of_range") {
    cu_seqlens[0] = std::numeric_limits<std::int32_t>::min();
    cu_seqlens[1] = -3;
    cu_seqlens[cu_seqlens.size() - 2] = static_cast<double>(call.tokens + 1);
    cu_seqlens.back() = std::numeric_limits<std::int32_t>::max();
  }
  if (data == "decreasing") std::ranges::reverse(cu_seqlens.begin() + 2, cu_seqlens.end());
  return cu_seqlens;
}

std::vector<double> made_up_values(std::size_t count, DType dtype, const std::string& data,
                                   Generator& generator) {
  std::vector<double> values = repeated(normal_numbers(count, generator), count);
  for (double& value : values) {
    if (data == "constant") value = 0.1;
    if (data == "large") value = dtype == DType::kF16 ? 6e4 : 1e30;
  }
  return values;
}

// Puts NaN where it must not show: tokens that don't count, rows without tokens.
void hide_nan(const Problem& problem, std::span<HostTensor> tensors, std::vector<double>& values) {
  const auto& call = problem.as<MeanPoolingProblem>();
  const MeanPoolingOracle oracle(problem, tensors);
  const std::vector<std::int64_t> counts = oracle.counts();
  const auto features = static_cast<std::size_t>(call.features());
  const std::vector<double> weights =
      call.backward ? std::vector<double>{}
                    : oracle.gradients(std::vector<double>(counts.size() * features, 1));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (call.backward ? counts[i / features] == 0 : weights[i] == 0) values[i] = std::nan("");
  }
}

}  // namespace

// Kinds of data: "normal"; "constant", equal values; "large", near half's largest number.
// "hidden_nan", NaN where it must not show; "gap", the same, and sequences begin after the first
// row and end before the last; "out_of_range", indices beyond what they index; "decreasing",
// boundaries that do not ascend.
void fill_mean_pooling(const Problem& problem, const Case& shape, std::span<HostTensor> tensors) {
  const auto& call = problem.as<MeanPoolingProblem>();
  Generator generator(shape.seed * 1000003);
  if (call.pool == Pool::kLengths)
    tensors[*call.index_slot].write(made_up_lengths(call, shape.data, generator));
  if (call.pool == Pool::kMask) tensors[*call.index_slot].write(made_up_mask(call, generator));
  if (call.packed())
    tensors[*call.index_slot].write(made_up_boundaries(call, shape.data, generator));
  HostTensor& from = tensors[call.backward ? call.y_slot : call.x_slot];
  std::vector<double> values = made_up_values(static_cast<std::size_t>(from.spec.elements()),
                                              problem.dtype, shape.data, generator);
  if (shape.data == "hidden_nan" || shape.data == "gap") hide_nan(problem, tensors, values);
  from.write(values);
}

namespace {

// Means: if roundings are independent, a sum of n numbers in float, in any order, is off by at most
// lambda sqrt(n) u sum |x| but with a probability of about 2 n exp(-lambda^2 / 2) (Higham and Mary,
// SIAM J. Sci. Comput. 41(5), 2019; Ipsen and Zhou, arXiv:1906.10465); lambda is 8 here. Equal
// numbers round alike, and then n u sum |x| is certain: cases of those have fewer than 64 tokens.
// The reciprocal and the product add less than 8 u: OpenCL and Vulkan allow a division 2.5 units in
// the last place.
std::vector<Expectation> expect_means(const Problem& problem, std::span<HostTensor> tensors) {
  const auto& call = problem.as<MeanPoolingProblem>();
  const MeanPoolingOracle oracle(problem, tensors);
  std::vector<double> x = tensors[call.x_slot].read();
  Expectation expected{.slot = call.y_slot, .values = oracle.means(x)};
  for (double& value : x) value = std::fabs(value);
  const std::vector<double> magnitudes = oracle.means(x);
  const std::vector<std::int64_t> counts = oracle.counts();
  expected.bounds.resize(expected.values.size());
  for (std::size_t i = 0; i < expected.bounds.size(); ++i) {
    const double count = static_cast<double>(counts[i / static_cast<std::size_t>(call.features())]);
    expected.bounds[i] = storage_unit(problem.dtype) * std::fabs(expected.values[i]) +
                         kUnitF32 * (8 * std::sqrt(count) + 8) * magnitudes[i] +
                         smallest_number(problem.dtype);
  }
  return {std::move(expected)};
}

// Gradients: the reciprocal, the product and the rounding of the storage type.
std::vector<Expectation> expect_gradients(const Problem& problem, std::span<HostTensor> tensors) {
  const auto& call = problem.as<MeanPoolingProblem>();
  const MeanPoolingOracle oracle(problem, tensors);
  Expectation expected{.slot = call.x_slot,
                       .values = oracle.gradients(tensors[call.y_slot].read())};
  expected.bounds.resize(expected.values.size());
  for (std::size_t i = 0; i < expected.bounds.size(); ++i) {
    expected.bounds[i] =
        (storage_unit(problem.dtype) + 8 * kUnitF32) * std::fabs(expected.values[i]) +
        smallest_number(problem.dtype);
  }
  return {std::move(expected)};
}

}  // namespace

// Counted operations are left out: the kernels wait for memory. The bytes are those of the
// operands, the default.
Workload mean_pooling_workload(bool chunked, bool backward) {
  const MeanPoolingCases cases(chunked, backward);
  Workload workload;
  workload.cases = [cases](DType dtype) { return cases.conformance(dtype); };
  workload.edge_cases = [cases](DType dtype, const Config& config) {
    return cases.edges(dtype, config);
  };
  workload.benchmarks = [cases](DType dtype) { return cases.benchmarks(dtype); };
  workload.fill = fill_mean_pooling;
  workload.expect = [backward](
                        const Problem& problem, std::span<HostTensor> tensors, const Arithmetic&,
                        double /*max_flops: reading the operands takes as long as the oracle*/) {
    return backward ? expect_gradients(problem, tensors) : expect_means(problem, tensors);
  };
  return workload;
}

}  // namespace tessera::operations::pooling
