// SPDX-License-Identifier: Apache-2.0
// attention/mma/decode: few query rows on NVIDIA's GPUs from sm_80 on through OpenCL.
#include "operations/attention_core/mma/decode.h"

#include <algorithm>

#include "abi/storage.h"
#include "kernel/tunable_list.hpp"
#include "operations/attention_core/launch.hpp"
#include "operations/attention_core/mma/forward.h"

namespace tessera::operations::attention {
namespace {

std::vector<Tunable> tunables() {
  return {
#include "operations/attention_core/mma/decode.def"
      kSplits,
  };
}

constexpr std::int64_t kMostRows = 64;  // of a sequence
constexpr std::int64_t kFewRows = 16;   // below which it is the untuned choice
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
  return {.pack = narrow(call_of(problem).group()),
          .splits = splits_of(config),
          .maps = false,
          .listed = call_of(problem).packed ? config.at("ROWS") : 0};
}

std::int64_t packed_rows(const Problem& problem) {  // of a kv head and a sequence
  return call_of(problem).group() * rows_of_sequence(problem);
}

Dim3 groups(const Problem& problem, const Config& config) {
  const AttentionProblem& call = call_of(problem);
  const AttentionTiling cut = tiling(problem, config);
  return {cut.listed > 0 ? listed_items(problem, cut)
                         : ceil_div(packed_rows(problem), config.at("ROWS")),
          narrow(call.kv_heads), narrow(call.batch)};
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
                                      : splits_of_few_rows(problem, profile, groups(problem, config)));
      configs.push_back(std::move(config));
    }
  }
  if (packed_rows(problem) > 8) {
    std::ranges::stable_partition(configs,
                                  [](const Config& config) { return config.at("ROWS") == 16; });
  }
  return configs;
}

// What a row hides or adds beyond lengths, causal masks, windows and sinks.
constexpr std::uint32_t kPairs = POLICY_HIDES | POLICY_ADDS | POLICY_DROPOUT;

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const AttentionProblem& call = call_of(problem);
  if ((call.features & kPairs) != 0) {
    return "takes no masks, biases, slopes, segments, positions and dropout; variant decode does";
  }
  if (rows_of_sequence(problem) > kMostRows) {
    return "is for few query rows, " + std::to_string(kMostRows) +
           " at most; variants mma and tile are for more";
  }
  const FewRowsGeometry geometry = geometry_of(problem, config);
  if (!geometry.valid) return "has no such parts (operations/attention_core/mma/decode.h)";
  if (!is_aligned(problem, geometry.part)) {
    return "reads " + std::to_string(geometry.part) +
           " elements at once, of which some dim, offset or stride is no multiple";
  }
  if (geometry.local_bytes > ATTN_MMA_MOST_LOCAL_BYTES) {
    return "needs " + std::to_string(geometry.local_bytes) + " bytes of work-group memory, and " +
           std::to_string(ATTN_MMA_MOST_LOCAL_BYTES) + " are everywhere";
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

bool prefers_mma_decode(const Problem& problem, const DeviceProfile& profile) {
  return has(profile.features, Feature::kMmaSync) && rows_of_sequence(problem) < kFewRows &&
         packed_rows(problem) >= kLeastShared;
}

Config default_mma_decode_config(const Problem& problem, const DeviceProfile& profile) {
  const std::vector<Config> configs = space(problem, profile);
  return configs.empty() ? Config{} : configs.front();
}

}  // namespace

Way mma_decode(const AttentionSlots& slots) {
  return {.variant = mma_decode_variant(slots),
          .rule = {.why = "few query rows that share keys, which matrix instructions read once",
                   .when = prefers_mma_decode,
                   .config = default_mma_decode_config}};
}

}  // namespace tessera::operations::attention
