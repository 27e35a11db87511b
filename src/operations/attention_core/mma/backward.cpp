// SPDX-License-Identifier: Apache-2.0
// attention/mma/backward_keys and attention/mma/backward_queries: NVIDIA's GPUs from sm_80 on
// through OpenCL.
#include "operations/attention_core/mma/backward.h"

#include <algorithm>

#include "kernel/gpu.hpp"
#include "kernel/tunable_list.inc"
#include "operations/attention_core/mma/backward_form.hpp"
#include "operations/attention_core/mma/clean_cuts.hpp"

namespace tessera::operations::attention {
namespace {

std::vector<Tunable> tunables() {
  return {
#include "operations/attention_core/mma/backward.def"
  };
}

MmaBackwardGeometry geometry_of(const Problem& problem, const Config& config) {
  // The macros read these locals.
  using Number = std::uint32_t;
#include "kernel/tunable_locals.inc"
#include "operations/attention_core/mma/backward.def"
  const std::uint32_t HEAD_DIM = head_dim(problem);
  const std::uint32_t VALUE_DIM = value_dim(problem);
  constexpr std::uint32_t MMA_ELEMENT_BYTES = 2;
  constexpr std::uint32_t kMost = 4096;  // keeps every product below in 32 bits
  if (KEY_STEP > kMost || QUERY_STEP > kMost || !(ATTN_MMA_BACKWARD_VALID)) return {};
  return {.valid = true,
          .own_keys = ATTN_MMA_OWN(KEY_TILES),
          .own_rows = ATTN_MMA_OWN(QUERY_TILES),
          .local_bytes = std::max(ATTN_MMA_BACKWARD_BYTES(KEY_TILES, KEY_STEP),
                                  ATTN_MMA_BACKWARD_BYTES(QUERY_TILES, QUERY_STEP)),
          .registers = std::max(
              ATTN_MMA_BACKWARD_REGISTERS(KEY_TILES, KEY_STEP, ATTN_HEAD_STEPS + ATTN_VALUE_STEPS),
              ATTN_MMA_BACKWARD_REGISTERS(QUERY_TILES, QUERY_STEP, ATTN_HEAD_STEPS))};
}

Config make_config(std::uint32_t items, std::uint32_t key_tiles, std::uint32_t key_step,
                   std::uint32_t query_tiles, std::uint32_t query_step) {
  return {{"WG_X", items},
          {"KEY_TILES", key_tiles},
          {"KEY_STEP", key_step},
          {"QUERY_TILES", query_tiles},
          {"QUERY_STEP", query_step}};
}

// Most promising first, as measured on an H200; elsewhere those go first that spill nothing.
// Policies need registers of their own.
std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  const Config small = make_config(128, 1, 32, 1, 32);
  if (call_of(problem).policies) return {small};
  std::vector<Config> configs = {make_config(128, 1, 64, 2, 32), make_config(128, 1, 32, 2, 32),
                                 small};
  if (std::max(head_dim(problem), value_dim(problem)) <= 64) {
    configs = {make_config(128, 2, 32, 2, 32), make_config(128, 2, 32, 2, 64),
               make_config(128, 1, 64, 2, 32), small};
  }
  put_clean_cuts_first(configs, most_clean_registers(problem, profile), [&](const Config& config) {
    return geometry_of(problem, config).registers;
  });
  return configs;
}

Variant mma_backward_variant(const AttentionSlots& slots) {
  Variant variant = mma_backward_form(
      slots, {.name = "mma",
              .kernels = "backward",
              .geometry = geometry_of,
              .most_local_bytes = [](const DeviceProfile&) { return kernel::kAmpereLocalBytes; }});
  variant.idea =
      "mma.sync; dk and dv by a group per tile of keys, dq by one per tile of queries, no atomics";
  variant.tunables = tunables();
  variant.space = space;
  return variant;
}

}  // namespace

bool prefers_mma_backward(const Problem& problem, const DeviceProfile& profile) {
  return has(profile.features, Feature::kMmaSync) && problem.dtype != DType::kF32 &&
         call_of(problem).q_len >= 16;
}

Way mma_backward(const AttentionSlots& slots) {
  return {.variant = mma_backward_variant(slots),
          .rule = {.why = "matrix instructions, where their 16 rows are filled",
                   .when = prefers_mma_backward}};
}

}  // namespace tessera::operations::attention
