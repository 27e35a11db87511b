// SPDX-License-Identifier: Apache-2.0
// attention/cooperative/backward: gradients by matrix units through Vulkan, of any vendor.
#include "operations/attention_core/cooperative/backward.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "base/vendor_ids.hpp"
#include "kernel/tunable_list.inc"
#include "operations/attention_core/backward_launch.hpp"
#include "operations/attention_core/cooperative/cuts.hpp"

namespace tessera::operations::attention {
namespace {

std::vector<Tunable> tunables() {
  return {
#include "operations/attention_core/cooperative/backward.def"
  };
}

// Of one of the two kernels.
struct Half {
  bool valid = false;
  std::uint32_t own = 0;  // rows of a work-group
  std::uint32_t local_bytes = 0;
  std::uint32_t registers = 0;  // of one item, about
};

Half half_of(const Problem& problem, const Config& config, bool registers, bool owns_keys,
             std::uint32_t matrix_lanes = 0) {
  // backward.h's macros read these locals.
  using Number = std::uint32_t;
#include "kernel/tunable_locals.inc"
#include "operations/attention_core/cooperative/backward.def"
  const std::uint32_t REGISTERS = registers ? 1 : 0, OWN_KEYS = owns_keys ? 1 : 0;
  const std::uint32_t ROWS = owns_keys ? KEY_ROWS : QUERY_ROWS;
  const std::uint32_t STEP = owns_keys ? KEY_STEP : QUERY_STEP;
  const std::uint32_t HELD = owns_keys ? KEYS_HELD : ROWS_HELD;
  const std::uint32_t MATRIX_LANES = matrix_lanes != 0 ? matrix_lanes : LANES;
  const std::uint32_t HEAD_DIM = head_dim(problem);
  const std::uint32_t VALUE_DIM = value_dim(problem);
  constexpr std::uint32_t kMost = 4096;  // keeps every product below in 32 bits
  for (const std::uint32_t value : {WG_X, ROWS, STEP, LANES, MATRIX_M, MATRIX_N, MATRIX_K}) {
    if (value > kMost) return {};
  }
  if (!(ATTN_BACK_DIVISORS) || !(ATTN_BACK_VALID)) return {};
  return {.valid = true,
          .own = ATTN_BACK_OWN,
          .local_bytes = ATTN_BACK_LOCAL_BYTES,
          .registers = ATTN_BACK_REGISTERS};
}

struct BackwardGeometry {
  bool valid = false;
  std::uint32_t own_keys = 0, own_rows = 0;
  std::uint32_t local_bytes = 0, registers = 0;  // of the kernel that takes more
};

BackwardGeometry geometry_of(const Problem& problem, const Config& config, bool registers,
                             std::uint32_t matrix_lanes = 0) {
  const Half keys = half_of(problem, config, registers, true, matrix_lanes);
  const Half queries = half_of(problem, config, registers, false, matrix_lanes);
  return {.valid = keys.valid && queries.valid,
          .own_keys = keys.own,
          .own_rows = queries.own,
          .local_bytes = std::max(keys.local_bytes, queries.local_bytes),
          .registers = std::max(keys.registers, queries.registers)};
}

// No map: groups look at the rows' intervals instead.
BackwardTiling tiling(const Problem& /*problem*/, const Config& /*config*/) {
  return {.map = {.maps = false}};
}

CostsOf costs_of(const Problem& problem, bool registers) {
  return [&problem, registers](const Config& config, std::uint32_t matrix_lanes) {
    const BackwardGeometry geometry = geometry_of(problem, config, registers, matrix_lanes);
    return CutCosts{geometry.valid, geometry.local_bytes, geometry.registers};
  };
}

struct Cut {
  std::uint32_t subgroups;
  std::uint32_t key_rows, key_step, keys_held;
  std::uint32_t query_rows, query_step, rows_held;
  std::uint32_t buffers, prefetch;
};
constexpr Cut kCuts[] = {{8, 16, 32, 1, 16, 32, 1, 1, 1}, {4, 16, 32, 1, 16, 32, 1, 1, 1},
                         {4, 16, 16, 1, 16, 16, 1, 1, 1}, {4, 16, 16, 1, 16, 16, 1, 1, 0},
                         {4, 16, 32, 0, 16, 32, 1, 1, 1}, {4, 16, 16, 0, 16, 32, 1, 1, 1},
                         {2, 16, 16, 0, 16, 16, 0, 1, 0}};
// On an H200, f16, 2048 rows of 64 columns: the first 181, the third and fourth 162 and 160
// TFLOP/s; of 128 the fifth 155.
constexpr Cut kRegisterCuts[] = {{8, 16, 32, 1, 16, 32, 1, 2, 1}, {8, 16, 32, 1, 16, 32, 1, 1, 1},
                                 {4, 16, 32, 1, 16, 32, 1, 2, 1}, {4, 16, 32, 1, 16, 32, 1, 1, 1},
                                 {4, 16, 16, 0, 16, 32, 1, 1, 1}, {2, 16, 16, 0, 16, 16, 0, 1, 0}};
// A CPU's compiler takes seconds for long rows of matrices.
constexpr Cut kCpuCuts[] = {{4, 8, 16, 1, 8, 16, 0, 1, 0}, {2, 8, 16, 0, 8, 8, 1, 2, 1}};

std::span<const Cut> cuts(const DeviceProfile& profile, bool registers) {
  if (is_cpu(profile)) return kCpuCuts;
  if (registers) return kRegisterCuts;
  return kCuts;
}

std::vector<Config> space_of(const Problem& problem, const DeviceProfile& profile, bool registers) {
  std::vector<Config> own;
  for (const Cut& cut : cuts(profile, registers)) {
    own.push_back(cooperative_cut(profile, cut.subgroups, cut.buffers, cut.prefetch,
                                  {{"KEY_ROWS", cut.key_rows},
                                   {"KEY_STEP", cut.key_step},
                                   {"QUERY_ROWS", cut.query_rows},
                                   {"QUERY_STEP", cut.query_step},
                                   {"KEYS_HELD", cut.keys_held},
                                   {"ROWS_HELD", cut.rows_held}}));
  }
  return cooperative_space(problem, profile, registers, own, costs_of(problem, registers));
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile,
                bool registers) {
  const AttentionProblem& call = call_of(problem);
  if (problem.has(call.slots.bias_gradient)) return "leaves no gradients of a bias";
  if ((call.features & POLICY_UNNORMALIZED) != 0)
    return "takes outputs that are divided by the sum of their weights";
  if (Refusal no = rejects_cooperative(problem, config, profile, registers,
                                       geometry_of(problem, config, registers).valid, "backward.h"))
    return no;
  return rejects_long_offsets(problem, profile,
                              backward_scratch_bytes(problem, tiling(problem, config)));
}

Pass kernel_pass(const AttentionSlots& slots, bool registers, bool owns_keys, bool policies) {
  Pass pass = backward_pass(owns_keys ? "keys" : "queries", tiling, policies);
  pass.vulkan = {.file = "attention/cooperative/backward.comp", .entry = "main"};
  pass.axes = [registers, owns_keys, policies](const Problem& problem,
                                               const DeviceProfile&) -> std::vector<Define> {
    return {{"DTYPE", dtype_axis(problem.dtype)},
            {"OWN_KEYS", owns_keys ? 1U : 0U},
            {"POLICY", policies ? 1U : 0U},
            {"REGISTERS", registers ? 1U : 0U}};
  };
  pass.constants = cooperative_constants;
  std::vector<std::string> names{"LANES",    "MATRIX_M", "MATRIX_N",  "MATRIX_K", "BUFFERS",
                                 "PREFETCH", "HEAD_DIM", "VALUE_DIM", "ALIGNED",  "CAPPED"};
  const auto own = owns_keys ? std::vector<std::string>{"KEY_ROWS", "KEY_STEP", "KEYS_HELD"}
                             : std::vector<std::string>{"QUERY_ROWS", "QUERY_STEP", "ROWS_HELD"};
  names.insert(names.end(), own.begin(), own.end());
  pass.specialized_on = std::move(names);
  pass.bindings = {slots.query, slots.key, slots.value, slots.output_gradient, slots.log_sum_exp};
  if (owns_keys) {
    pass.bindings.push_back(slots.key_gradient);
    pass.bindings.push_back(slots.value_gradient);
  } else {
    pass.bindings.push_back(slots.query_gradient);
  }
  std::vector<std::size_t> behind{kScratch};
  if (policies)
    behind = policy_bindings(slots);  // the scratch buffer, and the operands of the policies
  pass.bindings.insert(pass.bindings.end(), behind.begin(), behind.end());
  pass.groups = [registers, owns_keys, policies](const Problem& problem, const Config& config) {
    const AttentionProblem& call = call_of(problem);
    const BackwardGeometry geometry = geometry_of(problem, config, registers);
    if (!is_for(problem, policies)) return Dim3{0, 1, 1};
    if (!owns_keys) return row_groups(problem, geometry.own_rows);
    return Dim3{ceil_div(call.kv_len, geometry.own_keys), static_cast<std::uint32_t>(call.kv_heads),
                static_cast<std::uint32_t>(call.batch)};
  };
  return pass;
}

Variant variant_of(const AttentionSlots& slots, bool registers) {
  Variant variant;
  variant.name = registers ? "cooperative_registers" : "cooperative";
  variant.idea =
      std::string(
          "cooperative matrices; dk and dv by a group per tile of keys, dq by one per tile of "
          "queries; pairs are made in ") +
      (registers ? "registers" : "local memory");
  variant.needs = cooperative_needs(registers);
  variant.dtypes = {DType::kF16, DType::kBF16};
  variant.rounds_factors = true;
  variant.tunables = tunables();
  variant.passes = list_of(rows_pass(slots), delta_pass(slots, tiling), peaks_pass(slots, tiling),
                           kernel_pass(slots, registers, true, false),
                           kernel_pass(slots, registers, false, false));
  if (!registers) {
    variant.passes.push_back(kernel_pass(slots, registers, true, true));
    variant.passes.push_back(kernel_pass(slots, registers, false, true));
    for (Pass& pass : policy_gradient_passes(slots, tiling))
      variant.passes.push_back(std::move(pass));
  }
  variant.space = [registers](const Problem& problem, const DeviceProfile& profile) {
    return space_of(problem, profile, registers);
  };
  variant.local_bytes = [registers](const Problem& problem, const Config& config) -> std::uint64_t {
    return geometry_of(problem, config, registers).local_bytes;
  };
  variant.scratch_bytes = [](const Problem& problem, const Config& config) {
    return backward_scratch_bytes(problem, tiling(problem, config));
  };
  variant.rejects = [registers](const Problem& problem, const Config& config,
                                const DeviceProfile& profile) {
    return rejects(problem, config, profile, registers);
  };
  return variant;
}

// Where a cut leaves a core few groups, nobody has measured that it gains. Mesa's compiler for
// NVIDIA's GPUs, which has no matrices in registers, spills up to 394 registers.
bool prefers(const Problem& problem, const DeviceProfile& profile, bool registers) {
  if (!is_gpu(profile) || profile.backend != Backend::kVulkan ||
      call_of(problem).q_len < kFewestRows) {
    return false;
  }
  const bool asks_for_registers = registers || profile.vendor_id == kVendorNvidia;
  if (asks_for_registers && !has(profile.features, Feature::kMatrixRegisters)) return false;
  const std::vector<Config> configs = space_of(problem, profile, registers);
  return !configs.empty() &&
         strain_of(problem, profile, configs.front(), costs_of(problem, registers)) == 0;
}

Way way_of(const AttentionSlots& slots, bool registers, std::string why) {
  return {.variant = variant_of(slots, registers),
          .rule = {.why = std::move(why),
                   .when = [registers](const Problem& problem, const DeviceProfile& profile) {
                     return prefers(problem, profile, registers);
                   }}};
}

}  // namespace

Way cooperative_registers_backward(const AttentionSlots& slots) {
  return way_of(slots, true, "the device's matrix unit, pairs stay in its registers");
}

Way cooperative_backward(const AttentionSlots& slots) {
  return way_of(slots, false, "the device's matrix unit");
}

}  // namespace tessera::operations::attention
