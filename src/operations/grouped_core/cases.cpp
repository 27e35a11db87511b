// SPDX-License-Identifier: Apache-2.0
// The calls that tests, benchmarks and the tuner make up for grouped products.
#include "operations/common/cases.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>

#include "base/normal_numbers.hpp"
#include "kernel/repeated.hpp"
#include "operations/grouped_core/made_case.hpp"
#include "operations/grouped_core/oracle.hpp"

namespace tessera::operations::matmul {
namespace {

TensorSpec laid_out(DType dtype, const Shape& shape, const GroupedCase& from, std::int64_t gap) {
  TensorSpec spec = TensorSpec::contiguous(dtype, shape);
  if (from.gap == 0 && !from.columns) return spec;
  const std::size_t rows = shape.size() - 2, columns = shape.size() - 1;
  const std::size_t inner = from.columns ? rows : columns, outer = from.columns ? columns : rows;
  spec.offset = gap;
  spec.strides[inner] = 1;
  spec.strides[outer] = shape[inner] + gap;
  if (rows == 1) spec.strides[0] = shape[outer] * spec.strides[outer];
  return spec;
}

std::vector<GroupedCase> table() {
  return {
      {.name = "ragged",
       .why = "sizes that divide no tile, and empty groups",
       .m = 71,
       .n = 53,
       .k = 29,
       .groups = 7},
      {.name = "equal",
       .why = "groups of whole tiles",
       .m = 128,
       .n = 64,
       .k = 64,
       .groups = 4,
       .data = "equal"},
      {.name = "one_group", .why = "a plain product", .m = 37, .n = 70, .k = 50},
      {.name = "single_rows",
       .why = "groups of one row",
       .m = 9,
       .n = 20,
       .k = 24,
       .groups = 9,
       .data = "single"},
      {.name = "short",
       .why = "rows behind the last group, which are 0 and may hold NaN",
       .m = 60,
       .n = 36,
       .k = 20,
       .groups = 5,
       .data = "short"},
      {.name = "kept",
       .why = "rows of no group keep existing_out; of groups it is added",
       .m = 60,
       .n = 35,
       .k = 20,
       .groups = 5,
       .data = "short",
       .existing = true},
      {.name = "share",
       .why = "some of the groups are held here",
       .m = 64,
       .n = 36,
       .k = 20,
       .groups = 6,
       .first = 2,
       .held = 3,
       .existing = true},
      {.name = "behind",
       .why = "matrices of groups that are not there",
       .m = 20,
       .n = 12,
       .k = 16,
       .groups = 3,
       .first = 2,
       .held = 4},
      {.name = "empty",
       .why = "every group is empty",
       .m = 20,
       .n = 12,
       .k = 16,
       .groups = 4,
       .data = "empty",
       .existing = true},
      {.name = "many",
       .why = "more groups than the list takes at a time",
       .m = 150,
       .n = 8,
       .k = 12,
       .groups = 200},
      {.name = "no_terms", .why = "the product is 0", .m = 12, .n = 8, .k = 0, .groups = 3},
      {.name = "no_rows", .why = "groups of nothing", .m = 0, .n = 8, .k = 12, .groups = 3},
      {.name = "no_columns", .why = "matrices of nothing", .m = 12, .n = 0, .k = 8, .groups = 3},
      {.name = "turned",
       .why = "matrices as weights lie",
       .m = 67,
       .n = 40,
       .k = 36,
       .groups = 4,
       .transpose_rhs = true},
      {.name = "gaps",
       .why = "unused memory between rows, vectors that are not aligned",
       .m = 45,
       .n = 27,
       .k = 35,
       .groups = 4,
       .existing = true,
       .gap = 3},
      {.name = "columns",
       .why = "all operands by columns",
       .m = 45,
       .n = 28,
       .k = 36,
       .groups = 4,
       .existing = true,
       .columns = true},
      {.name = "negative",
       .why = "negative sizes count 0 and are raised",
       .m = 40,
       .n = 12,
       .k = 16,
       .groups = 5,
       .data = "negative",
       .existing = true},
      {.name = "beyond",
       .why = "what is beyond the rows is cut and raised",
       .m = 40,
       .n = 12,
       .k = 16,
       .groups = 5,
       .data = "beyond"},
      {.name = "garbage",
       .why = "the ends of 32 bits as sizes",
       .m = 40,
       .n = 12,
       .k = 16,
       .groups = 70,
       .data = "garbage"},
      {.name = "hostile",
       .why = "sizes that are anything, and NaN in all that is of no row",
       .m = 50,
       .n = 13,
       .k = 18,
       .groups = 9,
       .data = "hostile",
       .first = 1,
       .held = 7,
       .existing = true},
      {.name = "float_rhs",
       .why = "operands of two types",
       .m = 30,
       .n = 22,
       .k = 34,
       .groups = 3,
       .rhs_dtype = "f32"},
      {.name = "float_output",
       .why = "sums that are not rounded",
       .m = 30,
       .n = 22,
       .k = 34,
       .groups = 3,
       .existing = true,
       .output = "f32"},
  };
}

std::vector<GroupedCase> eight_bit_table(const GroupedSlots& slots, DType dtype) {
  const bool of_terms = slots.transposed;
  const auto all = [&](const Shape& rows, const Shape& terms) { return of_terms ? terms : rows; };
  // A quick check takes the third and the eighth case, or the one in the middle.
  std::vector<GroupedCase> cases{
      {.name = "no_terms", .why = "the product is 0", .m = 12, .n = 8, .k = 0, .groups = 3},
      {.name = "rows",
       .why = "a scale for each row and column, and rows of no group",
       .m = 60,
       .n = 36,
       .k = 150,
       .groups = 5,
       .data = "short",
       .first = 1,
       .output = "f16",
       .scale_lhs = all({60, 1}, {150, 1}),
       .scale_rhs = all({4, 1, 36}, {1, 36})},
      {.name = "matrices",
       .why = "a scale for all rows and for each matrix",
       .m = 40,
       .n = 24,
       .k = 20,
       .groups = 3,
       .existing = true,
       .output = "bf16",
       .scale_lhs = {1},
       .scale_rhs = all({3, 1, 1}, {1, 1})},
      {.name = "wild_scales",
       .why = "scales of 0, NaN and infinity stay in their row and column",
       .m = 30,
       .n = 19,
       .k = 40,
       .groups = 3,
       .data = "scales",
       .scale_lhs = all({30, 1}, {40, 1}),
       .scale_rhs = all({3, 1, 19}, {1, 19})},
      {.name = "row_blocks",
       .why = "128 rows and 128 columns share a scale, whatever their groups",
       .m = 150,
       .n = 140,
       .k = 150,
       .groups = 4,
       .scale_lhs = {2, 1},
       .scale_rhs = all({4, 1, 2}, {1, 2})},
      {.name = "columns",
       .why = "all operands by columns",
       .m = 45,
       .n = 28,
       .k = 36,
       .groups = 4,
       .data = "short",
       .existing = !of_terms || dtype != DType::kI8,
       .columns = true},
      {.name = "ragged",
       .why = "sizes that divide no tile and no vector, and empty groups",
       .m = 71,
       .n = 53,
       .k = 29,
       .groups = 7}};
  if (dtype == DType::kI8) std::swap(cases[2], cases[5]);
  cases.push_back({.name = "largest",
                   .why = "sums beyond the whole numbers of float",
                   .m = of_terms ? 3000 : 12,
                   .n = 20,
                   .k = of_terms ? 12 : 3000,
                   .groups = 2,
                   .data = "largest"});
  if (of_terms) return cases;
  cases.push_back({.name = "blocks",
                   .why = "a scale for 1 x 128 of lhs, for 128 x 128 of rhs",
                   .m = 40,
                   .n = 140,
                   .k = 290,
                   .groups = 3,
                   .existing = true,
                   .output = "f32",
                   .scale_lhs = {40, 3},
                   .scale_rhs = {3, 3, 2}});
  cases.push_back({.name = "turned",
                   .why = "matrices as weights lie, their scales, too",
                   .m = 67,
                   .n = 40,
                   .k = 136,
                   .groups = 4,
                   .data = "short",
                   .transpose_rhs = true,
                   .scale_lhs = {67, 2},
                   .scale_rhs = {4, 40, 2}});
  cases.push_back(cases.front());  // no terms
  cases.back().name = "no_blocks";
  cases.back().scale_lhs = {12, 0};
  if (dtype != DType::kI8)
    cases.push_back({.name = "mixed",
                     .why = "both 8-bit floats",
                     .m = 22,
                     .n = 30,
                     .k = 34,
                     .groups = 2,
                     .rhs_dtype = dtype == DType::kE5M2 ? "e4m3fn" : "e5m2"});
  // Those with scales of blocks are e4m3fn's in a quick check.
  for (const auto& [one, other] : {std::pair(2U, 9U), {6U, 8U}, {7U, 10U}})
    if (dtype == DType::kE4M3FN) std::swap(cases[one], cases[other]);
  return cases;
}

// Sizes of `groups` that are `rows` together.
std::vector<double> ragged_sizes(std::int64_t groups, std::int64_t rows,
                                 std::mt19937_64& generator) {
  std::vector<double> cuts{0, static_cast<double>(rows)};
  std::uniform_int_distribution<std::int64_t> any(0, rows);
  for (std::int64_t g = 1; g < groups; ++g)
    cuts.push_back(g % 3 == 0 ? cuts.back() : static_cast<double>(any(generator)));
  std::ranges::sort(cuts);
  std::vector<double> sizes;
  for (std::size_t i = 1; i < cuts.size(); ++i) sizes.push_back(cuts[i] - cuts[i - 1]);
  return sizes;
}

// NaN in what lies at `index` of an axis.
void hide(const HostTensor& tensor, std::size_t axis, std::int64_t index) {
  HostTensor slice = tensor;
  slice.spec.offset += index * slice.spec.strides[axis];
  slice.spec.shape[axis] = 1;
  slice.write(std::vector(static_cast<std::size_t>(slice.spec.elements()), std::nan("")));
}

std::vector<double> sizes_of(const Case& shape, std::int64_t groups, std::int64_t rows,
                             std::mt19937_64& generator) {
  const auto count = static_cast<std::size_t>(groups);
  if (groups == 0) return {};
  if (shape.data == "equal") return std::vector<double>(count, static_cast<double>(rows / groups));
  if (shape.data == "single") return std::vector<double>(count, 1);
  if (shape.data == "empty") return std::vector<double>(count, 0);
  if (shape.data == "hostile") return hostile_sizes(count, rows, generator);
  if (shape.data == "short") return ragged_sizes(groups, rows / 2, generator);
  std::vector<double> sizes = ragged_sizes(groups, rows, generator);
  constexpr double kLeast = std::numeric_limits<std::int32_t>::min();
  constexpr double kMost = std::numeric_limits<std::int32_t>::max();
  if (shape.data == "negative") sizes[count / 2] = -3;
  if (shape.data == "beyond") sizes[count / 2] += static_cast<double>(rows);
  if (shape.data == "garbage") {
    for (std::size_t i = 0; i < count; ++i) sizes[i] = i < 2 ? 5 : i % 2 == 0 ? kLeast : kMost;
  }
  return sizes;
}

}  // namespace

Case make_case(const GroupedSlots& slots, DType dtype, const GroupedCase& from) {
  Case result{.name = from.name, .why = from.why, .data = from.data};
  const DType rhs = *from.rhs_dtype != '\0' ? parse_dtype(from.rhs_dtype) : dtype;
  const bool sums = dtype == DType::kI8 && from.scale_lhs.empty() && from.scale_rhs.empty();
  const DType own = sums ? DType::kI32 : is_eight_bits(dtype) ? DType::kF32 : dtype;
  const DType output = *from.output != '\0' ? parse_dtype(from.output) : own;
  const std::int64_t held =
      from.held >= 0 ? from.held : std::max<std::int64_t>(0, from.groups - from.first);
  std::int64_t gap = from.gap;
  const auto set = [&](std::size_t slot, DType type, const Shape& shape) {
    if (slot == kNoOperand) return;
    result.operands.resize(std::max(result.operands.size(), slot + 1));
    result.operands[slot] = laid_out(type, shape, from, gap);
    gap += from.gap == 0 ? 0 : from.more;
  };
  const Shape left = slots.transposed ? Shape{from.k, from.m} : Shape{from.m, from.k};
  const Shape right = slots.transposed     ? Shape{from.m, from.n}
                      : from.transpose_rhs ? Shape{held, from.n, from.k}
                                           : Shape{held, from.k, from.n};
  const Shape product = slots.transposed ? Shape{held, from.k, from.n} : Shape{from.m, from.n};
  set(slots.lhs, dtype, left);
  set(slots.rhs, rhs, right);
  result.operands.resize(3);
  result.operands[slots.sizes] = TensorSpec::contiguous(DType::kI32, {from.groups});
  if (slots.backward()) {
    set(slots.grad_output, output, product);
    set(slots.grad_lhs, dtype, left);
    set(slots.grad_rhs, rhs, right);
    if (from.existing) set(slots.grad_existing, output, product);
  } else {
    if (from.existing) set(slots.existing, output, product);
    if (from.gap != 0 || from.columns) set(slots.output, output, product);
    const auto scale = [&](std::size_t slot, const Shape& shape) {
      if (shape.empty()) return;
      result.operands.resize(std::max(result.operands.size(), slot + 1));
      result.operands[slot] = TensorSpec::contiguous(DType::kF32, shape);
    };
    scale(slots.scale_lhs, from.scale_lhs);
    scale(slots.scale_rhs, from.scale_rhs);
    if (*from.output != '\0') result.options["output_dtype"] = std::string(from.output);
    if (slots.transposed && from.held >= 0) result.options["groups"] = held;
  }
  if (from.transpose_rhs && !slots.transposed) result.options["transpose_rhs"] = true;
  if (from.first != 0) result.options["group_offset"] = from.first;
  return result;
}

std::vector<Case> grouped_cases(const GroupedSlots& slots, DType dtype) {
  std::vector<Case> cases;
  for (const GroupedCase& from : is_eight_bits(dtype) ? eight_bit_table(slots, dtype) : table()) {
    if (slots.transposed && from.transpose_rhs) continue;
    cases.push_back(make_case(slots, dtype, from));
  }
  return cases;
}

std::vector<Case> grouped_edges(const GroupedSlots& slots, DType dtype, const Config& config) {
  // Variants are told by the tunables that only they have; the reference has none.
  if (config.get("STAGES", 0) != 0 || config.get("MATRIX_M", 0) != 0)
    return grouped_unit_edges(slots, dtype, config);
  std::int64_t rows = 8, columns = 32;
  if (const std::uint32_t width = config.get("VECTOR_WIDTH", 0); width != 0) {
    rows = config.at("BLOCK_M");
    columns = std::int64_t{2} * width;
  } else if (const std::uint32_t lanes = config.get("LANES_M", 0); lanes != 0) {
    rows = std::int64_t{config.at("ROWS")} * lanes;
    columns = std::int64_t{config.at("COLUMNS")} * (config.group().x / lanes);
  }
  const std::int64_t terms = config.get("BLOCK_K", 8);
  std::vector<Case> cases;
  for (const int step : {-1, 0, 1}) {
    const std::string name = std::string("edge") + (step < 0 ? "-1" : step > 0 ? "+1" : "");
    cases.push_back(make_case(slots, dtype,
                              {.name = name.c_str(),
                               .why = "groups at the edge of a tile in every direction",
                               .m = 2 * (rows + step),
                               .n = std::max<std::int64_t>(1, columns + step),
                               .k = std::max<std::int64_t>(1, terms + step),
                               .groups = 2,
                               .data = "equal"}));
  }
  return cases;
}

std::vector<Case> grouped_benchmarks(const GroupedSlots& slots, DType dtype) {
  const GroupedCase table[] = {
      {.name = "experts_8", .why = "ragged", .m = 16384, .n = 4096, .k = 7168, .groups = 8},
      {.name = "experts_32", .why = "ragged", .m = 32768, .n = 7168, .k = 2048, .groups = 32},
      {.name = "experts_64", .why = "ragged", .m = 65536, .n = 4096, .k = 7168, .groups = 64},
      {.name = "small_8", .why = "for processors", .m = 1024, .n = 512, .k = 512, .groups = 8},
      {.name = "decode_64",
       .why = "few rows of each group",
       .m = 128,
       .n = 1024,
       .k = 1024,
       .groups = 64}};
  std::vector<Case> cases;
  for (const GroupedCase& from : table) cases.push_back(make_case(slots, dtype, from));
  return cases;
}

std::vector<double> hostile_sizes(std::size_t groups, std::int64_t rows,
                                  std::mt19937_64& generator) {
  std::vector<double> sizes = ragged_sizes(static_cast<std::int64_t>(groups), rows, generator);
  const double numbers[] = {-1,
                            std::numeric_limits<std::int32_t>::min(),
                            std::numeric_limits<std::int32_t>::max(),
                            static_cast<double>(rows),
                            1e9,
                            0};
  for (double& size : sizes)
    if (generator() % 4 == 0) size = numbers[generator() % 6];
  return sizes;
}

void fill_grouped(const Problem& problem, const Case& shape, std::span<HostTensor> tensors) {
  const auto& call = problem.as<GroupedProblem>();
  const GroupedSlots& slots = call.slots;
  std::mt19937_64 generator(shape.seed * 1000003);
  const std::vector<double> sizes = sizes_of(shape, call.groups, call.m, generator);
  tensors[slots.sizes].write(sizes);
  const std::vector<GroupRange> ranges = group_ranges(sizes, call.m);
  const auto is_held = [&](std::int64_t row) {
    for (std::size_t g = 0; g < ranges.size(); ++g) {
      const std::int64_t held = static_cast<std::int64_t>(g) - call.first;
      if (row >= ranges[g].first && row < ranges[g].end) return held >= 0 && held < call.held;
    }
    return false;
  };
  std::vector<bool> held_rows(static_cast<std::size_t>(call.m));
  for (std::int64_t row = 0; row < call.m; ++row)
    held_rows[static_cast<std::size_t>(row)] = is_held(row);
  for (const std::size_t slot : {slots.lhs, slots.rhs, slots.existing, slots.grad_output}) {
    if (!problem.has(slot)) continue;
    const Shape& dims = problem.spec(slot).shape;
    std::vector<double> values =
        normal_numbers(static_cast<std::size_t>(problem.spec(slot).elements()), generator);
    const DType dtype = problem.spec(slot).dtype;
    if (is_eight_bits(dtype)) spread_codes(dtype, shape.data, values);
    if (dtype == DType::kI32)
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = i % 3 == 1 ? 0x7f912345 : values[i] * 0x1p27;  // as floats, signalling NaN
    kernel::write_repeated(tensors[slot], values);
    // The axis that groups share out, where the operand has it: nothing else is NaN.
    const std::size_t axis = slots.transposed && slot == slots.lhs ? 1 : 0;
    const bool is_shared = dims.size() == 2 && slot != slots.existing;
    for (std::int64_t row = 0; is_shared && row < dims[axis]; ++row)
      if (!held_rows[static_cast<std::size_t>(row)]) hide(tensors[slot], axis, row);
    // Matrices of groups without rows are not read.
    if (shape.data == "hostile" && slot == slots.rhs && dims.size() == 3) {
      for (std::int64_t held = 0; held < dims[0]; ++held) {
        const GroupRange& range = ranges[static_cast<std::size_t>(held + call.first)];
        if (range.first == range.end) hide(tensors[slot], 0, held);
      }
    }
  }
  for (const std::size_t slot : {slots.scale_lhs, slots.scale_rhs}) {
    if (!problem.has(slot)) continue;
    const auto elements = static_cast<std::size_t>(problem.spec(slot).elements());
    std::vector<double> values = repeated(normal_numbers(elements, generator), elements);
    spread_scales(shape.data, values);
    // A row's own scales are as little read as the row where it has no group.
    const Shape& dims = problem.spec(slot).shape;
    const bool of_rows = !slots.transposed && slot == slots.scale_lhs && dims.size() == 2;
    for (std::size_t i = 0; of_rows && dims[0] == call.m && i < values.size(); ++i)
      if (!held_rows[i / static_cast<std::size_t>(dims[1])]) values[i] = std::nan("");
    tensors[slot].write(values);
  }
}

}  // namespace tessera::operations::matmul
