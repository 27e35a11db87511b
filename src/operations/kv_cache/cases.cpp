// SPDX-License-Identifier: Apache-2.0
// Made-up calls of copy_pages, quantise_cache and dequantise_cache, and what they must give.
#include "operations/kv_cache/cases.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "base/normal_numbers.hpp"
#include "kernel/repeated.hpp"
#include "operations/common/cases.hpp"
#include "operations/kv_cache/reference.hpp"

namespace tessera::operations::kv_cache {

void fill_normal(HostTensor& tensor, std::mt19937_64& random, double factor) {
  std::vector<double> values =
      normal_numbers(static_cast<std::size_t>(tensor.spec.elements()), random);
  for (double& value : values) value *= factor;
  kernel::write_repeated(tensor, values);
}

void fill_scales(HostTensor& tensor, std::mt19937_64& random) {
  std::uniform_real_distribution<double> uniform(1.0 / 64, 1.0 / 16);
  std::vector<double> values(static_cast<std::size_t>(tensor.spec.elements()));
  for (double& value : values) value = uniform(random);
  tensor.write(values);
}

void make_wild(HostTensor& tensor) {
  std::vector<double> values = tensor.read();
  const auto dim = static_cast<std::size_t>(tensor.spec.shape.back());
  for (std::size_t i = 0; i < dim; ++i) {
    if (i % 3 == 1) values[i] = std::numeric_limits<double>::quiet_NaN();
    values[dim + i] = 0;
    values[2 * dim + i] = (i % 2 == 0 ? 1 : -1) * std::ldexp(1.0, -static_cast<int>(i % 14));
  }
  tensor.write(values);
}

namespace {

// ---- copy_pages ---------------------------------------------------------------------------------

struct CopyCase {
  const char* name;
  const char* why;
  Shape pool{};
  std::int64_t pairs = 0, source_pages = 0;  // 0: within the pool
  const char* data = "normal";
};

Case make(DType dtype, const CopyCase& from) {
  Case result{.name = from.name, .why = from.why, .data = from.data};
  result.operands.resize(kPool + 1);
  result.operands[kSourcePages] = TensorSpec::contiguous(DType::kI32, {from.pairs});
  result.operands[kTargetPages] = TensorSpec::contiguous(DType::kI32, {from.pairs});
  result.operands[kPool] = TensorSpec::contiguous(dtype, from.pool);
  if (from.source_pages > 0) {
    Shape source = from.pool;
    source[0] = from.source_pages;
    result.operands[kSource] = TensorSpec::contiguous(dtype, std::move(source));
  }
  return result;
}

std::vector<Case> copy_cases(DType dtype) {
  std::vector<Case> cases;
  for (const CopyCase& from : std::vector<CopyCase>{
           {"between", "from one pool to another", {9, 2, 5, 22}, 6, 12},
           {"within", "sources that no pair overwrites", {20, 2, 4, 64}, 7},
           {"chains",
            "pages that are read and written, turned round and moved to themselves",
            {12, 3, 4, 36},
            12,
            0,
            "chains"},
           {"hostile",
            "pages outside, skipped and several times a target",
            {10, 1, 8, 16},
            40,
            0,
            "hostile"},
           {"hostile_between", "the same between pools", {10, 24}, 40, 5, "hostile"},
           {"nothing", "no pairs", {4, 2, 4, 16}, 0}})
    cases.push_back(make(dtype, from));
  cases.push_back(make(dtype, {"strided", "heads outside of pages", {6, 3, 4, 10}, 5}));
  cases.back().operands[kPool] = strided_view(dtype, {6, 3, 4, 10}, {2, 0, 1}, 6, 2);
  return cases;
}

void fill_copy(const Problem& problem, const Case& shape, std::span<HostTensor> tensors) {
  const auto& call = problem.as<CopyProblem>();
  std::mt19937_64 random(shape.seed * 1000003 + 5);
  fill_normal(tensors[kPool], random, 2);
  if (problem.has(kSource)) fill_normal(tensors[kSource], random, 2);
  const auto pages = [&](std::int64_t count) {
    std::vector<double> result(static_cast<std::size_t>(count));
    std::iota(result.begin(), result.end(), 0.0);
    std::shuffle(result.begin(), result.end(), random);
    return result;
  };
  std::vector<double> targets = pages(call.target_pages), sources = pages(call.source_pages);
  if (call.one_pool && shape.data == "normal")  // apart from each other
    sources.assign(targets.rbegin(), targets.rend());
  sources.resize(static_cast<std::size_t>(call.pairs));
  targets.resize(static_cast<std::size_t>(call.pairs));
  if (shape.data == "hostile") {
    const double numbers[] = {-1, -2, 1e9, 2147483647.0, -2147483648.0};
    for (std::vector<double>* list : {&sources, &targets}) {
      const std::int64_t count = list == &sources ? call.source_pages : call.target_pages;
      for (double& page : *list) {
        page = static_cast<double>(random() % static_cast<std::uint64_t>(count));
        if (random() % 5 == 0) page = numbers[random() % 5];
        if (random() % 11 == 0) page = static_cast<double>(count);
      }
    }
  }
  tensors[kSourcePages].write(sources);
  tensors[kTargetPages].write(targets);
}

std::int64_t page_elements(const CopyProblem& call) {
  return std::accumulate(call.page.begin(), call.page.end(), std::int64_t{1}, std::multiplies<>());
}

std::vector<Expectation> expect_copy(const Problem& problem, std::span<HostTensor> tensors,
                                     const Arithmetic&, double /*max_flops*/) {
  const auto& call = problem.as<CopyProblem>();
  const std::vector<double> from = tensors[call.one_pool ? kPool : kSource].read();
  const std::int64_t size = page_elements(call);
  const Places places = pages_of(problem, tensors);
  Expectation expected{.slot = kPool, .elements = written_by_copy(problem, tensors, kPool)};
  for (const std::int64_t source : places.slots) {
    if (source == kNowhere) continue;
    const auto begin = from.begin() + source * size;
    expected.values.insert(expected.values.end(), begin, begin + size);
  }
  expected.bounds.resize(expected.values.size(), 0);
  if (expected.elements.empty()) return {};
  return {std::move(expected)};
}

// ---- quantise_cache and dequantise_cache --------------------------------------------------------

struct CodesCase {
  const char* name;
  const char* why;
  Shape pool{};
  const char* scale_of = "token_head";
  const char* data = "normal";
};

std::vector<CodesCase> codes_cases() {
  return {
      {"rows", "a scale for each token and head, rows that no word divides", {3, 2, 5, 22}},
      {"rows_aligned",
       "the same by words, quotients beside the middles between codes",
       {3, 2, 7, 64},
       "token_head",
       "middles"},
      {"pages", "a scale for each page", {5, 3, 4, 18}, "page"},
      {"heads", "a scale for each head", {4, 3, 6, 40}, "head"},
      {"tensor", "one scale", {6, 2, 16, 136}, "tensor"},
      {"wild",
       "NaN is no largest magnitude, rows of zeros have scale 1",
       {2, 2, 3, 34},
       "token_head",
       "wild"},
      {"wild_aligned", "the same by words: NaN is integer 0", {2, 2, 3, 64}, "token_head", "wild"},
      {"nothing", "no pages", {0, 2, 3, 16}}};
}

Shape scale_shape(const CodesCase& from) {
  const std::string of = from.scale_of;
  const bool all = of == "token_head";
  return {all || of == "page" ? from.pool[0] : 1, all || of == "head" ? from.pool[1] : 1,
          all ? from.pool[2] : 1};
}

Case make_quantise(const StorageTypes& types, const CodesCase& from) {
  Case result{.name = from.name, .why = from.why, .data = from.data};
  result.operands = {TensorSpec::contiguous(types, from.pool)};
  result.options["dtype"] = std::string(to_string(types.of("codes")));
  result.options["scale_of"] = std::string(from.scale_of);
  return result;
}

Case make_dequantise(const StorageTypes& types, const CodesCase& from) {
  Case result{.name = from.name, .why = from.why};
  result.operands = {TensorSpec::contiguous(types.of("codes"), from.pool),
                     TensorSpec::contiguous(DType::kF32, scale_shape(from))};
  result.options["dtype"] = std::string(to_string(types.of("output")));
  return result;
}

void fill_quantise(const Problem& problem, const Case& shape, std::span<HostTensor> tensors) {
  std::mt19937_64 random(shape.seed * 1000003 + 7);
  fill_normal(tensors[kFloats], random, 1);
  if (shape.data == "wild") make_wild(tensors[kFloats]);
  if (shape.data != "middles") return;
  std::vector<double> values = tensors[kFloats].read();
  const auto dim = static_cast<std::size_t>(tensors[kFloats].spec.shape.back());
  const DType codes = problem.spec(kCodes).dtype;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double peak = 1 + std::fmod(static_cast<double>(i / dim) * 0.61803398875, 1.0);
    const auto code = static_cast<double>(random() % (codes == DType::kI4 ? 7 : 127)) + 0.5;
    const bool is_float = codes == DType::kE4M3FN || codes == DType::kE5M2;
    const double middle = is_float ? std::ldexp(8.5 + std::floor(code / 16), 4) : code;
    values[i] = i % dim == 0 ? peak : peak / largest_code(codes) * middle;
  }
  tensors[kFloats].write(values);
}

std::vector<Expectation> expect_quantise(const Problem& problem, std::span<HostTensor> tensors,
                                         const Arithmetic&, double /*max_flops*/) {
  const PoolShape& pool = problem.as<CodesProblem>().pool;
  const DType dtype = problem.spec(kCodes).dtype;
  Expectation codes{.slot = kCodes}, scale{.slot = kScale, .values = scales_of(problem, tensors)};
  scale.bounds.resize(scale.values.size(), 0);
  for (std::int64_t page = 0; page < pool.pages; ++page) {
    for (std::int64_t head = 0; head < pool.heads; ++head) {
      for (std::int64_t slot = 0; slot < pool.page_size; ++slot) {
        const double with = scale.values[scale_index(problem.spec(kScale), page, head, slot)];
        const std::vector<double> row = row_of(tensors[kFloats], {page, head, slot}).read();
        const std::vector<double> numbers = scaled(row, with, dtype);
        for (std::size_t i = 0; i < row.size(); ++i) {
          codes.values.push_back(numbers[i]);
          codes.bounds.push_back(code_bound(row[i], numbers[i]));
        }
      }
    }
  }
  std::vector<Expectation> expected;
  for (Expectation* each : {&codes, &scale}) {
    if (!each->values.empty()) expected.push_back(std::move(*each));
  }
  return expected;
}

void fill_dequantise(const Problem& problem, const Case& shape, std::span<HostTensor> tensors) {
  std::mt19937_64 random(shape.seed * 1000003 + 11);
  fill_normal(tensors[kFromCodes], random, largest_code(problem.spec(kFromCodes).dtype) / 2);
  fill_scales(tensors[kFromScale], random);
}

}  // namespace

std::vector<std::size_t> written_by_copy(const Problem& problem, std::span<HostTensor> tensors,
                                         std::size_t /*slot: the pool*/) {
  const auto size = static_cast<std::size_t>(page_elements(problem.as<CopyProblem>()));
  const Places places = pages_of(problem, tensors);
  std::vector<std::size_t> written;
  for (std::size_t page = 0; page < places.slots.size(); ++page) {
    for (std::size_t i = 0; places.slots[page] != kNowhere && i < size; ++i)
      written.push_back(page * size + i);
  }
  return written;
}

Workload copy_pages_workload() {
  Workload workload;
  workload.cases = [](const StorageTypes& types) { return copy_cases(types); };
  workload.benchmarks = [](const StorageTypes& types) {
    return std::vector<Case>{
        make(types,
             {"p1024_h8_s16_d128", "pages of 16 to another pool", {2048, 8, 16, 128}, 1024, 1024}),
        make(types, {"p64_h8_s16_d128", "copies on write", {2048, 8, 16, 128}, 64})};
  };
  workload.fill = fill_copy;
  workload.expect = expect_copy;
  workload.bytes = [](const Problem& problem) {
    const auto& call = problem.as<CopyProblem>();
    return static_cast<double>(2 * call.pairs * page_elements(call)) *
           static_cast<double>(bits_of(problem.dtype)) / 8;
  };
  return workload;
}

Workload quantise_workload() {
  Workload workload;
  workload.cases = [](const StorageTypes& types) {
    std::vector<Case> cases;
    for (const CodesCase& from : codes_cases()) cases.push_back(make_quantise(types, from));
    return cases;
  };
  workload.benchmarks = [](const StorageTypes& types) {
    return std::vector<Case>{
        make_quantise(types, {"p1024_h8_s16_d128", "a scale for each row", {1024, 8, 16, 128}}),
        make_quantise(types, {"p1024_head", "a scale for each head", {1024, 8, 16, 128}, "head"})};
  };
  workload.fill = fill_quantise;
  workload.expect = expect_quantise;
  return workload;
}

Workload dequantise_workload() {
  Workload workload;
  workload.cases = [](const StorageTypes& types) {
    std::vector<Case> cases;
    for (const CodesCase& from : codes_cases()) {
      if (std::string(from.data) == "normal") cases.push_back(make_dequantise(types, from));
    }
    return cases;
  };
  workload.benchmarks = [](const StorageTypes& types) {
    return std::vector<Case>{
        make_dequantise(types, {"p1024_h8_s16_d128", "a scale for each row", {1024, 8, 16, 128}})};
  };
  workload.fill = fill_dequantise;
  return workload;
}

}  // namespace tessera::operations::kv_cache
