// SPDX-License-Identifier: Apache-2.0
// attention/cpu/forward and attention/cpu/bf16_forward: CPUs through OpenCL.
#include <algorithm>
#include <string>
#include <utility>

#include "kernel/tunable_list.inc"
#include "operations/attention_core/cpu/forward_geometry.hpp"
#include "operations/attention_core/cpu/products.hpp"
#include "operations/attention_core/launch.hpp"

namespace tessera::operations::attention {
namespace {

constexpr std::uint32_t kBlockK = 96;  // keys of a step; 48 to 144 measured within 1 %

CpuGeometry geometry_of(const Problem& problem, const Config& config, Products products) {
  return cpu_geometry(config, head_dim(problem), value_dim(problem),
                      products == Products::kBf16Dot);
}

std::vector<Tunable> tunables() {
  return {
#include "operations/attention_core/cpu/forward.def"
  };
}

Config make_config(std::uint32_t width, std::uint32_t block_q, std::uint32_t block_k,
                   std::uint32_t vectors, std::uint32_t key_rows, std::uint32_t value_columns) {
  return {{"WG_X", 1},
          {"BLOCK_Q", block_q},
          {"BLOCK_K", block_k},
          {"VECTORS", vectors},
          {"KEY_ROWS", key_rows},
          {"VALUE_COLUMNS", value_columns},
          {"VECTOR_WIDTH", width}};
}

// A tile of the kernel: vectors of queries, keys of a score tile, features of an output tile.
struct Tile {
  std::uint32_t vectors, key_rows, value_columns;
};

// The work-items that a grid with this many rows per item has.
std::int64_t items(const AttentionProblem& call, std::int64_t rows) {
  return (call.q_len + rows - 1) / rows * call.heads * call.batch;
}

// Whether rows see so few keys that it counts that a panel of R rows goes through R - 1 more of
// them. Panels of 32 rows instead of 64 took 4 % less at 256 keys per row (Zen 4, PoCL 3.1); from
// about 768 on they save less than the 4 % below.
bool is_narrow(const AttentionProblem& call) { return call.band_high - call.band_low < 768; }

// Query rows of an item: doubled while every core keeps enough items to balance and the item's
// copies stay in three quarters of a second cache. Causal items differ in length, so few heads need
// more of them.
std::uint32_t block_q(const Problem& problem, const DeviceProfile& profile, const Tile& tile,
                      Products products) {
  // Of 1 MiB, the least of the CPUs measured. With half of it, 2048 rows of dim 128 took 1 to 3 %
  // longer on two cores, more where others use the third cache (Zen 4).
  constexpr std::uint64_t kMostBytes = std::uint64_t{768} << 10;
  constexpr std::uint32_t kMostRows =
      512;  // 1024 measured the same, 256 0.5 to 1.5 % less (Xeon, AVX-512, PoCL 3.1)
  // Their panels share few keys: 512 took 8 % longer at 257 keys per row, as long at 513 (Zen 4).
  constexpr std::uint32_t kMostNarrowRows = 128;
  const auto& call = call_of(problem);
  const std::uint32_t most = is_narrow(call) ? kMostNarrowRows : kMostRows;
  const bool uneven = call.band_high < call.kv_len - 1 && call.heads * call.batch < 4;
  const std::int64_t wanted = (uneven ? 8 : 4) * std::max<std::int64_t>(profile.compute_units, 1);
  const std::uint32_t width = vector_width(profile);
  std::uint32_t rows = tile.vectors * width;
  while (2 * rows <= most && items(call, 2 * rows) >= wanted) {
    const Config larger =
        make_config(width, 2 * rows, kBlockK, tile.vectors, tile.key_rows, tile.value_columns);
    if (geometry_of(problem, larger, products).private_bytes > kMostBytes) break;
    rows *= 2;
  }
  return rows;
}

// Query rows that may fill a tile: those of a sequence, where tiles end with theirs.
std::int64_t rows_of_tiles(const Problem& problem) {
  return is_listed(problem) ? rows_of_sequence(problem) : call_of(problem).q_len;
}

// Registers decide the tiles: 24 accumulators where there are 32 vector registers, 12 where there
// are 16. 4 x 6 beat 3 x 8 by 2 % and 2 x 12 by 4 % with two FMA ports; with one port 2 x 12 is as
// good. Few queries leave no lane idle.
std::vector<Tile> tiles(const Problem& problem, const DeviceProfile& profile) {
  const std::uint32_t width = vector_width(profile);
  const auto& call = call_of(problem);
  if (rows_of_tiles(problem) <= width) return {{1, 16, 16}, {1, 12, 12}};
  if (width == 8) return {{2, 6, 4}, {2, 6, 6}};
  if (rows_of_tiles(problem) <= 2 * width || is_narrow(call)) return {{2, 12, 8}, {4, 6, 4}};
  return {{4, 6, 4}, {2, 12, 8}};
}

std::vector<Config> space(const Problem& problem, const DeviceProfile& profile, Products products) {
  std::vector<Config> configs;
  for (const Tile& tile : tiles(problem, profile)) {
    const std::uint32_t rows = block_q(problem, profile, tile, products);
    const std::uint32_t block_k = kBlockK / tile.key_rows * tile.key_rows;
    const auto add = [&](std::uint32_t q, std::uint32_t k) {
      configs.push_back(make_config(vector_width(profile), q, k, tile.vectors, tile.key_rows,
                                    tile.value_columns));
    };
    add(rows, block_k);
    if (rows >= 2 * tile.vectors * vector_width(profile)) add(rows / 2, block_k);
    add(rows, block_k / 2 / tile.key_rows * tile.key_rows);
  }
  return configs;
}

AttentionTiling tiling(const Problem& problem, const Config& config, Products products) {
  AttentionTiling cut{.rows = geometry_of(problem, config, products).panel_rows,
                      .keys = config.at("BLOCK_K")};
  if (call_of(problem).is_paged() || is_listed(problem)) cut.listed = config.at("BLOCK_Q");
  return cut;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile,
                Products products) {
  const CpuGeometry geometry = geometry_of(problem, config, products);
  if (!geometry.valid)
    return "has blocks that are not whole tiles (operations/attention_core/cpu/forward.h)";
  if (const Refusal no = rejects_private_bytes(geometry.private_bytes)) return no;
  if (call_of(problem).splits > 1) return "never splits the keys of a row";
  return rejects_long_offsets(problem, profile,
                              scratch_of(problem, tiling(problem, config, products)).end);
}

Variant variant_of(const AttentionSlots& slots, std::string name, std::string idea,
                   std::string kernel, Products products) {
  Variant variant = forward_variant(
      slots, std::move(name), std::move(idea), tunables(),
      {.opencl = std::move(kernel),
       .entry = "attention_cpu",
       .tiling = [products](const Problem& problem,
                            const Config& config) { return tiling(problem, config, products); },
       .axes = dtype_axes,
       .groups =
           [products](const Problem& problem, const Config& config) {
             return listed_groups(problem, tiling(problem, config, products), config.at("BLOCK_Q"));
           },
       .lists = is_listed});
  variant.needs = opencl_cpu();
  variant.space = [products](const Problem& problem, const DeviceProfile& profile) {
    return space(problem, profile, products);
  };
  variant.rejects = [products](const Problem& problem, const Config& config,
                               const DeviceProfile& profile) {
    return rejects(problem, config, profile, products);
  };
  return variant;
}

Variant cpu_variant(const AttentionSlots& slots) {
  return variant_of(
      slots, "cpu",
      "queries in vector lanes, K and V broadcast from row-major tiles, no local memory, no "
      "barriers",
      "attention/cpu/forward.cl", Products::kFloat);
}

Variant cpu_bf16_variant(const AttentionSlots& slots) {
  Variant variant =
      variant_of(slots, "cpu_bf16", "as cpu, on pairs of bfloat16 that AVX512_BF16 multiplies",
                 "attention/cpu/bf16_forward.cl", Products::kBf16Dot);
  variant.needs.features = Feature::kCpuBf16Dot;
  variant.dtypes = {DType::kBF16};
  variant.rounds_factors = true;
  return variant;
}

Config default_cpu_config(const Problem& problem, const DeviceProfile& profile) {
  return space(problem, profile, Products::kFloat).front();
}

Config default_cpu_bf16_config(const Problem& problem, const DeviceProfile& profile) {
  return space(problem, profile, Products::kBf16Dot).front();
}

}  // namespace

Way cpu_bf16(const AttentionSlots& slots) {
  return {
      .variant = cpu_bf16_variant(slots),
      .rule = {.why = kWhyCpuBf16, .when = prefers_cpu_bf16, .config = default_cpu_bf16_config}};
}

Way cpu(const AttentionSlots& slots) {
  return {.variant = cpu_variant(slots),
          .rule = {.why = "a CPU wants vectors in registers, not tiles in local memory",
                   .when = [](const Problem&, const DeviceProfile& p) { return is_opencl_cpu(p); },
                   .config = default_cpu_config}};
}

}  // namespace tessera::operations::attention
