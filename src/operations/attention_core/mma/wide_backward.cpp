// SPDX-License-Identifier: Apache-2.0
// attention/mma/wide_backward_keys and attention/mma/wide_backward_queries: NVIDIA's GPUs from
// sm_80 on through OpenCL, dims up to 256.
#include "operations/attention_core/mma/wide_backward.h"

#include <algorithm>

#include "kernel/gpu.hpp"
#include "kernel/tunable_list.inc"
#include "operations/attention_core/mma/backward_form.hpp"

namespace tessera::operations::attention {
namespace {

constexpr std::uint32_t kMostColumns = 256;

std::vector<Tunable> tunables() {
  return {
#include "operations/attention_core/mma/wide_backward.def"
  };
}

std::uint32_t columns(const Problem& problem) {
  return std::max(head_dim(problem), value_dim(problem));
}

MmaBackwardGeometry geometry_of(const Problem& problem, const Config& config) {
  // The macros read these locals.
  using Number = std::uint32_t;
#include "kernel/tunable_locals.inc"
#include "operations/attention_core/mma/wide_backward.def"
  const std::uint32_t HEAD_DIM = head_dim(problem);
  const std::uint32_t VALUE_DIM = value_dim(problem);
  constexpr std::uint32_t MMA_ELEMENT_BYTES = 2;
  if (!(ATTN_MMA_WIDE_VALID) || columns(problem) > kMostColumns) return {};
  return {.valid = true,
          .own_keys = KEYS,
          .own_rows = QUERIES,
          .local_bytes = std::max(ATTN_MMA_WIDE_BYTES(KEYS, KEY_STEP),
                                  ATTN_MMA_WIDE_BYTES(QUERIES, QUERY_STEP)),
          .registers =
              std::max(ATTN_MMA_WIDE_REGISTERS(KEYS, KEY_STEP, KEYS, ATTN_MMA_MOST_PITCH),
                       ATTN_MMA_WIDE_REGISTERS(QUERIES, QUERY_STEP, QUERIES / 2, ATTN_HEAD_PITCH))};
}

Config make_config(std::uint32_t keys, std::uint32_t key_step, std::uint32_t queries,
                   std::uint32_t query_step, std::uint32_t stages) {
  return {{"WG_X", ATTN_MMA_WIDE_ITEMS}, {"KEYS", keys},
          {"KEY_STEP", key_step},        {"QUERIES", queries},
          {"QUERY_STEP", query_step},    {"STAGES", stages}};
}

// Most promising first, of those that fit.
std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  std::vector<Config> configs = {make_config(64, 64, 128, 32, 2), make_config(64, 64, 64, 64, 2),
                                 make_config(64, 32, 64, 32, 2),  make_config(64, 32, 64, 32, 1),
                                 make_config(64, 16, 64, 16, 2),  make_config(64, 16, 64, 16, 1)};
  std::erase_if(configs, [&](const Config& config) {
    const MmaBackwardGeometry geometry = geometry_of(problem, config);
    return !geometry.valid || geometry.local_bytes > kernel::nvidia_local_bytes(profile);
  });
  constexpr std::size_t kMost = 3;
  configs.resize(std::min(configs.size(), kMost));
  return configs;
}

Variant mma_wide_backward_variant(const AttentionSlots& slots) {
  Variant variant = mma_backward_form(slots, {.name = "mma_wide",
                                              .kernels = "wide_backward",
                                              .geometry = geometry_of,
                                              .most_local_bytes = kernel::nvidia_local_bytes});
  variant.idea =
      "mma.sync; weights go through work-group memory, so that warps share the columns of sums";
  variant.tunables = tunables();
  variant.space = space;
  return variant;
}

bool prefers_mma_wide_backward(const Problem& problem, const DeviceProfile& profile) {
  constexpr std::uint32_t kNarrow = 128;
  return prefers_mma_backward(problem, profile) && columns(problem) > kNarrow &&
         columns(problem) <= kMostColumns;
}

}  // namespace

Way mma_wide_backward(const AttentionSlots& slots) {
  return {.variant = mma_wide_backward_variant(slots),
          .rule = {
              .why = "matrix instructions, where a row's sums do not fit the registers of one warp",
              .when = prefers_mma_wide_backward}};
}

}  // namespace tessera::operations::attention
