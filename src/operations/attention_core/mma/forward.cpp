// SPDX-License-Identifier: Apache-2.0
// attention/mma/forward: NVIDIA's GPUs from sm_80 on through OpenCL.
#include "operations/attention_core/mma/forward.h"

#include <algorithm>

#include "kernel/config_order.hpp"
#include "kernel/gpu.hpp"
#include "kernel/tunable_list.inc"
#include "operations/attention_core/launch.hpp"
#include "operations/attention_core/mma/clean_cuts.hpp"

namespace tessera::operations::attention {
namespace {

constexpr std::uint32_t kMostColumns = 256;

std::vector<Tunable> tunables() {
  return {
#include "operations/attention_core/mma/forward.def"
      kSplits,
  };
}

std::uint32_t element_bytes(const Problem& problem) {
  return static_cast<std::uint32_t>(size_of(problem.dtype));
}

struct MmaGeometry {
  bool valid = false;
  std::uint32_t local_bytes = 0;
  std::uint32_t registers = 0;  // of one item, for matrices
};

MmaGeometry geometry_of(const Problem& problem, const Config& config) {
  // forward.h's macros read these locals.
  using Number = std::uint32_t;
#include "kernel/tunable_locals.inc"
#include "operations/attention_core/mma/forward.def"
  const std::uint32_t HEAD_DIM = head_dim(problem);
  const std::uint32_t VALUE_DIM = value_dim(problem);
  const std::uint32_t MMA_ELEMENT_BYTES = element_bytes(problem);
  constexpr std::uint32_t kMost = 4096;  // keeps every product below in 32 bits
  if (BLOCK_Q > kMost || BLOCK_K > kMost || !(ATTN_MMA_VALID)) return {};
  return {.valid = true, .local_bytes = ATTN_MMA_LOCAL_BYTES, .registers = ATTN_MMA_REGISTERS};
}

AttentionTiling tiling(const Problem& problem, const Config& config) {
  AttentionTiling cut{
      .rows = config.at("BLOCK_Q"), .keys = config.at("BLOCK_K"), .splits = splits_of(config)};
  if (call_of(problem).is_paged()) cut.listed = cut.rows;
  return cut;
}

Dim3 groups(const Problem& problem, const Config& config) {
  return listed_groups(problem, tiling(problem, config), config.at("BLOCK_Q"));
}

// Whether policies may ask for single pairs.
bool has_pairs(const AttentionProblem& call) { return call.policies && !call.is_paged(); }

std::vector<Define> constants(const Problem& problem, const Config& /*config*/) {
  const AttentionProblem& call = call_of(problem);
  const bool general = has_pairs(call) || call.soft_cap > 0 || !folds_into_exponent(call.scale);
  return {{"HEAD_DIM", head_dim(problem)},
          {"VALUE_DIM", value_dim(problem)},
          {"ALIGNED", is_aligned(problem, 16 / element_bytes(problem)) ? 1U : 0U},
          {"GENERAL_SCORE", general ? 1U : 0U}};
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  if (head_dim(problem) > kMostColumns || value_dim(problem) > kMostColumns) {
    return "takes dims up to 256, not " + std::to_string(head_dim(problem)) + " and " +
           std::to_string(value_dim(problem));
  }
  const MmaGeometry geometry = geometry_of(problem, config);
  if (!geometry.valid) return "has no such tiles (operations/attention_core/mma/forward.h)";
  if (geometry.registers > ATTN_MMA_MOST_REGISTERS) {
    return "needs " + std::to_string(geometry.registers) + " registers for matrices, and has " +
           std::to_string(ATTN_MMA_MOST_REGISTERS);
  }
  if (geometry.local_bytes > kernel::kAmpereLocalBytes) {
    return "needs " + std::to_string(geometry.local_bytes) + " bytes of work-group memory, and " +
           std::to_string(kernel::kAmpereLocalBytes) + " are everywhere";
  }
  if (const Refusal no = rejects_splits(problem, config)) return no;
  return rejects_long_offsets(problem, profile, scratch_of(problem, tiling(problem, config)).end);
}

Config make_config(std::uint32_t items, std::uint32_t block_q, std::uint32_t block_k,
                   std::uint32_t stages, std::uint32_t keep_q) {
  return {{"WG_X", items},
          {"BLOCK_Q", block_q},
          {"BLOCK_K", block_k},
          {"STAGES", stages},
          {"KEEP_Q", keep_q}};
}

// Most promising first, as measured on an H200; elsewhere those go first that spill nothing.
// Policies need registers of their own: with queries kept beside them, ptxas spills 13 to 37 for
// sm_80 and sm_86.
std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  const AttentionProblem& call = call_of(problem);
  const std::uint32_t columns = std::max(head_dim(problem), value_dim(problem));
  const bool keeps = !call.policies || has(profile.features, Feature::kWgmma);
  const std::uint32_t steps = keeps ? ceil_div(call.head_dim, 16) : 0;
  std::vector<Config> configs;
  if (problem.dtype == DType::kF32) {
    if (columns <= 64) {
      configs = {make_config(128, 64, 64, 1, 0), make_config(128, 128, 32, 1, 0),
                 make_config(128, 128, 64, 1, 0)};
    } else if (columns <= 128) {
      configs = {make_config(128, 128, 32, 1, 0), make_config(128, 64, 32, 1, 0),
                 make_config(128, 64, 64, 1, 0)};
    } else {
      configs = {make_config(128, 64, 16, 1, 0)};
    }
  } else if (columns <= 64) {
    if (!call.policies) configs.push_back(make_config(128, 128, 128, 1, 0));
    configs.push_back(make_config(128, 128, 64, 2, steps));
    configs.push_back(make_config(128, 64, 64, 1, steps));
  } else if (columns <= 128) {
    configs = {make_config(128, 128, has_pairs(call) ? 32 : 64, 1, 0),
               make_config(128, 128, has_pairs(call) ? 32 : 64, 2, 0)};
    if (!call.policies) configs.push_back(make_config(128, 128, 32, 1, 0));
    configs.push_back(make_config(128, 64, 64, 1, 0));
    configs.push_back(make_config(128, 64, 32, 1, 0));
  } else {
    configs = {make_config(128, 64, 64, 1, 0), make_config(256, 128, 32, 1, 0),
               make_config(128, 64, 32, 1, 0)};
  }
  constexpr std::int64_t kFewRows = 64;
  if (rows_that_share_keys(problem) <= kFewRows) {
    kernel::put_first(configs,
                      [](const Config& config) { return config.at("BLOCK_Q") == kFewRows; });
  }
  put_clean_cuts_first(configs, most_clean_registers(problem, profile), [&](const Config& config) {
    return geometry_of(problem, config).registers;
  });
  for (Config& config : configs) {
    config.set("SPLITS",
               filling_splits(problem, profile, groups(problem, config), config.at("BLOCK_K")));
  }
  return configs;
}

Variant mma_variant(const AttentionSlots& slots) {
  const ForwardKernel kernel{.opencl = "attention/mma/forward.cl",
                             .entry = "attention_mma",
                             .tiling = tiling,
                             .axes = dtype_axes,
                             .groups = groups,
                             .constants = constants};
  Variant variant = forward_variant(slots, "mma",
                                    "mma.sync on tiles that are copied asynchronously; weights "
                                    "stay in registers; floats as three "
                                    "products of tf32",
                                    tunables(), kernel);
  variant.needs = {.backends = {Backend::kOpenCL},
                   .features = Feature::kNvidiaPtx | Feature::kMmaSync};
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  variant.rounds_factors = true;
  variant.space = space;
  variant.rejects = rejects;
  return variant;
}

bool prefers_mma(const Problem& problem, const DeviceProfile& profile) {
  // Three products of tf32 beat float arithmetic where the matrix unit is several times as fast. On
  // GPUs for graphics it is not, and nobody has measured others.
  const bool pays = problem.dtype != DType::kF32 || has(profile.features, Feature::kWgmma);
  return has(profile.features, Feature::kMmaSync) && pays && rows_that_share_keys(problem) >= 16;
}

}  // namespace

Way mma(const AttentionSlots& slots) {
  return {
      .variant = mma_variant(slots),
      .rule = {.why = "matrix instructions, where their 16 rows are filled", .when = prefers_mma}};
}

}  // namespace tessera::operations::attention
