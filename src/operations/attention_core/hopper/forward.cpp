// SPDX-License-Identifier: Apache-2.0
// attention/hopper/forward: NVIDIA's Hopper through OpenCL.
#include "operations/attention_core/hopper/forward.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "kernel/tunable_list.inc"
#include "operations/attention_core/hopper/args.h"
#include "operations/attention_core/hopper/problem.hpp"
#include "operations/attention_core/mma/decode.hpp"

namespace tessera::operations::attention {
namespace {

constexpr std::uint32_t kMapItems = 32;
constexpr std::uint32_t kMostColumns = 256;
// Scales over soft caps whose seventh power is a float far from its ends.
constexpr double kLeastSlope = 0x1p-10, kMostSlope = 0x1p10;
// Rows under a band from which three warpgroups are faster than two (1024: slower, 4096: faster).
constexpr std::int64_t kManyRows = 2048;

constexpr std::uint32_t kFewRowsId = 16;  // behind the constants of forward.def

std::vector<Tunable> tunables() {
  return {
#include "operations/attention_core/hopper/forward.def"
      {.id = 31, .name = kHopperGroups, .fallback = 132, .launch_only = true},
  };
}

struct HopperGeometry {
  bool valid = false;
  std::uint32_t local_bytes = 0;
  std::uint32_t registers = 0, most_registers = 0;  // of one item
};

// Keys that one copy takes: what of a step's lies in one page for certain.
std::uint32_t box_keys(const Problem& problem, const Config& config) {
  const AttentionProblem& call = call_of(problem);
  const std::uint32_t keys = config.at("BLOCK_K");
  return call.is_paged() ? std::gcd(static_cast<std::uint32_t>(call.paged.size), keys) : keys;
}

HopperGeometry geometry_of(const Problem& problem, const Config& config) {
  // forward.h's macros read these locals.
  using Number = std::uint32_t;
#include "kernel/tunable_locals.inc"
#include "operations/attention_core/hopper/forward.def"
  const std::uint32_t HEAD_DIM = padded_columns(head_dim(problem));
  const std::uint32_t VALUE_DIM = padded_columns(value_dim(problem));
  const std::uint32_t BOX_KEYS = box_keys(problem, config);
  const std::uint32_t ATTN_HOPPER_PAGED = call_of(problem).is_paged() ? 1 : 0;
  if (!(ATTN_HOPPER_VALID)) return {};
  return {.valid = true,
          .local_bytes = ATTN_HOPPER_LOCAL_BYTES,
          .registers = ATTN_HOPPER_REGISTERS,
          .most_registers = ATTN_HOPPER_MOST_REGISTERS};
}

std::uint32_t score_of(const AttentionProblem& call) {
  const bool capped = call.soft_cap > 0;
  if (!folds_into_exponent(capped ? call.soft_cap : call.scale)) return HOPPER_GENERAL;
  if (!capped) return HOPPER_SCALED;
  const double slope = call.scale / call.soft_cap;
  return slope >= kLeastSlope && slope <= kMostSlope ? HOPPER_CAPPED : HOPPER_GENERAL;
}

std::uint32_t band_of(const AttentionProblem& call, const Config& config) {
  // The table of rows holds the band; that it has an end decides about the order of the work.
  if (call.policies) return call.band_high < call.kv_len ? HOPPER_BAND_HIGH : 0;
  const Span seen = seen_keys(call);
  const std::int64_t high = call.band_high - seen.first, low = call.band_low - seen.first;
  std::uint32_t band = 0;
  if (high < seen.count() - 1) band |= HOPPER_BAND_HIGH;
  if (low + call.q_len - 1 > 0) band |= HOPPER_BAND_LOW;
  const std::int64_t keys = config.at("BLOCK_K");
  // Square tiles on the diagonal meet it in the last tile of a row only.
  const bool on_diagonal =
      band == HOPPER_BAND_HIGH && config.at("BLOCK_Q") == keys && high % keys == 0;
  if (band != 0 && !on_diagonal) band |= HOPPER_BAND_INSIDE;
  const std::int64_t rows = config.at("BLOCK_Q"), last_rows = call.q_len % rows;
  if (last_rows > 0 && last_rows <= rows - 64) band |= HOPPER_NO_ROWS;
  return band;
}

AttentionTiling tiling(const Problem& problem, const Config& config) {
  AttentionTiling cut{.rows = config.at("BLOCK_Q"), .keys = config.at("BLOCK_K")};
  if (call_of(problem).is_paged()) cut.listed = cut.rows;
  // A sequence of few rows would leave most of a tile empty.
  if (takes_few_rows(problem)) cut.least_rows = kNoFewRows;
  return cut;
}

// The tensor maps come after what the policies need.
std::uint64_t maps_start(const Problem& problem, const Config& config) {
  const AttentionTiling cut = tiling(problem, config);
  const std::uint64_t end = std::max(scratch_of(problem, cut).end,
                                     scratch_of(problem, few_rows_tiling(problem, cut)).end);
  return (end + HOPPER_ALIGNMENT - 1) / HOPPER_ALIGNMENT * HOPPER_ALIGNMENT;
}
std::uint64_t scratch_bytes(const Problem& problem, const Config& config) {
  return maps_start(problem, config) + HOPPER_SCRATCH;
}

std::vector<Define> constants(const Problem& problem, const Config& config) {
  const AttentionProblem& call = call_of(problem);
  return {{"HEAD_DIM", padded_columns(head_dim(problem))},
          {"VALUE_DIM", padded_columns(value_dim(problem))},
          {"BAND", band_of(call, config)},
          {"SCORE", score_of(call)},
          {"FEATURES", policy_arguments(problem, tiling(problem, config)).features},
          {"BOX_KEYS", box_keys(problem, config)}};
}

// Groups of heads of about one size: the last must not be a small one.
std::uint32_t heads_at_once(const Problem& problem, std::uint32_t band) {
  const AttentionProblem& call = call_of(problem);
  const std::int64_t heads = std::max<std::int64_t>(call.batch * call.heads, 1);
  if ((band & HOPPER_BAND_HIGH) == 0) return static_cast<std::uint32_t>(call.group());
  const std::int64_t keys = call.is_paged() ? keys_of_sequence(problem) : seen_keys(call).count();
  const std::int64_t bytes = 2 * keys * (call.head_dim + call.value_dim);
  const std::int64_t most = std::clamp(
      kHopperCachedBytes / std::max<std::int64_t>(bytes, 1) * call.group(), std::int64_t{1}, heads);
  const std::int64_t turns = (heads + most - 1) / most;
  return ceil_div(heads, turns);
}

std::vector<std::byte> arguments(const Problem& problem, const Config& config) {
  const AttentionProblem& call = call_of(problem);
  const Span keys = seen_keys(call);
  abi::HopperCall args{};
  args.core = core_arguments(problem, tiling(problem, config));
  args.policy = policy_arguments(problem, tiling(problem, config));
  args.core.band_low = static_cast<abi::i32>(call.band_low - keys.first);
  args.core.band_high = static_cast<abi::i32>(call.band_high - keys.first);
  args.batch = static_cast<abi::u32>(call.batch);
  args.head_dim = head_dim(problem);
  args.value_dim = value_dim(problem);
  args.first_key = static_cast<abi::u32>(keys.first);
  args.keys = static_cast<abi::u32>(keys.count());
  args.heads_at_once = heads_at_once(problem, band_of(call, config));
  args.maps = static_cast<abi::u32>(maps_start(problem, config) / HOPPER_ALIGNMENT);
  if (!call.is_paged()) return argument_bytes(args);
  return argument_bytes(abi::HopperPagedCall{.hopper = args, .pages = page_arguments(problem)});
}

std::uint32_t query_tiles(const Problem& problem, const Config& config) {
  const Dim3 groups = listed_groups(problem, tiling(problem, config), config.at("BLOCK_Q"));
  return groups.x * groups.y * groups.z;
}

// Which of the kernel's three bodies a pass is.
enum class Body : std::uint8_t { kPlain, kPolicies, kPaged };

auto axes_of(Body body) {
  return [body](const Problem& problem, const DeviceProfile& profile) {
    std::vector<Define> axes = dtype_axes(problem, profile);
    axes.push_back({"POLICY", body == Body::kPlain ? 0U : 1U});
    if (body == Body::kPaged) axes.push_back({"PAGED", 1});
    return axes;
  };
}

Pass tensor_maps_pass(const AttentionSlots& slots) {
  Pass pass;
  pass.name = "tensor_maps";
  pass.opencl = {.file = "attention/hopper/forward_maps.cl",
                 .entry = "attention_hopper_maps",
                 .ptx_target = "sm_90a"};
  pass.bindings = {slots.query, slots.key, slots.value, slots.output, kScratch};
  pass.axes = dtype_axes;
  if (slots.block_tables != kNoOperand) pass.axes = axes_of(Body::kPaged);
  pass.constants = [](const Problem& problem, const Config& config) -> std::vector<Define> {
    return {{"BOX_KEYS", box_keys(problem, config)}};
  };
  pass.specialized_on = {"BOX_KEYS"};
  pass.group_size = [](const Config&) { return Dim3{kMapItems, 1, 1}; };
  pass.groups = [](const Problem& problem, const Config& config) {
    return Dim3{std::min(query_tiles(problem, config), 1U), 1, 1};
  };
  pass.args = arguments;
  return pass;
}

Pass forward_pass(const AttentionSlots& slots, Body body) {
  Pass pass;
  pass.name = body == Body::kPlain ? "plain" : body == Body::kPolicies ? "policies" : "paged";
  pass.opencl = {
      .file = "attention/hopper/forward.cl", .entry = "attention_hopper", .ptx_target = "sm_90a"};
  pass.bindings = {slots.query, slots.key, slots.value, slots.output, slots.log_sum_exp};
  if (body == Body::kPlain) {
    pass.bindings.push_back(kScratch);
  } else {
    std::ranges::copy(policy_bindings(slots), std::back_inserter(pass.bindings));
  }
  if (body == Body::kPaged) pass.bindings.push_back(slots.block_tables);
  pass.axes = axes_of(body);
  pass.constants = constants;
  pass.specialized_on = std::vector<std::string>{};
  for (const Tunable& one : tunables()) pass.specialized_on->push_back(one.name);
  pass.groups = [body](const Problem& problem, const Config& config) {
    const bool wanted = call_of(problem).policies == (body != Body::kPlain);
    return Dim3{wanted ? std::min(query_tiles(problem, config), config.at(kHopperGroups)) : 0, 1,
                1};
  };
  pass.args = arguments;
  return pass;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const AttentionProblem& call = call_of(problem);
  const AttentionSlots& slots = call.slots;
  if (head_dim(problem) > kMostColumns || value_dim(problem) > kMostColumns) {
    return "takes dims up to 256, not " + std::to_string(head_dim(problem)) + " and " +
           std::to_string(value_dim(problem));
  }
  if (call.q_len > 0 && seen_keys(call).count() <= 0)
    return "wants at least one key that some row sees";
  for (const auto& [slot, rows] :
       {std::pair{slots.query, query_rows(problem)}, std::pair{slots.key, key_rows(problem)},
        std::pair{slots.value, value_rows(problem)},
        std::pair{slots.output, output_rows(problem)}}) {
    if (const Refusal no = rejects_rows(problem, slot, rows)) return no;
  }
  if (problem.has(slots.value_pages)) return "takes keys and values in one pool only";
  if (call.is_paged() && call.paged.size % 8 != 0)
    return "takes pages of a multiple of 8 tokens, not " + std::to_string(call.paged.size);
  const HopperGeometry geometry = geometry_of(problem, config);
  if (!geometry.valid) return "has no such tiles (operations/attention_core/hopper/forward.h)";
  if (geometry.registers > geometry.most_registers) {
    return "needs " + std::to_string(geometry.registers) + " registers for scores and outputs, " +
           "and has " + std::to_string(geometry.most_registers);
  }
  if (const Refusal no = rejects_local_bytes(geometry.local_bytes)) return no;
  if (const Refusal no = rejects_splits(problem, config)) return no;
  return rejects_long_offsets(problem, profile, scratch_bytes(problem, config));
}

Config two_warpgroups(std::uint32_t block_k) {
  return {{"WG_X", 384}, {"BLOCK_Q", 128}, {"BLOCK_K", block_k}, {"STAGES", 2}};
}
Config three_warpgroups() {
  return {{"WG_X", 512}, {"BLOCK_Q", 192}, {"BLOCK_K", 128}, {"STAGES", 2}, {"TURNS", 1}};
}

// Most promising first, as measured on an H100 and an H200: three warpgroups where exponentials
// take as long as products, unless a band leaves each row few tiles.
std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  const AttentionProblem& call = call_of(problem);
  const std::uint32_t widest =
      std::max(padded_columns(head_dim(problem)), padded_columns(value_dim(problem)));
  const bool narrow = widest <= 64;
  Config overlapping = three_warpgroups();
  overlapping.set("STAGES", 3);
  overlapping.set("OWN_OVERLAP", 1);
  Config long_tiles = two_warpgroups(176);
  long_tiles.set("SHARE_Q", 1);
  long_tiles.set("LATE_RESCALE", 1);
  std::vector<Config> configs;
  const bool pairs = (call.features & POLICY_PAIRS) != 0;
  if (pairs) {
    // Random numbers, and outputs of many columns, take the registers that long tiles want.
    configs = {two_warpgroups(128), two_warpgroups(64)};
    if (widest > 128 || (call.features & POLICY_DROPOUT) != 0) std::swap(configs[0], configs[1]);
    for (Config& config : configs) config.set("SHARE_Q", widest > 128 ? 1 : 0);
  } else if (narrow && call.q_len > 128) {
    const bool banded = (band_of(call, three_warpgroups()) & ~HOPPER_NO_ROWS) != 0;
    configs = {three_warpgroups(), two_warpgroups(128), overlapping};
    // A soft cap leaves the exponentials no room to overlap with what is their own.
    if (banded && score_of(call) == HOPPER_SCALED) std::swap(configs[0], configs[2]);
    if (banded && call.q_len < kManyRows) std::swap(configs[0], configs[1]);
  } else if (widest > 128) {
    // Local memory ends, and with outputs of more than 128 columns, registers do.
    const std::uint32_t keys = padded_columns(value_dim(problem)) > 128 ? 80 : 128;
    configs = {two_warpgroups(keys), two_warpgroups(keys), two_warpgroups(64)};
    configs[0].set("LATE_RESCALE", 1);
    for (Config& config : configs) config.set("SHARE_Q", 1);
  } else {
    Config turns = two_warpgroups(128);
    turns.set("TURNS", 1);
    configs = {two_warpgroups(128), turns, long_tiles, two_warpgroups(64)};
    // Short rows do not fall into turns by themselves.
    if ((band_of(call, turns) & HOPPER_BAND_LOW) != 0) std::swap(configs[0], configs[1]);
  }
  set_groups(configs, profile);
  return configs;
}

Variant hopper_variant(const AttentionSlots& slots) {
  Variant variant;
  variant.name = "hopper";
  variant.idea = "wgmma on tiles that one warp copies; weights stay in registers";
  variant.needs = {.backends = {Backend::kOpenCL},
                   .features = Feature::kNvidiaPtx | Feature::kWgmma};
  variant.dtypes = {DType::kF16, DType::kBF16};
  variant.rounds_factors = true;
  variant.tunables = tunables();
  if (slots.block_tables != kNoOperand) {
    variant.passes = pages_passes(slots, tiling);
    variant.passes.push_back(work_pass(slots, tiling));
    variant.passes.push_back(tensor_maps_pass(slots));
    variant.passes.push_back(forward_pass(slots, Body::kPaged));
    if (slots.query_start_loc != kNoOperand) {
      std::ranges::copy(few_rows_passes(slots, tiling), std::back_inserter(variant.passes));
      std::ranges::copy(few_rows_tunables(kFewRowsId, variant.tunables),
                        std::back_inserter(variant.tunables));
    }
  } else {
    variant.passes =
        list_of(rows_pass(slots), map_pass(slots, tiling), tensor_maps_pass(slots),
                forward_pass(slots, Body::kPlain), forward_pass(slots, Body::kPolicies));
  }
  if (slots.weights != kNoOperand) variant.passes.push_back(weights_pass(slots, tiling));
  variant.space = space;
  variant.scratch_bytes = scratch_bytes;
  variant.rejects = rejects;
  return variant;
}

// A narrow band of short rows has too few tiles of keys to keep its pipeline full: on an H200 4096
// rows of 8 heads of dim 64 that see 512 keys each take 0.041 ms, and 0.022 by `mma`.
bool is_narrow(const AttentionProblem& call) {
  return call.band_high - call.band_low <= 512 && std::max(call.head_dim, call.value_dim) <= 64;
}

bool prefers_hopper(const Problem& problem, const DeviceProfile& profile) {
  return has(profile.features, Feature::kWgmma) && problem.dtype != DType::kF32 &&
         rows_that_share_keys(problem) >= 64 && !is_narrow(call_of(problem));
}

}  // namespace

Way hopper(const AttentionSlots& slots) {
  return {.variant = hopper_variant(slots),
          .rule = {.why = "Hopper's matrix unit, where a warpgroup's 64 rows are filled",
                   .when = prefers_hopper}};
}

}  // namespace tessera::operations::attention
