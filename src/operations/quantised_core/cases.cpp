// SPDX-License-Identifier: Apache-2.0
// The calls that tests, benchmarks and the tuner make up for products with quantised weights.
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "base/normal_numbers.hpp"
#include "kernel/repeated.hpp"
#include "operations/grouped_core/problem.hpp"
#include "operations/quantised_core/problem.hpp"

namespace tessera::operations::quantised {
namespace {

struct QuantisedCase {
  const char* name;
  const char* why;
  const char* weight = "i4";  // a dtype, or a layout
  std::int64_t m = 1, n = 1, k = 1;
  std::int64_t group = 0;  // 0: one for each row
  bool zeros = false;
  std::int64_t gap = 0;  // unused elements between rows
  const char* data = "normal";
  const char* scale = "";  // empty = the dtype of input
  const char* output = "";
  std::int64_t matrices = 0;  // rows in groups
  std::int64_t first = 0;
};

TensorSpec laid_out(DType dtype, const Shape& shape, std::int64_t gap) {
  TensorSpec spec = TensorSpec::contiguous(dtype, shape);
  if (gap == 0) return spec;
  gap += is_packed(dtype) ? gap % 2 + shape.back() % 2 : 0;
  spec.offset = 2 * gap;
  spec.strides[0] = shape.back() + gap;
  return spec;
}

Case make(DType dtype, const QuantisedCase& from) {
  Case result{.name = from.name, .why = from.why, .data = from.data};
  const std::string weight = from.weight;
  const bool blocks = weight == "q8_0" || weight == "q4_0";
  const DType code = blocks ? DType::kU8 : parse_dtype(weight);
  const std::int64_t bytes = block_bytes(weight == "q8_0" ? Layout::kQ8_0 : Layout::kQ4_0);
  const std::int64_t groups = from.group == 0 ? 1 : (from.k + from.group - 1) / from.group;
  // Input in 8 bits has a scale of its own, and results in floats.
  const DType floats = dtype == DType::kI8 ? DType::kF32 : dtype;
  const DType output = *from.output != '\0' ? parse_dtype(from.output) : floats;
  result.operands.resize(kOutput + 1);
  if (dtype == DType::kI8)
    result.operands[kInputScale] = laid_out(DType::kF32, {from.m, 1}, from.gap);
  result.operands[kInput] = laid_out(dtype, {from.m, from.k}, from.gap);
  const auto each = [&](std::int64_t columns) {
    return from.matrices == 0 ? Shape{from.n, columns} : Shape{from.matrices, from.n, columns};
  };
  result.operands[kWeight] =
      laid_out(code, each(blocks ? from.k / QUANT_CHUNK * bytes : from.k), from.gap);
  if (from.matrices != 0)
    result.operands[kSizes] = TensorSpec::contiguous(DType::kI32, {from.matrices + from.first + 1});
  if (from.first != 0) result.options["group_offset"] = from.first;
  if (blocks) {
    result.options["layout"] = weight;
  } else {
    const DType scale = *from.scale != '\0' ? parse_dtype(from.scale) : floats;
    result.operands[kScale] = laid_out(scale, each(groups), from.gap);
    if (from.zeros) result.operands[kZero] = laid_out(code, each(groups), from.gap);
    if (from.group != 0) result.options["group_size"] = from.group;
  }
  if (from.gap != 0) result.operands[kOutput] = laid_out(output, {from.m, from.n}, from.gap);
  if (*from.output != '\0') result.options["output_dtype"] = std::string(from.output);
  return result;
}

// Any code of a type.
double random_code(DType dtype, std::mt19937_64& generator) {
  switch (dtype) {
    case DType::kI8:
      return static_cast<double>(generator() % 256) - 128;
    case DType::kI4:
      return static_cast<double>(generator() % 16) - 8;
    case DType::kU4:
      return static_cast<double>(generator() % 16);
    default:
      return static_cast<double>(generator() % 256);
  }
}

}  // namespace

std::vector<Case> quantised_matmul_cases(DType dtype) {
  const QuantisedCase table[] = {
      {.name = "i4_row",
       .why = "one row, groups of 128",
       .weight = "i4",
       .n = 24,
       .k = 512,
       .group = 128},
      {.name = "u4_zeros",
       .why = "zero points, groups of 32, a group that is not whole",
       .weight = "u4",
       .m = 3,
       .n = 21,
       .k = 336,
       .group = 32,
       .zeros = true},
      {.name = "i4_odd",
       .why = "an odd number of terms, one scale for each row",
       .weight = "i4",
       .m = 5,
       .n = 7,
       .k = 77,
       .zeros = true},
      {.name = "i8_row", .why = "one row in 8 bits", .weight = "i8", .n = 40, .k = 256},
      {.name = "u8_zeros",
       .why = "zero points in 8 bits",
       .weight = "u8",
       .m = 9,
       .n = 13,
       .k = 200,
       .group = 64,
       .zeros = true},
      {.name = "i8_gaps",
       .why = "unused memory between rows, chunks that are not aligned",
       .weight = "i8",
       .m = 2,
       .n = 11,
       .k = 100,
       .group = 96,
       .zeros = true,
       .gap = 3},
      {.name = "u4_gaps",
       .why = "the same in half bytes",
       .weight = "u4",
       .m = 2,
       .n = 11,
       .k = 99,
       .group = 32,
       .zeros = true,
       .gap = 3},
      {.name = "q8_0",
       .why = "ggml's blocks of 8 bits",
       .weight = "q8_0",
       .m = 2,
       .n = 9,
       .k = 192},
      {.name = "q4_0",
       .why = "ggml's blocks of 4 bits",
       .weight = "q4_0",
       .m = 2,
       .n = 9,
       .k = 192},
      {.name = "q8_0_gaps",
       .why = "blocks at odd addresses",
       .weight = "q8_0",
       .m = 2,
       .n = 5,
       .k = 64,
       .gap = 3},
      {.name = "q4_0_gaps",
       .why = "blocks at odd addresses, with scales that are subnormal halves",
       .weight = "q4_0",
       .m = 2,
       .n = 5,
       .k = 64,
       .gap = 3,
       .data = "tiny"},
      {.name = "long",
       .why = "more terms than an item holds",
       .weight = "i4",
       .n = 3,
       .k = 8704,
       .group = 128},
      {.name = "u4_parts",
       .why = "few rows and several parts of terms, groups of 128, the last one not whole",
       .weight = "u4",
       .m = 7,
       .n = 37,
       .k = 4512,
       .group = 128,
       .zeros = true},
      {.name = "u4_row_long",
       .why = "one row of more terms than an item holds, within a group and an odd number of them; "
              "some columns",
       .weight = "u4",
       .n = 13,
       .k = 16747,
       .group = 96,
       .zeros = true},
      {.name = "u8_row_gaps",
       .why = "one row, more groups than a vector has lanes, chunks that are not aligned",
       .weight = "u8",
       .n = 11,
       .k = 1100,
       .group = 64,
       .zeros = true,
       .gap = 3},
      {.name = "q8_0_row",
       .why = "one row, more blocks than a vector has lanes",
       .weight = "q8_0",
       .n = 6,
       .k = 640},
      {.name = "q4_0_row", .why = "the same in 4 bits", .weight = "q4_0", .n = 6, .k = 640},
      {.name = "i4_parts",
       .why = "rows whose terms work-group memory does not hold",
       .weight = "i4",
       .m = 16,
       .n = 40,
       .k = 8192,
       .group = 128},
      {.name = "i4_some",
       .why = "some rows, a group that is not whole",
       .weight = "i4",
       .m = 27,
       .n = 77,
       .k = 992,
       .group = 128},
      {.name = "u4_many",
       .why = "many rows, zero points, the end of a row within a step",
       .weight = "u4",
       .m = 61,
       .n = 200,
       .k = 1312,
       .group = 384,
       .zeros = true},
      {.name = "i8_many",
       .why = "more rows than a work-group owns, in 8 bits",
       .weight = "i8",
       .m = 70,
       .n = 72,
       .k = 656,
       .group = 64,
       .zeros = true},
      {.name = "u4_few",
       .why = "few rows, zero points, an odd number of groups",
       .weight = "u4",
       .m = 3,
       .n = 300,
       .k = 1056,
       .group = 128,
       .zeros = true},
      {.name = "i8_few",
       .why = "few rows in 8 bits, a group that is not whole",
       .weight = "i8",
       .m = 6,
       .n = 88,
       .k = 400,
       .group = 128},
      {.name = "u8_some",
       .why = "some rows in 8 bits, zero points, the end of a row within a step",
       .weight = "u8",
       .m = 14,
       .n = 300,
       .k = 1168,
       .group = 128,
       .zeros = true},
      {.name = "i4_rows_apart",
       .why = "rows that lie apart, at multiples of 16 bytes",
       .weight = "i4",
       .m = 40,
       .n = 264,
       .k = 2080,
       .group = 128,
       .gap = 32},
      {.name = "u4_more",
       .why = "more rows than a work-group owns, zero points, an odd number of groups",
       .weight = "u4",
       .m = 70,
       .n = 136,
       .k = 544,
       .group = 128,
       .zeros = true},
      {.name = "i4_shares",
       .why = "work-groups that share terms, some of them those of two blocks of columns",
       .weight = "i4",
       .m = 33,
       .n = 600,
       .k = 4352,
       .group = 128},
      {.name = "u4_blocks",
       .why = "more blocks of columns than multiprocessors, zero points",
       .weight = "u4",
       .m = 5,
       .n = 34100,
       .k = 128,
       .group = 128,
       .zeros = true},
      {.name = "wild",
       .why = "scales that are 0, NaN and infinite",
       .weight = "i8",
       .m = 2,
       .n = 6,
       .k = 192,
       .group = 96,
       .data = "wild"},
      {.name = "no_terms", .why = "the product is 0", .weight = "i8", .m = 2, .n = 3, .k = 0},
      {.name = "no_rows", .why = "nothing to write", .weight = "i8", .m = 0, .n = 3, .k = 32},
      {.name = "float_scale",
       .why = "scales and output of another type",
       .weight = "i4",
       .m = 2,
       .n = 10,
       .k = 128,
       .group = 64,
       .scale = "f32",
       .output = "f32"},
      {.name = "grouped",
       .why = "a matrix for each group of rows, zero points",
       .weight = "u4",
       .m = 19,
       .n = 10,
       .k = 96,
       .group = 32,
       .zeros = true,
       .matrices = 4},
      {.name = "grouped_offset",
       .why = "rows of groups without a matrix, bytes",
       .weight = "i8",
       .m = 21,
       .n = 7,
       .k = 40,
       .matrices = 3,
       .first = 2},
      {.name = "grouped_blocks",
       .why = "GGUF's blocks, scales that are not finite",
       .weight = "q4_0",
       .m = 9,
       .n = 5,
       .k = 64,
       .data = "wild",
       .matrices = 2},
      {.name = "grouped_hostile",
       .why = "sizes of groups that are anything",
       .weight = "i8",
       .m = 21,
       .n = 7,
       .k = 40,
       .data = "hostile",
       .matrices = 6,
       .first = 1},
  };
  std::vector<Case> cases;
  for (const QuantisedCase& from : table) cases.push_back(make(dtype, from));
  return cases;
}

std::vector<Case> quantised_backward_cases(DType dtype) {
  std::vector<Case> cases;
  for (Case& from : quantised_matmul_cases(dtype)) {
    // Results of another type are those of the forward call; so are rows that hold no elements.
    if (from.options.contains("output_dtype") || from.name == "no_terms") continue;
    Case& result = cases.emplace_back(std::move(from));
    const TensorSpec input = *result.operands[kInput];
    const Shape& weight = result.operands[kWeight]->shape;
    const std::int64_t n = weight[weight.size() - 2];
    const std::int64_t gap = input.strides[0] - input.shape[1];
    const bool is_strided = input.shape[0] > 0 && gap > 0;
    result.operands.resize(kGradInput + 1);
    result.operands[kGradOutput] = laid_out(dtype, {input.shape[0], n}, is_strided ? gap : 0);
    result.operands[kGradInput].reset();
    if (is_strided) result.operands[kGradInput] = input;
  }
  return cases;
}

std::vector<Case> quantised_matmul_benchmarks(DType dtype) {
  const QuantisedCase table[] = {
      {.name = "w4_1",
       .why = "as a language model decodes",
       .weight = "i4",
       .m = 1,
       .n = 28672,
       .k = 8192,
       .group = 128},
      {.name = "w4_16",
       .why = "few rows",
       .weight = "i4",
       .m = 16,
       .n = 28672,
       .k = 8192,
       .group = 128},
      {.name = "w4_64",
       .why = "some rows",
       .weight = "i4",
       .m = 64,
       .n = 28672,
       .k = 8192,
       .group = 128},
      {.name = "w4_square",
       .why = "a square",
       .weight = "i4",
       .m = 1,
       .n = 8192,
       .k = 8192,
       .group = 128},
      {.name = "w8_square",
       .why = "a square",
       .weight = "i8",
       .m = 1,
       .n = 8192,
       .k = 8192,
       .group = 128},
      {.name = "q8_0_square",
       .why = "ggml's blocks",
       .weight = "q8_0",
       .m = 1,
       .n = 8192,
       .k = 8192},
      {.name = "q4_0_square",
       .why = "ggml's blocks",
       .weight = "q4_0",
       .m = 1,
       .n = 8192,
       .k = 8192},
  };
  std::vector<Case> cases;
  for (const QuantisedCase& from : table) cases.push_back(make(dtype, from));
  return cases;
}

void fill_quantised_matmul(const Problem& problem, const Case& shape,
                           std::span<HostTensor> tensors) {
  const auto& call = problem.as<QuantisedProblem>();
  std::mt19937_64 generator(shape.seed * 1000003);
  std::normal_distribution<float> normal;
  const auto count = [&](std::size_t slot) {
    return static_cast<std::size_t>(problem.spec(slot).elements());
  };
  if (problem.has(kSizes)) {
    // Some rows are behind all groups.
    std::vector<double> sizes(count(kSizes), 0);
    for (std::int64_t row = 0; row < call.m - call.m / 8; ++row)
      sizes[generator() % sizes.size()] += 1;
    if (shape.data == "hostile") sizes = matmul::hostile_sizes(sizes.size(), call.m, generator);
    tensors[kSizes].write(sizes);
  }
  std::vector<double> input = normal_numbers(count(kInput), generator);
  if (const DType type = problem.spec(kInput).dtype; type == DType::kI8) {
    for (double& x : input) x = random_code(type, generator);
  }
  kernel::write_repeated(tensors[kInput], input);
  if (problem.operands.size() > kOutput && problem.has(kInputScale)) {
    std::vector<double> scales(count(kInputScale));
    for (double& scale : scales) scale = 0.02 * normal(generator);
    if (shape.data == "wild") scales[1] = std::numeric_limits<double>::infinity();
    tensors[kInputScale].write(scales);
  }
  std::vector<double> codes = drawn_numbers(
      count(kWeight), [&] { return random_code(problem.spec(kWeight).dtype, generator); });
  if (call.layout != Layout::kPlain) {
    const auto size = static_cast<std::size_t>(block_bytes(call.layout));
    codes.resize(codes.size() / size * size);
    for (std::size_t at = 0; at < codes.size(); at += size) {
      const double size = shape.data == "tiny" ? 0x1p-20 : 0.01;
      std::uint16_t bits = to_half_bits(size * normal(generator));
      // Infinity, NaN and 0 among them.
      if (shape.data == "wild" && generator() % 4 == 0)
        bits = std::array<std::uint16_t, 3>{0x7c00, 0x7e01, 0}[generator() % 3];
      codes[at] = bits % 256;
      codes[at + 1] = bits / 256;
    }
  }
  kernel::write_repeated(tensors[kWeight], codes);
  if (problem.has(kScale)) {
    std::vector<double> scales =
        drawn_numbers(count(kScale), [&] { return 0.01 * normal(generator); });
    if (shape.data == "wild") {
      scales[0] = 0;
      scales[2] = std::nan("");
      scales[5] = std::numeric_limits<double>::infinity();
    }
    kernel::write_repeated(tensors[kScale], scales);
  }
  if (problem.has(kZero)) {
    kernel::write_repeated(tensors[kZero], drawn_numbers(count(kZero), [&] {
                             return random_code(problem.spec(kZero).dtype, generator);
                           }));
  }
}

}  // namespace tessera::operations::quantised
