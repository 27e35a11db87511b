// SPDX-License-Identifier: Apache-2.0
// attention/mma/decode: few query rows on NVIDIA's GPUs from sm_80 on through OpenCL.
#include "operations/attention_core/mma/decode.h"

#include <algorithm>

#include "abi/storage.h"
#include "kernel/config_order.hpp"
#include "kernel/gpu.hpp"
#include "kernel/tunable_list.inc"
#include "operations/attention_core/few_rows.hpp"
#include "operations/attention_core/mma/decode.hpp"
#include "operations/attention_core/mma/forward.h"

namespace tessera::operations::attention {
namespace {

std::vector<Tunable> tunables() {
  return {
#include "operations/attention_core/mma/decode.def"
      kSplits,
  };
}

// Query rows of a kv head from which on a product's eight columns pay.
constexpr std::int64_t kLeastShared = 4;

std::uint32_t key_bits(const Problem& problem) {
  const AttentionProblem& call = call_of(problem);
  return static_cast<std::uint32_t>(bits_of(call.has_codes() ? call.stored : problem.dtype));
}

struct FewRowsGeometry {
  bool valid = false;
  std::uint32_t local_bytes = 0;
  std::uint32_t part = 0;  // elements that an item reads at once
};

// decode.h's macros read the locals here.
FewRowsGeometry geometry_of(const Problem& problem, const Config& config) {
  using Number = std::uint32_t;
#include "kernel/tunable_locals.inc"
#include "operations/attention_core/mma/decode.def"
  const std::uint32_t ATTN_KEY_BITS = key_bits(problem);
  const std::uint32_t HEAD_DIM = head_dim(problem);
  const std::uint32_t VALUE_DIM = value_dim(problem);
  if (!(ATTN_FEW_VALID)) return {};
  return {.valid = true,
          .local_bytes = ATTN_FEW_LOCAL_BYTES,
          .part = std::max({ATTN_FEW_KEY_PART, ATTN_FEW_VALUE_PART, 8U})};
}

AttentionTiling tiling(const Problem& problem, const Config& config) {
  return few_rows_tiling(problem, config, config.at("ROWS"));
}

Dim3 groups(const Problem& problem, const Config& config) {
  return few_rows_groups(problem, config, config.at("ROWS"));
}

// Whether a step's keys are in one page.
bool has_whole_pages(const Problem& problem) {
  return call_of(problem).paged.size % ATTN_FEW_KEYS == 0;
}

std::vector<Define> constants(const Problem& problem, const Config& /*config*/) {
  return {{"HEAD_DIM", head_dim(problem)},
          {"VALUE_DIM", value_dim(problem)},
          {"WHOLE_PAGES", has_whole_pages(problem) ? 1U : 0U},
          {"CODE_TYPE", code_type(problem)}};
}

std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  const std::int64_t pinned = call_of(problem).splits;
  std::vector<Config> configs;
  for (const std::uint32_t rows : {8U, 16U}) {
    if (rows > 8 && packed_rows(problem) <= 8) continue;
    for (const std::uint32_t items : {128U, 64U, 256U}) {
      Config config{{"WG_X", items}, {"ROWS", rows}};
      if (!geometry_of(problem, config).valid) continue;
      config.set("SPLITS", pinned > 0 ? static_cast<std::uint32_t>(pinned)
                                      : splits_of_few_rows(problem, profile,
                                                           groups(problem, config), 16 * 8 / rows));
      configs.push_back(std::move(config));
    }
  }
  if (packed_rows(problem) > 8) {
    kernel::put_first(configs, [](const Config& config) { return config.at("ROWS") == 16; });
  }
  return configs;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const AttentionProblem& call = call_of(problem);
  if ((call.features & POLICY_PAIRS) != 0) {
    return "takes no masks, biases, slopes, segments, positions and dropout; variant decode does";
  }
  if (Refusal no = rejects_many_rows(problem, "variants mma and tile are")) return no;
  const FewRowsGeometry geometry = geometry_of(problem, config);
  if (!geometry.valid) return "has no such parts (operations/attention_core/mma/decode.h)";
  if (!is_aligned(problem, geometry.part)) {
    return "reads " + std::to_string(geometry.part) +
           " elements at once, of which some dim, offset or stride is no multiple";
  }
  if (geometry.local_bytes > kernel::kAmpereLocalBytes) {
    return "needs " + std::to_string(geometry.local_bytes) + " bytes of work-group memory, and " +
           std::to_string(kernel::kAmpereLocalBytes) + " are everywhere";
  }
  if (const Refusal no = rejects_far_keys(problem)) return no;
  if (const Refusal no = rejects_splits(problem, config)) return no;
  if (Refusal no = rejects_list(problem, tiling(problem, config), profile)) return no;
  return rejects_long_offsets(problem, profile, scratch_of(problem, tiling(problem, config)).end);
}

Variant mma_decode_variant(const AttentionSlots& slots) {
  Variant variant =
      forward_variant(slots, "mma_decode",
                      "mma.sync for the query rows of a group, on keys, values and codes that "
                      "stream through registers; split keys",
                      tunables(),
                      {.opencl = "attention/mma/decode.cl",
                       .entry = "attention_mma_decode",
                       .tiling = tiling,
                       .axes = dtype_axes,
                       .groups = groups,
                       .constants = constants,
                       .takes_list = true,
                       .takes_codes = true});
  variant.needs = {.backends = {Backend::kOpenCL},
                   .features = Feature::kNvidiaPtx | Feature::kMmaSync};
  variant.dtypes = {DType::kF16, DType::kBF16};
  variant.rounds_factors = true;
  variant.space = space;
  variant.rejects = rejects;
  return variant;
}

// So few short rows that `decode` reads the keys of each by a compute unit of its own, without a
// second pass (H200, 1024 keys: 15.7 us beside 16.9).
bool is_short(const Problem& problem, const DeviceProfile& profile) {
  constexpr std::int64_t kShort = 1536;
  const AttentionProblem& call = call_of(problem);
  return !call.packed && !call.has_codes() && call.splits == 0 &&
         keys_of_sequence(problem) <= kShort &&
         packed_rows(problem) * call.kv_heads * std::max<std::int64_t>(call.batch, 1) <=
             kernel::compute_units_of(profile);
}

bool prefers_mma_decode(const Problem& problem, const DeviceProfile& profile) {
  if (is_short(problem, profile)) return false;
  return has(profile.features, Feature::kMmaSync) && rows_of_sequence(problem) < kFewRows &&
         packed_rows(problem) >= kLeastShared;
}

Config default_mma_decode_config(const Problem& problem, const DeviceProfile& profile) {
  const std::vector<Config> configs = space(problem, profile);
  return configs.empty() ? Config{} : configs.front();
}

// Of sequences of few rows among longer ones.
Config few_rows_config() { return {{"WG_X", 128}, {"ROWS", 8}}; }

std::vector<Define> few_rows_constants(const Problem& problem, const Config& /*config*/) {
  std::vector<Define> all = constants(problem, few_rows_config());
  all.push_back({"ROWS", few_rows_config().at("ROWS")});
  return all;
}

}  // namespace

bool takes_few_rows(const Problem& problem) {
  const AttentionProblem& call = call_of(problem);
  if (!call.packed || !call.is_paged() || (call.features & POLICY_PAIRS) != 0) return false;
  const FewRowsGeometry geometry = geometry_of(problem, few_rows_config());
  return geometry.valid && geometry.local_bytes <= kernel::kAmpereLocalBytes &&
         is_aligned(problem, geometry.part) && !rejects_far_keys(problem);
}

AttentionTiling few_rows_tiling(const Problem& problem, const AttentionTiling& others) {
  AttentionTiling cut = {.pack = narrow(call_of(problem).group()), .maps = false};
  if (!takes_few_rows(problem)) return cut;
  cut.listed = few_rows_config().at("ROWS");
  cut.most_rows = kNoFewRows - 1;
  cut.behind = 1 + 2 * listed_items(problem, others);
  return cut;
}

std::vector<Tunable> few_rows_tunables(std::uint32_t id, const std::vector<Tunable>& has) {
  std::vector<Tunable> all = tunables();
  std::erase_if(all, [&](const Tunable& one) {
    return one.launch_only || std::ranges::find(has, one.name, &Tunable::name) != has.end();
  });
  for (Tunable& one : all) {
    one.id = id++;
    one.is_constant = true;
  }
  return all;
}

std::vector<Pass> few_rows_passes(const AttentionSlots& slots, const Tiling& others) {
  const Tiling cut = [others](const Problem& problem, const Config& config) {
    return few_rows_tiling(problem, others(problem, config));
  };
  const ForwardKernel kernel = {
      .opencl = "attention/mma/decode.cl",
      .entry = "attention_mma_decode",
      .tiling = cut,
      .axes = dtype_axes,
      .groups =
          [cut](const Problem& problem, const Config& config) {
            const AttentionTiling tiling = cut(problem, config);
            if (tiling.listed == 0) return Dim3{0, 1, 1};
            return Dim3{listed_items(problem, tiling), narrow(call_of(problem).kv_heads), 1};
          },
      .constants = few_rows_constants};
  std::vector<Pass> passes = list_of(work_pass(slots, cut), policies_pass(slots, kernel, false));
  passes[0].name = "work_few_rows";
  passes[1].name = "few_rows";
  passes[1].group_size = [](const Config&) { return few_rows_config().group(); };
  passes[1].specialized_on = std::vector<std::string>{};
  for (const Tunable& one : few_rows_tunables(0, {})) passes[1].specialized_on->push_back(one.name);
  return passes;
}

Way mma_decode(const AttentionSlots& slots) {
  return {.variant = mma_decode_variant(slots),
          .rule = {.why = "few query rows that share keys, which matrix instructions read once",
                   .when = prefers_mma_decode,
                   .config = default_mma_decode_config}};
}

}  // namespace tessera::operations::attention
