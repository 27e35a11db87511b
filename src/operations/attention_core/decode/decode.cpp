// SPDX-License-Identifier: Apache-2.0
// attention/decode: few query rows on GPUs.
#include "operations/attention_core/decode/decode.h"

#include <algorithm>

#include "abi/shared.h"
#include "base/large_registers.hpp"
#include "base/vendor_ids.hpp"
#include "kernel/gpu.hpp"
#include "kernel/option_access.hpp"
#include "kernel/tunable_list.inc"
#include "operations/attention_core/few_rows.hpp"

namespace tessera::operations::attention {
namespace {

std::vector<Tunable> tunables() {
  return {
#include "operations/attention_core/decode/decode.def"
      kSplits,
  };
}

struct DecodeGeometry {
  bool valid = false;
  std::uint64_t local_bytes = 0;
};

// decode.h's macros read the locals here.
DecodeGeometry decode_geometry(const Config& config, const Problem& problem) {
  using Number = std::uint32_t;
#include "kernel/tunable_locals.inc"
#include "operations/attention_core/decode/decode.def"
  const std::uint32_t DTYPE = dtype_axis(problem.dtype);
  const std::uint32_t CODES = call_of(problem).has_codes() ? 1 : 0;
  const std::uint32_t VALUE_DIM = value_dim(problem);
  constexpr std::uint32_t kMost = 4096;  // keeps every product below in 32 bits
  for (const std::uint32_t value : {WG_X, ROWS, BLOCK_K, LANES}) {
    if (value == 0 || value > kMost) return {};
  }
  if (WG_X < LANES || !(ATTN_DECODE_VALID)) return {};
  return {.valid = true, .local_bytes = ATTN_DECODE_LOCAL_BYTES};
}

std::vector<Define> constants(const Problem& problem, const Config& /*config*/) {
  return {{"HEAD_DIM", head_dim(problem)},
          {"VALUE_DIM", value_dim(problem)},
          {"VECTOR", vector_elements(problem)},
          {"CODE_TYPE", code_type(problem)},
          {"PAIRS", (call_of(problem).features & POLICY_PAIRS) != 0 ? 1U : 0U}};
}

std::vector<Define> axes(const Problem& problem, const DeviceProfile& profile) {
  std::vector<Define> axes = dtype_axes(problem, profile);
  if (profile.backend == Backend::kOpenCL)
    axes.push_back({"PTX", has(profile.features, Feature::kNvidiaPtx) ? 1U : 0U});
  return axes;
}

AttentionTiling tiling(const Problem& problem, const Config& config) {
  return few_rows_tiling(problem, config, config.at("ROWS"));
}

Dim3 groups(const Problem& problem, const Config& config) {
  return few_rows_groups(problem, config, config.at("ROWS"));
}

bool fits(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const DecodeGeometry geometry = decode_geometry(config, problem);
  return geometry.valid &&
         (profile.local_memory == 0 || geometry.local_bytes <= profile.local_memory) &&
         (profile.max_group_size == 0 || config.group().x <= profile.max_group_size);
}

std::uint32_t group_count(const Problem& problem, const Config& config) {
  const Dim3 count = groups(problem, config);
  return std::max(count.x * count.y * count.z, 1U);
}

std::uint32_t units_of(const DeviceProfile& profile) {
  return is_gpu(profile) ? kernel::compute_units_of(profile) : 1;
}

bool is_nvidia_vulkan(const DeviceProfile& profile) {
  return profile.backend == Backend::kVulkan && profile.vendor_id == kVendorNvidia;
}

// Loads of 16 bytes under way, of an item with one row. Mesa's compilers take more registers beside
// them on Intel's GPUs, and everywhere for rows that are not aligned, which they gather, and for
// codes, which they widen all at once. AMD's hold the places of keys in pages beside them: of 8,
// GCN's cores have one wave by RADV, and scalars spill to scratch memory on gfx90a by LLVM.
std::uint32_t most_loads(const Problem& problem, const DeviceProfile& profile) {
  std::uint32_t loads = profile.vendor_id == kVendorIntel ? 4 : 8;
  const bool vulkan = profile.backend == Backend::kVulkan;
  if (vulkan && (profile.vendor_id == kVendorIntel || vector_elements(problem) == 1)) loads /= 2;
  if (vulkan && call_of(problem).has_codes())
    return is_nvidia_vulkan(profile) ? loads / 2 : loads / 4;
  const bool places = profile.vendor_id == kVendorAmd && call_of(problem).is_paged();
  return places ? std::min(loads, 4U) : loads;
}

// Rows of an item, loads under way, and scores that a lane adds up in a step: what 255 registers
// hold, and Intel's 128 (ocloc spilled 34 to 77 of them with 4 rows, none with 2); through Vulkan,
// what leaves AMD's cores four waves, and rows of scores that Mesa keeps in registers. CPUs run the
// items of a group one after the other.
struct ItemShare {
  std::uint32_t rows, loads, lane_scores = 8;
};
ItemShare item_share(const Problem& problem, const DeviceProfile& profile) {
  if (is_cpu(profile)) return {.rows = 2, .loads = 2};
  const bool vulkan = profile.backend == Backend::kVulkan;
  const bool intel = profile.vendor_id == kVendorIntel;
  const std::uint32_t loads = most_loads(problem, profile);
  return {.rows = intel || (vulkan && profile.vendor_id == kVendorAmd) ? 2U : 8U,
          .loads = packed_rows(problem) <= (intel ? 1 : 2) ? loads : loads / 2,
          .lane_scores = vulkan ? 2U : 8U};
}

// Lanes for one part of every row each, and as many keys as the loads of 16 bytes take, or twice as
// many of codes. Queries and sums of the rows should fit registers: 32 features of each.
Config make_config(const Problem& problem, std::uint32_t items, const ItemShare& share) {
  constexpr std::uint32_t kFeatures = 32, kLeastScores = 4, kMostScores = 32;
  const bool codes = call_of(problem).has_codes();
  const std::uint32_t part = problem.dtype == DType::kF32 && !codes ? 4 : 8;
  const std::uint32_t dim = std::max(head_dim(problem), value_dim(problem));
  const auto lanes = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(kernel::next_power_of_two((dim + part - 1) / part), 4, 32));
  const std::uint32_t parts = ceil_div(dim, lanes * part);
  const auto all_rows = static_cast<std::uint32_t>(
      kernel::next_power_of_two(std::max<std::int64_t>(packed_rows(problem), 1)));
  const std::uint32_t rows =
      std::min({all_rows, share.rows, std::max(kFeatures / (parts * part), 1U)});
  const std::uint32_t scores = std::min(share.lane_scores * lanes, kMostScores);
  const std::uint32_t keys = std::clamp((codes ? 2 : 1) * share.loads / parts,
                                        ceil_div(kLeastScores, rows), scores / rows);
  return {{"WG_X", items}, {"ROWS", rows}, {"BLOCK_K", items / lanes * keys}, {"LANES", lanes}};
}

// Few keys of few heads: a second pass that merges splits would take longer than all else (H200: 13
// us for one pass over 1024 keys, 20 for two), so each compute unit reads the keys of a row or two
// on its own. More than 256 items need not fit the registers.
std::vector<Config> short_configs(const Problem& problem, const DeviceProfile& profile) {
  constexpr std::int64_t kShort = 1536;
  const AttentionProblem& call = call_of(problem);
  std::vector<Config> configs;
  if (!is_gpu(profile) || call.splits > 0 || keys_of_sequence(problem) > kShort) return configs;
  for (const std::uint32_t rows : {1U, 2U}) {
    ItemShare share = item_share(problem, profile);
    share.rows = rows;
    share.loads = most_loads(problem, profile) / rows;
    const Config config = make_config(problem, 256, share);
    if (fits(problem, config, profile) && group_count(problem, config) <= units_of(profile))
      configs.push_back(config);
  }
  return configs;
}

// Where the items of a group run one after the other, groups are small.
std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  std::vector<Config> configs;
  const ItemShare share = item_share(problem, profile);
  if (is_cpu(profile)) {
    configs = {make_config(problem, 32, share)};
  } else {
    configs = short_configs(problem, profile);
    // Through Vulkan a step's scores wait for all items of a group (H200, keys in pages: 3.9 TB/s
    // with 64, 3.3 with 128).
    std::vector<std::uint32_t> sizes{128, 256, 64, 32};
    if (is_nvidia_vulkan(profile)) sizes = {64, 128, 256, 32};
    for (const std::uint32_t items : sizes) {
      Config config = make_config(problem, items, share);
      if (!fits(problem, config, profile)) continue;
      config.set("SPLITS", splits_of_few_rows(problem, profile, groups(problem, config)));
      configs.push_back(std::move(config));
    }
  }
  const std::int64_t pinned = call_of(problem).splits;
  for (Config& config : configs) {
    if (pinned > 0) config.set("SPLITS", static_cast<std::uint32_t>(pinned));
    // By ocloc 4 of 128 registers spill of rows that are read element by element.
    if (is_xe_hpg(profile) && !is_aligned(problem, 4)) config.set(std::string(kLargeRegisters), 1);
  }
  return configs;
}

// Of an item's loops: over rows, keys, and what streams left of its columns, with sinks.
std::int64_t rounds_of(const Problem& problem, const Config& config) {
  const std::uint32_t rows = config.at("ROWS"), items = config.at("WG_X");
  const std::int64_t steps = ceil_div(call_of(problem).kv_len, config.at("BLOCK_K"));
  const std::int64_t columns = rows + ceil_div(std::int64_t{rows} * value_dim(problem), items);
  const std::size_t slot = call_of(problem).slots.sinks;
  const std::int64_t sinks = problem.has(slot) ? problem.spec(slot).shape.back() : 0;
  return rows + ceil_div(steps, splits_of(config)) +
         columns * (1 + 2 * std::int64_t{items / config.at("LANES")} + 2 * sinks);
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const DecodeGeometry geometry = decode_geometry(config, problem);
  if (!geometry.valid)
    return "has items that do not divide into streams (operations/attention_core/decode/decode.h)";
  if (Refusal no = rejects_many_rows(problem, "variant tile is")) return no;
  if (const Refusal no = rejects_far_keys(problem)) return no;
  if (const Refusal no = rejects_splits(problem, config)) return no;
  if (const Refusal no = rejects_rounds(rounds_of(problem, config), profile)) return no;
  if (Refusal no = rejects_list(problem, tiling(problem, config), profile)) return no;
  return rejects_long_offsets(problem, profile, scratch_of(problem, tiling(problem, config)).end);
}

Variant decode_variant(const AttentionSlots& slots) {
  Variant variant = forward_variant(
      slots, "decode",
      "keys stream through registers once for all query rows of a group; split keys", tunables(),
      {.opencl = "attention/decode/decode.cl",
       .entry = "attention_decode",
       .vulkan = "attention/decode/decode.comp",
       .tiling = tiling,
       .axes = axes,
       .groups = groups,
       .constants = constants,
       .takes_list = true,
       .takes_codes = true});
  variant.needs = {.features = Feature::kStorage16};
  variant.space = space;
  variant.local_bytes = [](const Problem& problem, const Config& config) -> std::uint64_t {
    return decode_geometry(config, problem).local_bytes;
  };
  variant.rejects = rejects;
  return variant;
}

// Not on Intel's GPUs through Vulkan, where Mesa spills the policies of rows beside four keys.
bool prefers_decode(const Problem& problem, const DeviceProfile& profile) {
  const bool vulkan = profile.backend == Backend::kVulkan;
  if (vulkan && profile.vendor_id == kVendorIntel) return false;
  return is_gpu(profile) && rows_of_sequence(problem) < kFewRows;
}

Config default_decode_config(const Problem& problem, const DeviceProfile& profile) {
  const std::vector<Config> configs = space(problem, profile);
  return configs.empty() ? Config{} : configs.front();
}

}  // namespace

Way decode(const AttentionSlots& slots) {
  return {.variant = decode_variant(slots),
          .rule = {.why = "few query rows are bound by the memory that holds the keys",
                   .when = prefers_decode,
                   .config = default_decode_config}};
}

}  // namespace tessera::operations::attention
