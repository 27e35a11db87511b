// SPDX-License-Identifier: Apache-2.0
// attention/cooperative/forward: matrix units through Vulkan, of any vendor.
#include "operations/attention_core/cooperative/forward.h"

#include <span>
#include <utility>

#include "kernel/tunable_list.inc"
#include "operations/attention_core/cooperative/cuts.hpp"
#include "operations/attention_core/launch.hpp"

namespace tessera::operations::attention {
namespace {

std::vector<Tunable> tunables() {
  return {
#include "operations/attention_core/cooperative/forward.def"
  };
}

struct CooperativeGeometry {
  bool valid = false;
  std::uint32_t rows = 0;  // of a work-group
  std::uint32_t local_bytes = 0;
  std::uint32_t registers = 0;  // of one item, about
};

CooperativeGeometry geometry_of(const Problem& problem, const Config& config, bool registers,
                                std::uint32_t matrix_lanes = 0) {
  const std::uint32_t REGISTERS = registers ? 1 : 0;
  // forward.h's macros read these locals.
  using Number = std::uint32_t;
#include "kernel/tunable_locals.inc"
#include "operations/attention_core/cooperative/forward.def"
  const std::uint32_t MATRIX_LANES = matrix_lanes != 0 ? matrix_lanes : LANES;
  const std::uint32_t HEAD_DIM = head_dim(problem);
  const std::uint32_t VALUE_DIM = value_dim(problem);
  constexpr std::uint32_t kMost = 4096;  // keeps every product below in 32 bits
  for (const std::uint32_t value : {WG_X, ROWS, BLOCK_K, LANES, MATRIX_M, MATRIX_N, MATRIX_K}) {
    if (value > kMost) return {};
  }
  if (!(ATTN_COOPERATIVE_DIVISORS) || !(ATTN_COOPERATIVE_VALID)) return {};
  return {.valid = true,
          .rows = ATTN_BLOCK_Q,
          .local_bytes = ATTN_COOPERATIVE_LOCAL_BYTES,
          .registers = ATTN_COOPERATIVE_REGISTERS};
}

AttentionTiling tiling(const Problem& problem, const Config& config) {
  AttentionTiling cut{.rows = geometry_of(problem, config, false).rows,
                      .keys = config.at("BLOCK_K")};
  if (call_of(problem).is_paged()) cut.listed = cut.rows;
  return cut;
}

Dim3 groups(const Problem& problem, const Config& config) {
  const AttentionTiling cut = tiling(problem, config);
  return listed_groups(problem, cut, cut.rows);
}

CostsOf costs_of(const Problem& problem, bool registers) {
  return [&problem, registers](const Config& config, std::uint32_t matrix_lanes) {
    const CooperativeGeometry geometry = geometry_of(problem, config, registers, matrix_lanes);
    return CutCosts{geometry.valid, geometry.local_bytes, geometry.registers};
  };
}

struct Cut {
  std::uint32_t subgroups, rows, keys, buffers, prefetch;
};
// Fastest first on an H200, f16, 128 columns, 16384 keys: 218, 172, 167, 158 TFLOP/s; the fourth
// stays below 32 KiB of local memory.
constexpr Cut kCuts[] = {{4, 32, 32, 1, 0}, {4, 16, 32, 2, 1}, {8, 16, 32, 1, 1}, {4, 16, 32, 1, 0},
                         {4, 16, 16, 1, 0}, {2, 16, 16, 1, 0}, {2, 8, 16, 1, 0}};
// The same with scores in registers: 278, 253, 240, 237 TFLOP/s in one or two runs.
constexpr Cut kRegisterCuts[] = {{8, 16, 64, 1, 1}, {4, 16, 32, 1, 1}, {4, 16, 64, 1, 0},
                                 {4, 16, 32, 1, 0}, {4, 16, 16, 1, 0}, {2, 16, 16, 1, 0}};
// A CPU's compiler takes seconds for long rows of matrices.
constexpr Cut kCpuCuts[] = {{4, 8, 32, 1, 0}, {4, 8, 16, 2, 1}, {2, 8, 16, 1, 0}};
constexpr Cut kCpuRegisterCuts[] = {{4, 8, 16, 2, 1}, {4, 8, 16, 1, 0}, {2, 8, 16, 1, 0}};

std::span<const Cut> cuts(const DeviceProfile& profile, bool registers) {
  if (registers && is_cpu(profile)) return kCpuRegisterCuts;
  if (registers) return kRegisterCuts;
  if (is_cpu(profile)) return kCpuCuts;
  return kCuts;
}

std::vector<Config> space_of(const Problem& problem, const DeviceProfile& profile, bool registers) {
  std::vector<Config> own;
  for (const Cut& cut : cuts(profile, registers)) {
    own.push_back(cooperative_cut(profile, cut.subgroups, cut.buffers, cut.prefetch,
                                  {{"ROWS", cut.rows}, {"BLOCK_K", cut.keys}}));
  }
  return cooperative_space(problem, profile, registers, own, costs_of(problem, registers));
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile,
                bool registers) {
  if (Refusal no = rejects_cooperative(problem, config, profile, registers,
                                       geometry_of(problem, config, registers).valid, "forward.h"))
    return no;
  if (const Refusal no = rejects_splits(problem, config)) return no;
  return rejects_long_offsets(problem, profile, scratch_of(problem, tiling(problem, config)).end);
}

Variant cooperative(const AttentionSlots& slots, std::string name, std::string idea,
                    bool registers) {
  ForwardKernel kernel{.vulkan = "attention/cooperative/forward.comp",
                       .tiling = tiling,
                       .groups = groups,
                       .constants = cooperative_constants};
  kernel.axes = [registers](const Problem& problem, const DeviceProfile& profile) {
    std::vector<Define> axes = dtype_axes(problem, profile);
    axes.push_back({"REGISTERS", registers ? 1U : 0U});
    return axes;
  };
  kernel.takes_policies = !registers;
  Variant variant = forward_variant(slots, std::move(name), std::move(idea), tunables(), kernel);
  variant.needs = cooperative_needs(registers);
  variant.dtypes = {DType::kF16, DType::kBF16};
  variant.rounds_factors = true;
  variant.space = [registers](const Problem& problem, const DeviceProfile& profile) {
    return space_of(problem, profile, registers);
  };
  variant.local_bytes = [registers](const Problem& problem, const Config& config) -> std::uint64_t {
    return geometry_of(problem, config, registers).local_bytes;
  };
  variant.rejects = [registers](const Problem& problem, const Config& config,
                                const DeviceProfile& profile) {
    return rejects(problem, config, profile, registers);
  };
  return variant;
}

// Where every cut spills, the tile kernels take fewer cycles by the compilers' estimate.
bool prefers(const Problem& problem, const DeviceProfile& profile, bool registers) {
  if (profile.backend != Backend::kVulkan || rows_that_share_keys(problem) < kFewestRows)
    return false;
  const std::vector<Config> configs = space_of(problem, profile, registers);
  return !configs.empty() &&
         (is_cpu(profile) ||
          strain_of(problem, profile, configs.front(), costs_of(problem, registers)) != kSpills);
}

Variant cooperative_variant(const AttentionSlots& slots) {
  return cooperative(slots, "cooperative",
                     "cooperative matrices; scores become weights in local memory", false);
}

Variant cooperative_registers_variant(const AttentionSlots& slots) {
  return cooperative(slots, "cooperative_registers",
                     "cooperative matrices; scores become weights in registers", true);
}

bool prefers_cooperative(const Problem& problem, const DeviceProfile& profile) {
  return prefers(problem, profile, false);
}

bool prefers_cooperative_registers(const Problem& problem, const DeviceProfile& profile) {
  return prefers(problem, profile, true) && has(profile.features, Feature::kMatrixRegisters);
}

}  // namespace

Way cooperative_registers(const AttentionSlots& slots) {
  return {.variant = cooperative_registers_variant(slots),
          .rule = {.why = "the device's matrix unit, scores stay in its registers",
                   .when = prefers_cooperative_registers}};
}

Way cooperative(const AttentionSlots& slots) {
  return {.variant = cooperative_variant(slots),
          .rule = {.why = "the device's matrix unit", .when = prefers_cooperative}};
}

}  // namespace tessera::operations::attention
