// SPDX-License-Identifier: Apache-2.0
// The definition of cumsum in double precision, and the calls that are checked against it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "base/tensors/rounding.hpp"
#include "operations/common/cases.hpp"
#include "operations/common/numerics.hpp"
#include "operations/cumsum/call.hpp"

namespace tessera::operations::recurrence {
namespace {

struct Range {
  std::int64_t batch, begin, end;
};

// Boundaries are cut to the tokens and to not decrease.
std::vector<Range> ranges_of(const CumsumCall& call, std::span<HostTensor> tensors) {
  std::vector<Range> ranges;
  if (!call.sequences) {
    for (std::int64_t batch = 0; batch < call.batch; ++batch)
      ranges.push_back({batch, 0, call.tokens});
    return ranges;
  }
  std::int64_t before = 0, index = 0;
  for (const double value : tensors[kCumsumOffsets].read()) {
    const std::int64_t next = std::clamp(static_cast<std::int64_t>(value), before, call.tokens);
    if (index++ > 0) ranges.push_back({0, before, next});
    before = next;
  }
  return ranges;
}

// Sums, and what float may be off by: by lambda sqrt(n) u times the sum of magnitudes (Higham and
// Mary, SIAM J. Sci. Comput. 41(5), 2019), with lambda 8.
struct Sums {
  std::vector<double> values, bounds;
};

Sums sums_of(const Problem& problem, std::span<HostTensor> tensors) {
  const auto& call = problem.as<CumsumCall>();
  const std::vector<double> x = tensors[kCumsumInput].read();
  Sums sums{std::vector<double>(x.size()), std::vector<double>(x.size())};
  const auto place = [&](std::int64_t batch, std::int64_t token, std::int64_t head,
                         std::int64_t feature) {
    const std::int64_t row = call.head_first ? (batch * call.heads + head) * call.tokens + token
                                             : (batch * call.tokens + token) * call.heads + head;
    return static_cast<std::size_t>(row * call.dim + feature);
  };
  for (const Range& range : ranges_of(call, tensors)) {
    for (std::int64_t head = 0; head < call.heads; ++head) {
      for (std::int64_t feature = 0; feature < call.dim; ++feature) {
        for (std::int64_t token = range.begin; token < range.end; ++token) {
          const std::int64_t first = range.begin + (token - range.begin) / call.chunk * call.chunk;
          const std::int64_t end = std::min(first + call.chunk, range.end);
          double sum = 0, size = 0;
          for (std::int64_t s = call.reverse ? token : first; s < (call.reverse ? end : token + 1);
               ++s) {
            const double term = x[place(range.batch, s, head, feature)];
            sum += term;
            size += std::fabs(term);
          }
          const std::size_t at = place(range.batch, token, head, feature);
          sums.values[at] = call.scale * sum;
          sums.bounds[at] = kUnitF32 * (8 * std::sqrt(static_cast<double>(end - first)) + 8) *
                            std::fabs(call.scale) * size;
        }
      }
    }
  }
  return sums;
}

struct Sizes {
  std::int64_t batch = 1, tokens = 1, heads = 1, dim = 0;  // dim 0: there is no such axis
  std::int64_t chunk = 0;                                  // 0: none
  std::int64_t sequences = -1;                             // packed, where not negative
  bool reverse = false, head_first = false, strided = false, wide = false;
};

Case make_case(DType dtype, std::string name, std::string why, const Sizes& sizes,
               std::string data = "normal") {
  Shape shape = sizes.head_first ? Shape{sizes.batch, sizes.heads, sizes.tokens}
                                 : Shape{sizes.batch, sizes.tokens, sizes.heads};
  if (sizes.dim > 0) shape.push_back(sizes.dim);
  Case result{.name = std::move(name), .why = std::move(why), .data = std::move(data)};
  result.operands.resize(3);
  result.operands[kCumsumInput] = sizes.strided ? strided_view(dtype, shape, {2, 0, 1}, 3, 3)
                                                : TensorSpec::contiguous(dtype, shape);
  if (sizes.sequences >= 0)
    result.operands[kCumsumOffsets] = TensorSpec::contiguous(DType::kI32, {sizes.sequences + 1});
  result.options = {{"reverse", sizes.reverse}, {"head_first", sizes.head_first}, {"scale", 1.5}};
  if (sizes.chunk > 0) result.options["chunk"] = sizes.chunk;
  if (sizes.wide) result.options["output_dtype"] = std::string("f32");
  return result;
}

std::vector<Case> conformance(DType dtype) {
  std::vector<Case> table;
  const auto add = [&](const char* name, const char* why, const Sizes& sizes,
                       const char* data = "normal") {
    table.push_back(make_case(dtype, name, why, sizes, data));
  };
  add("single", "one token", {});
  add("numbers", "a number for a token and head", {.batch = 2, .tokens = 70, .heads = 3});
  add("rows", "rows of features", {.batch = 2, .tokens = 41, .heads = 3, .dim = 7});
  add("reverse", "from the last token on", {.tokens = 41, .heads = 3, .dim = 7, .reverse = true});
  add("chunks", "the last chunk is short", {.batch = 2, .tokens = 41, .heads = 3, .chunk = 16});
  add("chunks_reverse", "chunks from their ends",
      {.tokens = 41, .heads = 3, .dim = 5, .chunk = 8, .reverse = true});
  add("head_first", "heads before tokens",
      {.batch = 2, .tokens = 33, .heads = 3, .dim = 5, .chunk = 32, .head_first = true});
  add("no_tokens", "seq 0: nothing to write", {.batch = 2, .tokens = 0, .heads = 3});
  Sizes packed{.tokens = 61, .heads = 2, .dim = 6, .chunk = 8, .sequences = 6};
  add("packed", "chunks begin anew with each sequence; tokens of none are 0 and may hold NaN",
      packed, "gap");
  packed.reverse = packed.wide = true;
  add("packed_reverse", "the same from their ends, into f32", packed, "gap");
  packed.chunk = 0;
  add("out_of_range", "boundaries beyond the tokens", packed, "out_of_range");
  add("decreasing", "boundaries that decrease", packed, "decreasing");
  packed.sequences = 0;
  add("no_sequences", "cu_seqlens of one element: all tokens are 0 and may hold NaN", packed,
      "gap");
  add("strided", "unusual order, odd gaps",
      {.batch = 2, .tokens = 19, .heads = 3, .dim = 5, .strided = true});
  add("not_finite", "NaN and infinity reach the sums that they belong to",
      {.tokens = 40, .heads = 2, .dim = 3, .chunk = 16}, "not_finite");
  return table;
}

void fill(const Problem& problem, const Case& shape, std::span<HostTensor> tensors) {
  const auto& call = problem.as<CumsumCall>();
  std::mt19937_64 generator(shape.seed * 1000003);
  std::normal_distribution<double> normal;
  const auto tokens = static_cast<double>(call.tokens);
  const bool gap = shape.data == "gap";
  if (call.sequences) {
    const double first = gap ? std::floor(tokens / 5) : 0;
    const double last = gap ? tokens - std::floor(tokens / 7) : tokens;
    std::vector<double> boundaries(static_cast<std::size_t>(*call.sequences) + 1);
    for (double& boundary : boundaries)
      boundary = first + static_cast<double>(generator() % 64) * (last - first) / 64;
    std::ranges::sort(boundaries);
    for (double& boundary : boundaries) boundary = std::floor(boundary);
    boundaries.front() = first;
    boundaries.back() = last;
    if (shape.data == "out_of_range") {
      boundaries.front() = std::numeric_limits<std::int32_t>::min();
      boundaries.back() = std::numeric_limits<std::int32_t>::max();
    }
    if (shape.data == "decreasing") std::reverse(boundaries.begin() + 1, boundaries.end());
    tensors[kCumsumOffsets].write(boundaries);
  }
  std::vector<double> values(static_cast<std::size_t>(problem.spec(kCumsumInput).elements()));
  for (double& value : values) value = normal(generator);
  if (shape.data == "not_finite") {
    values[values.size() / 3] = std::nan("");
    values[values.size() / 4] = std::numeric_limits<double>::infinity();
  }
  if (gap) {  // rows of tokens lie one behind the other
    const std::size_t row = values.size() / static_cast<std::size_t>(call.tokens);
    std::vector<bool> held(static_cast<std::size_t>(call.tokens), false);
    for (const Range& range : ranges_of(call, tensors))
      std::fill(held.begin() + range.begin, held.begin() + range.end, true);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!held[i / row]) values[i] = std::nan("");
    }
  }
  tensors[kCumsumInput].write(values);
}

}  // namespace

void reference_cumsum(const Problem& problem, std::span<HostTensor> tensors) {
  tensors[kCumsumOutput].write(sums_of(problem, tensors).values);
}

std::vector<Raised> raises_cumsum(const Problem& problem, std::span<HostTensor> tensors) {
  const auto& call = problem.as<CumsumCall>();
  std::vector<Raised> raised;
  if (!call.sequences) return raised;
  const std::vector<double> boundaries = tensors[kCumsumOffsets].read();
  for (std::size_t i = 0; i < boundaries.size(); ++i) {
    const auto index = static_cast<std::uint32_t>(i);
    if (boundaries[i] < 0 || boundaries[i] > static_cast<double>(call.tokens))
      raised.push_back({.error = 0, .index = index});
    if (i > 0 && boundaries[i] < boundaries[i - 1]) raised.push_back({.error = 1, .index = index});
  }
  return raised;
}

// Counted operations are left out: the kernels wait for memory.
Workload cumsum_workload() {
  Workload workload;
  workload.cases = [](DType dtype) { return conformance(dtype); };
  workload.edge_cases = [](DType, const Config&) { return std::vector<Case>{}; };
  workload.benchmarks = [](DType dtype) {
    return std::vector<Case>{make_case(dtype, "t32768_h16_d128_c64", "decays of a long prompt",
                                       {.tokens = 32768, .heads = 16, .dim = 128, .chunk = 64})};
  };
  workload.fill = fill;
  workload.expect = [](const Problem& problem, std::span<HostTensor> tensors, const Arithmetic&,
                       double /*max_flops: chunks are short where sequences are long*/) {
    Sums sums = sums_of(problem, tensors);
    const DType dtype = problem.spec(kCumsumOutput).dtype;
    for (std::size_t i = 0; i < sums.values.size(); ++i)
      sums.bounds[i] += storage_unit(dtype) * (std::fabs(sums.values[i]) + sums.bounds[i]) +
                        smallest_number(dtype);
    return std::vector<Expectation>{{.slot = kCumsumOutput,
                                     .values = std::move(sums.values),
                                     .bounds = std::move(sums.bounds)}};
  };
  return workload;
}

}  // namespace tessera::operations::recurrence
