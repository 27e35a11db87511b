// SPDX-License-Identifier: Apache-2.0
#include "operations/norms/cases.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "base/normal_numbers.hpp"
#include "kernel/repeated.hpp"

namespace tessera::operations::norms {
namespace {

// What a call has beside input and output.
enum Has : unsigned {
  kNothing = 0,
  kHasWeight = 1,
  kHasBias = 2,
  kHasResidual = 4,
  kHasSum = 8,
  kWideWeight = 16,  // in f32
  kWideBias = 32,
  kAll = kHasWeight | kHasBias | kHasResidual | kHasSum,
};

struct NormCase {
  const char* name;
  const char* why;
  Shape shape{};
  unsigned has = kNothing;
  const char* data = "normal";
  Shape residual{};  // empty = the shape of input
  std::optional<double> epsilon{};
};

void set(Case& to, std::size_t slot, TensorSpec spec) {
  to.operands.resize(std::max(to.operands.size(), slot + 1));
  to.operands[slot] = std::move(spec);
}

// The gradients that a call can have are all wanted.
Case make(bool backward, DType dtype, const NormCase& from) {
  Case result{.name = from.name, .why = from.why, .data = from.data};
  const auto has = [&](Has what) { return (from.has & what) != 0; };
  const Shape row{from.shape.back()};
  const Shape& residual = from.residual.empty() ? from.shape : from.residual;
  const DType weight = has(kWideWeight) ? DType::kF32 : dtype;
  const DType bias = has(kWideBias) ? DType::kF32 : dtype;
  const auto add = [&](std::size_t slot, DType type, const Shape& shape) {
    set(result, slot, TensorSpec::contiguous(type, shape));
  };
  add(kInput, dtype, from.shape);
  if (has(kHasWeight)) add(kWeight, weight, row);
  if (has(kHasBias)) add(kBias, bias, row);
  if (has(kHasResidual)) add(kResidual, dtype, residual);
  if (has(kHasSum)) add(kSum, dtype, from.shape);
  if (backward) {
    add(kGradOutput, dtype, from.shape);
    if (has(kHasWeight)) add(kGradWeight, weight, row);
    if (has(kHasBias)) add(kGradBias, bias, row);
    if (has(kHasResidual)) add(kGradResidual, dtype, residual);
  }
  if (from.epsilon) result.options["epsilon"] = *from.epsilon;
  return result;
}

// Leading axes in the opposite order of memory, `gap` elements behind each row.
TensorSpec turned(DType dtype, const Shape& shape, std::int64_t gap) {
  TensorSpec spec{.dtype = dtype, .shape = shape, .strides = Shape(shape.size(), 1), .offset = gap};
  std::int64_t stride = shape.back() + gap;
  for (std::size_t axis = 0; axis + 1 < shape.size(); ++axis) {
    spec.strides[axis] = stride;
    stride *= shape[axis];
  }
  return spec;
}

Case strided(bool backward, DType dtype, const char* name, const char* why, const Shape& shape,
             std::int64_t gap) {
  Case result = make(backward, dtype, {.name = name, .why = why, .shape = shape, .has = kAll});
  std::int64_t more = 0;
  for (std::size_t slot = 0; slot < result.operands.size(); ++slot) {
    if (!result.operands[slot] || result.operands[slot]->shape != shape) continue;
    result.operands[slot] = turned(dtype, shape, gap * ++more);
  }
  set(result, backward ? std::size_t{kGradInput} : std::size_t{kOutput},
      turned(dtype, shape, gap * ++more));
  return result;
}

std::vector<NormCase> table() {
  return {
      {.name = "odd",
       .why = "sizes that divide no tile and no vector",
       .shape = {3, 5, 77},
       .has = kAll},
      {.name = "plain", .why = "no weight, no bias, whole vectors", .shape = {7, 128}},
      {.name = "one",
       .why = "rows of one element, one axis",
       .shape = {1},
       .has = kHasWeight | kHasBias},
      {.name = "vector", .why = "no leading axis", .shape = {100}, .has = kHasWeight},
      {.name = "single",
       .why = "many rows of one element: their variance is 0",
       .shape = {67, 1},
       .has = kAll},
      {.name = "no_rows",
       .why = "nothing to write, and gradients of weights that are 0",
       .shape = {0, 24},
       .has = kHasWeight | kHasBias},
      {.name = "weight", .why = "as in language models", .shape = {4, 9, 256}, .has = kHasWeight},
      {.name = "wide",
       .why = "weights in float beside 16-bit rows",
       .shape = {33, 132},
       .has = kAll | kWideWeight | kWideBias},
      {.name = "wide_odd",
       .why = "one of them only, where nothing is aligned",
       .shape = {9, 35},
       .has = kAll | kWideBias},
      {.name = "long_rows",
       .why = "rows that no work-group keeps",
       .shape = {5, 20011},
       .has = kHasWeight | kHasBias},
      {.name = "longest", .why = "rows of 65536", .shape = {2, 65536}, .has = kAll},
      {.name = "residual_row",
       .why = "a residual that is one row",
       .shape = {6, 7, 40},
       .has = kAll,
       .residual = {40}},
      {.name = "residual_batch",
       .why = "a residual that broadcasts over the batch",
       .shape = {6, 7, 36},
       .has = kAll,
       .residual = {7, 36}},
      {.name = "residual_inner",
       .why = "a residual that broadcasts between two axes",
       .shape = {4, 5, 3, 20},
       .has = kHasResidual | kHasWeight,
       .residual = {4, 1, 3, 20}},
      {.name = "residual_outer",
       .why = "a residual that broadcasts around an axis",
       .shape = {4, 5, 3, 20},
       .has = kHasResidual | kHasSum,
       .residual = {1, 5, 1, 20}},
      {.name = "shifted",
       .why = "a mean far from 0: the deviation must not cancel",
       .shape = {9, 300},
       .has = kHasWeight,
       .data = "shifted"},
      {.name = "constant",
       .why = "equal elements: epsilon is all that is left",
       .shape = {5, 64},
       .has = kHasWeight | kHasBias,
       .data = "constant"},
      {.name = "large",
       .why = "squares beyond what half holds",
       .shape = {6, 96},
       .has = kHasWeight,
       .data = "large"},
      {.name = "tiny",
       .why = "squares below the smallest float: epsilon decides",
       .shape = {6, 96},
       .has = kHasWeight,
       .data = "tiny"},
      {.name = "epsilon",
       .why = "another epsilon",
       .shape = {6, 50},
       .has = kHasWeight,
       .epsilon = 0.5},
      {.name = "wild",
       .why = "NaN and infinity stay in their rows",
       .shape = {9, 68},
       .has = kHasResidual | kHasSum,
       .data = "wild"},
  };
}

}  // namespace

std::vector<Case> conformance_cases(bool backward, DType dtype) {
  std::vector<Case> cases;
  for (const NormCase& from : table()) cases.push_back(make(backward, dtype, from));
  cases.push_back(strided(backward, dtype, "strided", "axes in unusual order, odd gaps and offsets",
                          {4, 3, 5, 22}, 3));
  cases.push_back(strided(backward, dtype, "strided_aligned",
                          "unusual order, but vectors are aligned", {4, 3, 5, 24}, 4));
  return cases;
}

std::vector<Case> edge_cases(bool backward, DType dtype, const Config& config) {
  const std::int64_t line = 4LL * config.get("VECTORS", 1) * config.get("WG_X", 4);
  const std::int64_t rows = config.get("WG_Y", config.get("ROWS", 1));
  std::vector<Case> cases;
  for (const int step : {-1, 0, 1}) {
    const std::string suffix = step < 0 ? "-1" : step > 0 ? "+1" : "";
    const std::string dim = "dim" + suffix, count = "rows" + suffix;
    cases.push_back(make(backward, dtype,
                         {.name = dim.c_str(),
                          .why = "the edge of what a line keeps in registers",
                          .shape = {3, std::max<std::int64_t>(1, line + step)},
                          .has = kAll}));
    cases.push_back(make(backward, dtype,
                         {.name = count.c_str(),
                          .why = "the edge of the rows of a work-group",
                          .shape = {std::max<std::int64_t>(1, rows + step), 20},
                          .has = kHasWeight | kHasBias}));
  }
  return cases;
}

namespace {

std::vector<Case> quantise(const StorageTypes& types, const std::vector<NormCase>& shapes) {
  std::vector<Case> cases;
  for (const NormCase& from : shapes) {
    cases.push_back(make(false, types, from));
    cases.back().options["quantise"] = std::string(to_string(types.of("output")));
  }
  return cases;
}

}  // namespace

std::vector<Case> quantised_cases(const StorageTypes& types) {
  return quantise(types, {{.name = "quantised",
                           .why = "rows that end within a word",
                           .shape = {7, 131},
                           .has = kHasWeight},
                          {.name = "quantised_wild",
                           .why = "NaN is no largest magnitude and stays in its row",
                           .shape = {9, 68},
                           .data = "wild"},
                          {.name = "quantised_all",
                           .why = "everything that a call may have, a residual that broadcasts",
                           .shape = {3, 5, 70},
                           .has = kAll | kWideWeight,
                           .data = "shifted",
                           .residual = {5, 70}},
                          {.name = "quantised_constant",
                           .why = "rows without a largest magnitude under layer_norm",
                           .shape = {4, 96},
                           .data = "constant"}});
}

std::vector<Case> quantised_edge_cases(const StorageTypes& types, const Config& config) {
  const std::int64_t line = 4LL * config.get("VECTORS", 1) * config.get("WG_X", 1);
  const std::int64_t lines = config.get("WG_Y", 1), groups = config.get("GROUPS", 1);
  return quantise(types,
                  {{.name = "dim-1",
                    .why = "a row that ends one element before what a line keeps",
                    .shape = {3, line - 1},
                    .has = kAll},
                   {.name = "dim", .why = "exactly what a line keeps", .shape = {2 * lines, line}},
                   {.name = "dim+1",
                    .why = "one element that is read again",
                    .shape = {3, line + 1},
                    .has = kAll},
                   {.name = "dim+8",
                    .why = "aligned vectors that are read again",
                    .shape = {3, line + 8},
                    .has = kHasWeight},
                   {.name = "rows+1",
                    .why = "one line without a row, or one group with two blocks of rows",
                    .shape = {std::min<std::int64_t>(lines * groups, 1024) + 1, 20},
                    .has = kHasWeight | kHasBias}});
}

std::vector<Case> quantised_benchmarks(const StorageTypes& types) {
  return quantise(types, {{.name = "r8192_d4096_quantised",
                           .why = "rows of a language model, for a product in 8 bits",
                           .shape = {8192, 4096},
                           .has = kHasWeight}});
}

std::vector<Case> benchmark_cases(bool backward, DType dtype) {
  return {make(backward, dtype,
               {.name = "r8192_d4096",
                .why = "rows of a language model",
                .shape = {8192, 4096},
                .has = kHasWeight}),
          make(backward, dtype,
               {.name = "r8192_d4096_residual",
                .why = "with what a block adds, and the sum that goes on",
                .shape = {8192, 4096},
                .has = kHasWeight | kHasResidual | kHasSum}),
          make(backward, dtype,
               {.name = "r65536_d768",
                .why = "many short rows",
                .shape = {65536, 768},
                .has = kHasWeight | kHasBias}),
          make(backward, dtype,
               {.name = "r1_d4096", .why = "one token", .shape = {1, 4096}, .has = kHasWeight})};
}

void fill_norm(const Problem& problem, const Case& shape, std::span<HostTensor> tensors) {
  const auto& call = problem.as<NormProblem>();
  const auto dim = static_cast<std::size_t>(call.dim);
  std::mt19937_64 generator(shape.seed * 1000003);
  for (std::size_t slot = 0; slot < tensors.size(); ++slot) {
    if (!problem.has(slot) || problem.operation->operands[slot].role != Role::kInput) continue;
    const auto elements = static_cast<std::size_t>(tensors[slot].spec.elements());
    std::vector<double> values = normal_numbers(elements, generator);
    if (slot == kInput) {
      if (shape.data == "constant") values.resize(elements);
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (shape.data == "shifted") values[i] += 1000;
        if (shape.data == "constant") values[i] = 0.1 * static_cast<double>(i / dim + 1);
        if (shape.data == "large")
          values[i] = problem.dtype == DType::kF16 ? 6e4 : 1e18 * values[i];
        if (shape.data == "tiny") values[i] *= problem.dtype == DType::kF16 ? 1e-7 : 1e-25;
      }
      if (shape.data == "wild") {
        values[dim + dim / 2] = std::numeric_limits<double>::quiet_NaN();
        values[2 * dim + 1] = std::numeric_limits<double>::infinity();
        values[2 * dim + 2] = -std::numeric_limits<double>::infinity();
      }
    }
    kernel::write_repeated(tensors[slot], values);
  }
}

}  // namespace tessera::operations::norms
