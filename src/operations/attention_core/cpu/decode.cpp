// SPDX-License-Identifier: Apache-2.0
// attention/cpu/decode: few query rows on CPUs through OpenCL.
#include "operations/attention_core/cpu/decode.h"

#include <algorithm>

#include "kernel/tunable_list.inc"
#include "operations/attention_core/few_rows.hpp"

namespace tessera::operations::attention {
namespace {

std::vector<Tunable> tunables() {
  return {
#include "operations/attention_core/cpu/decode.def"
      kSplits,
  };
}

constexpr std::uint64_t kManyPrivateBytes = std::uint64_t{256} << 10;  // stays in a second cache

struct DecodeGeometry {
  bool valid = false;
  std::uint64_t private_bytes = 0;  // of one kv head of an item
};

// decode.h's macros read the locals here.
DecodeGeometry decode_geometry(const Config& config, const Problem& problem) {
  using Number = std::uint64_t;
#include "kernel/tunable_locals.inc"
#include "operations/attention_core/cpu/decode.def"
  const std::uint64_t HEAD_DIM = head_dim(problem);
  const std::uint64_t VALUE_DIM = value_dim(problem);
  const bool CODES = call_of(problem).has_codes();
  constexpr std::uint64_t kMost = 4096;
  for (const std::uint64_t value :
       {VECTOR_WIDTH, ROWS, BLOCK_K, TILE_KEYS, COLUMNS, HEADS, TILE_HEADS, TURN}) {
    if (value == 0 || value > kMost) return {};
  }
  if (TILE_KEYS * TILE_HEADS > VECTOR_WIDTH || !ATTN_DECODE_VALID) return {};
  return {.valid = static_cast<std::uint64_t>(call_of(problem).kv_heads) % HEADS == 0,
          .private_bytes = HEADS * ATTN_DECODE_PRIVATE_BYTES};
}

// As many items as keep every core busy; each split has keys enough to be worth merging. One split
// for each core where there are fewer groups than cores: partial results are dearer than a late
// core.
std::uint32_t default_splits(const Problem& problem, const DeviceProfile& profile,
                             std::uint32_t heads) {
  const AttentionProblem& call = call_of(problem);
  if (call.splits > 0) return static_cast<std::uint32_t>(call.splits);
  const std::int64_t sequences = call.packed ? call.sequences : call.batch;
  const std::int64_t groups = std::max<std::int64_t>(sequences * call.kv_heads / heads, 1);
  const std::int64_t units = std::max<std::int64_t>(profile.compute_units, 1);
  if (groups >= 4 * units) return 1;
  const std::int64_t most = std::max<std::int64_t>(keys_of_sequence(problem) / 256, 1);
  const std::int64_t items = groups < units ? units : 2 * units;
  return static_cast<std::uint32_t>(std::min<std::int64_t>(ceil_div(items, groups), most));
}

// One row waits for memory alone. It wants its keys in the order of memory and in long stretches,
// and nothing asked for ahead: fewer instructions for each line let the core look further ahead
// than what it asks for does (Zen 4). More rows have more to do with each key.
Config config_of(std::int64_t rows, std::uint32_t heads, std::uint32_t width) {
  const std::uint32_t tile_rows = rows >= 3 ? 4 : static_cast<std::uint32_t>(rows);
  const std::uint32_t per_vector = width / tile_rows;
  std::uint32_t tile_heads = 1;
  while (tile_rows < 4 && heads % (2 * tile_heads) == 0 && 4 * tile_heads <= per_vector)
    tile_heads *= 2;
  const auto block_rows =
      static_cast<std::uint32_t>(std::min<std::int64_t>(16, ceil_div(rows, tile_rows) * tile_rows));
  return {{"WG_X", 1},
          {"ROWS", block_rows},
          {"BLOCK_K", rows == 1 ? 256U : 64U},
          {"TILE_KEYS", per_vector / tile_heads},
          {"TILE_HEADS", tile_heads},
          {"TURN", block_rows > 4 ? 16U : tile_rows},
          {"AHEAD", rows == 1 ? 1U : 16384U},
          {"COLUMNS", per_vector},
          {"HEADS", heads},
          {"VECTOR_WIDTH", width}};
}

// Heads of one item: those of a key lie side by side in [batch, row, head, dim], and one stream of
// memory is better than many. On a Zen 4 eight heads gave 85 % of the bandwidth where one gave 69.
std::uint32_t heads_of(const Problem& problem, std::int64_t rows, std::uint32_t width) {
  const AttentionProblem& call = call_of(problem);
  const TensorSpec key = key_rows(problem);
  if (key.strides[2] != call.head_dim) return 1;
  for (std::uint32_t heads = 8; heads > 1; --heads) {
    const DecodeGeometry geometry = decode_geometry(config_of(rows, heads, width), problem);
    if (geometry.valid && geometry.private_bytes <= kManyPrivateBytes) return heads;
  }
  return 1;
}

std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  const AttentionProblem& call = call_of(problem);
  const std::uint32_t width = vector_width(profile);
  const std::int64_t rows = std::max<std::int64_t>(call.group() * rows_of_sequence(problem), 1);
  Config config = config_of(rows, heads_of(problem, rows, width), width);
  if (!decode_geometry(config, problem).valid) return {};
  config.set("SPLITS", default_splits(problem, profile, config.at("HEADS")));
  std::vector<Config> configs{config};
  config.set("BLOCK_K", 32);
  config.set("TURN", 16);
  configs.push_back(std::move(config));
  return configs;
}

AttentionTiling tiling(const Problem& problem, const Config& config) {
  const AttentionProblem& call = call_of(problem);
  AttentionTiling cut{.splits = splits_of(config), .maps = false};
  if (!call.packed) return cut;
  cut.pack = narrow(call.group());
  cut.listed = config.at("ROWS");
  return cut;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const DecodeGeometry geometry = decode_geometry(config, problem);
  if (!geometry.valid)
    return "has blocks that are not whole tiles (operations/attention_core/cpu/decode.h)";
  if (const Refusal no = rejects_private_bytes(geometry.private_bytes)) return no;
  if (Refusal no = rejects_many_rows(problem, "variant cpu is")) return no;
  if (const Refusal no = rejects_splits(problem, config)) return no;
  return rejects_long_offsets(problem, profile, scratch_of(problem, tiling(problem, config)).end);
}

Dim3 groups(const Problem& problem, const Config& config) {
  const AttentionProblem& call = call_of(problem);
  if (call.q_len == 0) return {0, 1, 1};
  const AttentionTiling cut = tiling(problem, config);
  return {cut.listed > 0 ? listed_items(problem, cut) : 1,
          static_cast<std::uint32_t>(call.kv_heads) / config.at("HEADS"),
          static_cast<std::uint32_t>(call.batch)};
}

Variant cpu_decode_variant(const AttentionSlots& slots) {
  Variant variant = forward_variant(
      slots, "cpu_decode",
      "features in vector lanes, the rows of a group share one pass over their keys", tunables(),
      {.opencl = "attention/cpu/decode.cl",
       .entry = "attention_cpu_decode",
       .tiling = tiling,
       .axes = dtype_axes,
       .groups = groups,
       .constants = code_constants,
       .takes_list = true,
       .takes_codes = true});
  variant.needs = opencl_cpu();
  variant.space = space;
  variant.rejects = rejects;
  return variant;
}

bool prefers_cpu_decode(const Problem& problem, const DeviceProfile& profile) {
  // Below 16 rows it was faster than attention/cpu/forward for groups of 1 and of 4 (Zen 4).
  const AttentionProblem& call = call_of(problem);
  return is_opencl_cpu(profile) &&
         (call.splits > 1 ||
          rows_of_sequence(problem) < static_cast<std::int64_t>(vector_width(profile)));
}

Config default_cpu_decode_config(const Problem& problem, const DeviceProfile& profile) {
  const std::vector<Config> configs = space(problem, profile);
  return configs.empty() ? Config{} : configs.front();
}

}  // namespace

Way cpu_decode(const AttentionSlots& slots) {
  return {.variant = cpu_decode_variant(slots),
          .rule = {.why = "few query rows are bound by the memory that holds the keys",
                   .when = prefers_cpu_decode,
                   .config = default_cpu_decode_config}};
}

}  // namespace tessera::operations::attention
