// SPDX-License-Identifier: Apache-2.0
#include "operations/matmul_core/cases.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "base/normal_numbers.hpp"
#include "kernel/repeated.hpp"
#include "operations/common/cases.hpp"
#include "operations/matmul_core/made_case.hpp"

namespace tessera::operations::matmul {
namespace {

std::vector<MatmulCase> shared_table() {
  return {
      {.name = "odd",
       .why = "sizes that divide no tile and no vector",
       .m = 37,
       .n = 53,
       .k = 29,
       .has = kHasBias},
      {.name = "whole", .why = "sizes that divide tiles", .m = 64, .n = 128, .k = 64},
      {.name = "one", .why = "one product", .m = 1, .n = 1, .k = 1, .has = kHasBias},
      {.name = "row", .why = "one row times a matrix", .m = 1, .n = 70, .k = 150, .has = kHasBias},
      {.name = "few_rows", .why = "as a language model decodes", .m = 5, .n = 96, .k = 260},
      {.name = "wide_rows",
       .why = "few rows times long ones",
       .m = 3,
       .n = 600,
       .k = 37,
       .has = kHasBias},
      {.name = "seven_rows",
       .why = "few rows, terms in parts, columns that fill no panel",
       .m = 7,
       .n = 77,
       .k = 531,
       .has = kHasBias},
      {.name = "column", .why = "a matrix times one column", .m = 75, .n = 1, .k = 130},
      {.name = "outer", .why = "one term", .m = 33, .n = 34, .k = 1, .has = kHasBias},
      {.name = "no_terms",
       .why = "the product is 0 where K is",
       .m = 5,
       .n = 6,
       .k = 0,
       .has = kHasBias},
      {.name = "no_rows",
       .why = "nothing to write, and gradients of weights that are 0",
       .m = 0,
       .n = 6,
       .k = 7,
       .has = kHasBias},
      {.name = "long", .why = "terms that are shared by work-groups", .m = 20, .n = 24, .k = 3000},
      {.name = "wild",
       .why = "NaN and infinity stay in their row",
       .m = 21,
       .n = 19,
       .k = 40,
       .data = "wild"},
      {.name = "gaps",
       .why = "unused memory between rows, vectors that are not aligned",
       .m = 23,
       .n = 27,
       .k = 35,
       .has = kHasBias,
       .layout = Layout::kGaps},
      {.name = "relu",
       .why = "an activation",
       .m = 18,
       .n = 36,
       .k = 20,
       .has = kHasBias,
       .activation = "relu"},
      {.name = "gelu",
       .why = "an activation, far from 0 too",
       .m = 18,
       .n = 36,
       .k = 20,
       .has = kHasBias,
       .activation = "gelu",
       .data = "far"},
      {.name = "gelu_tanh",
       .why = "an activation, far from 0 too",
       .m = 18,
       .n = 36,
       .k = 20,
       .has = kHasBias,
       .activation = "gelu_tanh",
       .data = "far"},
      {.name = "silu",
       .why = "an activation, far from 0 too, of aligned rows",
       .m = 24,
       .n = 40,
       .k = 72,
       .has = kHasBias,
       .activation = "silu",
       .data = "far"},
      {.name = "swiglu",
       .why = "pairs of columns",
       .m = 17,
       .n = 38,
       .k = 22,
       .has = kHasBias,
       .activation = "swiglu"},
      {.name = "geglu",
       .why = "pairs of columns, unaligned",
       .m = 17,
       .n = 38,
       .k = 22,
       .activation = "geglu",
       .layout = Layout::kGaps},
  };
}

std::vector<MatmulCase> matmul_table() {
  return {
      {.name = "nt", .why = "b as weights lie", .m = 40, .n = 136, .k = 72, .has = kTransposeB},
      {.name = "tn",
       .why = "a as gradients of weights take it",
       .m = 136,
       .n = 40,
       .k = 72,
       .has = kTransposeA},
      {.name = "tt",
       .why = "both transposed",
       .m = 41,
       .n = 35,
       .k = 43,
       .has = kTransposeA | kTransposeB},
      {.name = "columns",
       .why = "all operands by columns, the output too",
       .m = 31,
       .n = 22,
       .k = 26,
       .has = kAll,
       .activation = "silu",
       .layout = Layout::kColumns},
      {.name = "batched",
       .why = "batches of both, aligned",
       .m = 24,
       .n = 32,
       .k = 40,
       .batch_a = {3},
       .batch_b = {3}},
      {.name = "shared_b",
       .why = "b repeats: batches are rows",
       .m = 10,
       .n = 24,
       .k = 28,
       .has = kHasBias,
       .batch_a = {2, 3}},
      {.name = "shared_a",
       .why = "a repeats, and its gradient is a sum over batches",
       .m = 10,
       .n = 24,
       .k = 28,
       .batch_b = {2, 3}},
      {.name = "crossed",
       .why = "each repeats along another axis",
       .m = 9,
       .n = 14,
       .k = 11,
       .batch_a = {2, 1, 3},
       .batch_b = {4, 1}},
      {.name = "no_batches",
       .why = "nothing to write",
       .m = 9,
       .n = 14,
       .k = 11,
       .batch_a = {0},
       .batch_b = {1}},
      {.name = "everything",
       .why = "all that a product can have",
       .m = 35,
       .n = 45,
       .k = 24,
       .has = kAll,
       .activation = "gelu",
       .alpha = 0.5,
       .beta = -1.5},
      {.name = "gate",
       .why = "a gate without an activation",
       .m = 12,
       .n = 20,
       .k = 24,
       .has = kHasGate,
       .alpha = 2},
      {.name = "gated_pairs",
       .why = "all beside pairs of columns",
       .m = 12,
       .n = 40,
       .k = 24,
       .has = kAll,
       .activation = "swiglu",
       .batch_a = {2},
       .batch_b = {2}},
      {.name = "blank",
       .why = "beta of 0 leaves c unread, and its gradient is 0 beside NaN",
       .m = 12,
       .n = 20,
       .k = 24,
       .has = kHasAddend,
       .data = "blank",
       .beta = 0},
      {.name = "bias_column",
       .why = "a bias for each row",
       .m = 12,
       .n = 20,
       .k = 24,
       .has = kHasBias,
       .bias = {12, 1}},
      {.name = "bias_scalar",
       .why = "one bias for all",
       .m = 12,
       .n = 20,
       .k = 24,
       .has = kHasBias,
       .batch_a = {2},
       .bias = {1}},
      {.name = "bias_matrix",
       .why = "a bias for every sum, shared by batches",
       .m = 12,
       .n = 20,
       .k = 24,
       .has = kHasBias,
       .batch_a = {2},
       .batch_b = {2},
       .bias = {12, 20}},
      {.name = "bias_batches",
       .why = "a bias for each batch",
       .m = 12,
       .n = 20,
       .k = 24,
       .has = kHasBias,
       .batch_a = {2},
       .batch_b = {2},
       .bias = {2, 1, 20}},
      {.name = "float_b",
       .why = "operands of two types",
       .m = 22,
       .n = 30,
       .k = 34,
       .b_dtype = "f32"},
      {.name = "half_b",
       .why = "operands of two types",
       .m = 22,
       .n = 30,
       .k = 34,
       .b_dtype = "f16"},
      {.name = "float_output",
       .why = "sums that are not rounded",
       .m = 22,
       .n = 30,
       .k = 34,
       .has = kHasResidual | kHasAddend,
       .output = "f32"},
      {.name = "brain_output",
       .why = "an output of another type",
       .m = 22,
       .n = 30,
       .k = 34,
       .output = "bf16"},
  };
}

// What a configuration multiplies at once; columns and terms come in units.
struct Tile {
  std::int64_t m = 1, n = 1, k = 1, unit = 1;
};

bool is_mma(const Config& config) { return config.get("WARP_M", 0) != 0; }
bool is_hopper(const Config& config) { return config.get("STAGES", 0) != 0 && !is_mma(config); }

// Variants are told by the tunables that only they have; the reference has none.
Tile tile_of(const Config& config, DType dtype) {
  constexpr std::int64_t kHopperRows = 128, kHopperTerms = 64;
  if (is_hopper(config)) {
    constexpr std::int64_t kHopperBytes = 16;
    return {kHopperRows, config.at("BLOCK_N"), kHopperTerms,
            kHopperBytes / static_cast<std::int64_t>(size_of(dtype))};
  }
  if (config.get("GROUP_M", 0) != 0)
    return {config.at("BLOCK_M"), config.at("BLOCK_N"), config.at("BLOCK_K")};
  if (is_mma(config)) return {config.at("BLOCK_M"), config.at("BLOCK_N"), kHopperTerms};
  if (const std::uint32_t width = config.get("VECTOR_WIDTH", 0); width != 0)
    return {config.at("BLOCK_M"), std::int64_t{2} * width * config.at("PANELS"),
            config.at("BLOCK_K")};
  if (const std::uint32_t lanes = config.get("LANES_K", 0); lanes != 0)
    return {config.at("ROWS"), std::int64_t{config.at("COLUMNS")} * (config.get("WG_X", 1) / lanes),
            std::int64_t{4} * config.at("SQUARES") * lanes};
  const std::uint32_t lanes_m = config.get("LANES_M", 1);
  return {std::int64_t{config.get("ROWS", 8)} * lanes_m,
          std::int64_t{config.get("COLUMNS", 32)} * (config.get("WG_X", 1) / lanes_m),
          config.get("BLOCK_K", 8)};
}

}  // namespace

std::vector<Case> conformance_cases(const MatmulSlots& slots, DType dtype) {
  std::vector<Case> cases;
  const auto add = [&](const std::vector<MatmulCase>& table) {
    for (const MatmulCase& from : table) cases.push_back(make_case(slots, dtype, from));
  };
  if (is_eight_bits(dtype)) {
    add(eight_bit_table(slots, dtype));
  } else {
    add(shared_table());
    if (!slots.linear) add(matmul_table());
  }
  add(codes_table(slots, dtype));
  return cases;
}

std::vector<Case> edge_cases(const MatmulSlots& slots, DType dtype, const Config& config) {
  const Tile tile = tile_of(config, dtype);
  const bool eight = is_eight_bits(dtype);
  // Hopper multiplies bytes along the terms only.
  const unsigned turned = eight && is_hopper(config) ? kTransposeB : kNothing;
  std::vector<Case> cases;
  for (const int step : {-1, 0, 1}) {
    const std::string name = std::string("edge") + (step < 0 ? "-1" : step > 0 ? "+1" : "");
    cases.push_back(make_case(slots, dtype,
                              {.name = name.c_str(),
                               .why = "the edge of a tile in every direction",
                               .m = std::max<std::int64_t>(1, tile.m + step),
                               .n = std::max<std::int64_t>(1, tile.n + step * tile.unit),
                               .k = std::max<std::int64_t>(1, tile.k + step * tile.unit),
                               .has = eight ? turned : kHasBias}));
  }
  if (is_mma(config) || config.get("GROUP_M", 0) != 0) {
    // More steps of terms than are on their way, of tiles that operands fill; and shares of them.
    for (const auto& [name, has] :
         {std::pair{"steps", kNothing}, std::pair{"turned_steps", kTransposeB}}) {
      cases.push_back(make_case(slots, dtype,
                                {.name = name,
                                 .why = "whole tiles and steps, more than are on their way",
                                 .m = 2 * tile.m,
                                 .n = 2 * tile.n,
                                 .k = (has == kNothing ? 6 : 13) * tile.k,
                                 .has = static_cast<unsigned>(has)}));
    }
  }
  if (is_hopper(config)) {
    constexpr std::int64_t kRows = 16;  // of tiles
    cases.push_back(make_case(slots, dtype,
                              {.name = "turns",
                               .why = "more tiles than work-groups, of few terms",
                               .m = kRows * tile.m,
                               .n = (config.at("GROUPS") / kRows + 2) * tile.n,
                               .k = tile.k,
                               .has = turned}));
    for (const MatmulCase& from : hopper_table(slots, dtype, config))
      cases.push_back(make_case(slots, dtype, from));
  }
  return cases;
}

std::vector<Case> benchmark_cases(const MatmulSlots& slots, DType dtype) {
  const auto square = [](const char* name, std::int64_t size, unsigned has = kNothing) {
    return MatmulCase{.name = name, .why = "a square", .m = size, .n = size, .k = size, .has = has};
  };
  std::vector<MatmulCase> table{square("nn_1024", 1024), square("nn_4096", 4096)};
  table.push_back({.name = "row_8192",
                   .why = "one row: as fast as memory",
                   .m = 1,
                   .n = 8192,
                   .k = 8192,
                   .has = kTransposeB});
  if (!slots.linear && !slots.backward()) {
    table.push_back(square("nt_4096", 4096, kTransposeB));
    table.push_back(square("tn_4096", 4096, kTransposeA));
    table.push_back(square("nt_8192", 8192, kTransposeB));
    table.push_back({.name = "batched_64_1024",
                     .why = "batches",
                     .m = 1024,
                     .n = 1024,
                     .k = 1024,
                     .batch_a = {64},
                     .batch_b = {64}});
    table.push_back({.name = "gelu_4096",
                     .why = "with bias and activation",
                     .m = 4096,
                     .n = 4096,
                     .k = 4096,
                     .has = kHasBias | kTransposeB,
                     .activation = "gelu",
                     .scale_a = is_eight_bits(dtype) ? Shape{4096, 1} : Shape{}});
  }
  std::vector<Case> cases;
  for (const MatmulCase& from : table) cases.push_back(make_case(slots, dtype, from));
  return cases;
}

void fill_matmul(const Problem& problem, const Case& shape, std::span<HostTensor> tensors) {
  const MatmulSlots& slots = problem.as<MatmulProblem>().slots;
  std::mt19937_64 generator(shape.seed * 1000003);
  for (std::size_t slot = 0; slot < tensors.size(); ++slot) {
    if (!problem.has(slot) || problem.operation->operands[slot].role != tessera::Role::kInput)
      continue;
    std::vector<double> values =
        normal_numbers(static_cast<std::size_t>(tensors[slot].spec.elements()), generator);
    if (is_eight_bits(tensors[slot].spec.dtype))
      spread_codes(tensors[slot].spec.dtype, shape.data, values);
    if (slot == slots.scale_a || slot == slots.scale_b) spread_scales(shape.data, values);
    if (shape.data == "far" && slot == slots.bias) {
      for (double& value : values) value *= 20;
    }
    if (shape.data == "blank" && slot == slots.addend)
      std::ranges::fill(values, std::numeric_limits<double>::quiet_NaN());
    if (shape.data == "blank" && slot == slots.grad_output)
      values[values.size() / 2] = std::numeric_limits<double>::quiet_NaN();
    if (shape.data == "wild" && slot == slots.a) {
      const auto columns = static_cast<std::size_t>(tensors[slot].spec.shape.back());
      values[columns + columns / 2] = std::numeric_limits<double>::quiet_NaN();
      values[2 * columns + 1] = std::numeric_limits<double>::infinity();
      values[3 * columns] = -std::numeric_limits<double>::infinity();
    }
    kernel::write_repeated(tensors[slot], values);
  }
}

}  // namespace tessera::operations::matmul
