// SPDX-License-Identifier: Apache-2.0
// NVIDIA's Hopper through OpenCL: weights become operand A of wgmma in registers, and input, of at
// most 64 rows at once, is operand B.
#include "operations/quantised_core/mma/hopper.h"

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "kernel/gpu.hpp"
#include "kernel/tunable_list.inc"
#include "operations/quantised_core/mma/launch.hpp"

namespace tessera::operations::quantised {
namespace {

constexpr std::uint32_t kItems = 640;  // four warpgroups that multiply, and one that copies
constexpr std::uint64_t kMapBytes = 128;
constexpr std::uint32_t kOrderItems = 256;
constexpr std::uint32_t kScaledChunks = 4;  // of 32 terms, by one scale at least
constexpr std::uint64_t kLeastInput = 8 * 1024, kMostInput = 64 * 1024;  // that stays
constexpr std::int64_t kFewRows = 16, kSomeRows = 32, kMostRows = 64;
constexpr std::uint32_t kBeside = 4;      // warpgroups
constexpr std::uint32_t kMostShares = 8;  // of a block, whose last one adds them up

std::vector<Tunable> tunables() {
  return {
#include "operations/quantised_core/mma/hopper.def"
  };
}

// Of `rows` of input, with what the last step of all shares is more.
std::uint64_t input_bytes(const Problem& problem, std::uint32_t rows) {
  const std::uint32_t FORMAT = format_of(problem);
  const std::uint64_t at_once = 4 * QUANT_HOPPER_TERMS;
  return 2 * rows * at_once * ceil_div(problem.as<QuantisedProblem>().k, at_once);
}

// Rows of output that a work-group takes at once. Few rows of input stay in local memory.
std::uint32_t rows_of(const Problem& problem) {
  const std::int64_t m = problem.as<QuantisedProblem>().m;
  const std::uint32_t few = m <= 1 ? 1 : m <= 2 ? 2 : 4;
  if (m <= few && input_bytes(problem, few) <= kMostInput) return few;
  return m <= 8 ? 8 : m <= 16 ? 16 : m <= 32 ? 32 : 64;
}

struct HopperGeometry {
  bool valid = false;
  std::uint32_t columns = 1, local_bytes = 0;
};

// hopper.h's macros read the locals here.
HopperGeometry geometry_of(const Problem& problem, const Config& config) {
  using Number = std::uint32_t;
#include "kernel/tunable_locals.inc"
#include "operations/quantised_core/mma/hopper.def"
  const Number ROWS = rows_of(problem), FORMAT = format_of(problem),
               ZEROS = problem.has(kZero) ? 1 : 0;
  if (!(QUANT_HOPPER_VALID)) return {};
  return {.valid = true, .columns = QUANT_HOPPER_COLUMNS, .local_bytes = QUANT_HOPPER_LOCAL_BYTES};
}

std::uint32_t blocks_of(const Problem& problem, const Config& config) {
  const auto& call = problem.as<QuantisedProblem>();
  return ceil_div(call.n, geometry_of(problem, config).columns) *
         ceil_div(call.m, rows_of(problem));
}

std::uint32_t groups_of(const Problem& problem, const Config& config) {
  const std::uint32_t shares = config.at("SHARES");
  return shares != 0 ? shares : blocks_of(problem, config);
}

// Many columns share input; but not so many that multiprocessors are left without any. As many
// stages as there is room for. Many rows of half bytes wait for arithmetic, so that all
// multiprocessors should have their share of it; what waits for memory gains nothing by that.
std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  const std::uint32_t units = kernel::compute_units_of(profile);
  constexpr std::uint32_t kMostStages = 6;
  // In few sizes, so that few programs do.
  const std::uint32_t rows = rows_of(problem);
  const auto stays = static_cast<std::uint32_t>(
      rows < 8 ? std::bit_ceil(std::max(input_bytes(problem, rows), kLeastInput)) : 0);
  std::vector<Config> list;
  for (std::uint32_t beside = kBeside; beside >= 1; beside /= 2) {
    for (std::uint32_t stages = kMostStages; stages >= 2; --stages) {
      Config config{{"WARPGROUPS_N", beside},
                    {"WARPGROUPS_K", kBeside / beside},
                    {"STAGES", stages},
                    {"X_BYTES", stays},
                    {"SHARES", 0},
                    {"WG_X", kItems}};
      const HopperGeometry geometry = geometry_of(problem, config);
      if (!geometry.valid || geometry.local_bytes > kernel::kHopperLocalBytes) continue;
      list.push_back(std::move(config));
      break;
    }
  }
  const auto fills = std::ranges::find_if(
      list, [&](const Config& config) { return 4 * groups_of(problem, config) >= 3 * units; });
  if (list.empty()) return list;
  Config shared = list.front();
  std::iter_swap(list.begin(), fills == list.end() ? fills - 1 : fills);
  if (stays != 0) return list;
  const std::uint32_t blocks = blocks_of(problem, shared), most = kMostShares * blocks;
  shared.set("SHARES", most < units ? std::bit_floor(most) : units);
  const bool is_narrow = 4 * blocks < 3 * units;
  const bool shares = format_of(problem) == QUANT_NIBBLES && blocks % units != 0 &&
                      (rows >= kSomeRows || (rows >= kFewRows && is_narrow));
  list.insert(shares ? list.begin() : list.end(), std::move(shared));
  return list;
}

Refusal rejects_call(const Problem& problem) {
  if (Refusal no = rejects_blocks_and_codes(problem)) return no;
  const abi::QuantArgs args = arguments_of(problem);
  if (args.k == 0) return "takes at least one term";
  if ((args.features & QUANT_ALIGNED) == 0 || args.k % 8 != 0 || args.input_offset % 8 != 0 ||
      args.input_row % 8 != 0)
    return "takes rows of input and of weights that lie at multiples of 16 bytes, and terms that "
           "are a multiple of 8";
  // A row's only scale counts as one of them.
  if (group_of(problem) % kScaledChunks != 0) return "takes scales of multiples of 128 terms";
  return std::nullopt;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  if (Refusal no = rejects_quantised(problem, profile)) return no;
  if (Refusal no = rejects_call(problem)) return no;
  const HopperGeometry geometry = geometry_of(problem, config);
  const std::uint32_t stays = config.at("X_BYTES");
  if (stays != 0 && config.at("SHARES") != 0)
    return "shares terms among work-groups only where input does not stay in their memory";
  if (!geometry.valid || (stays != 0 && stays < input_bytes(problem, rows_of(problem))))
    return "has no such warpgroups, or work-group memory for input "
           "(operations/quantised_core/mma/hopper.h)";
  return kernel::rejects_nvidia_bytes(geometry.local_bytes, profile);
}

// Terms of a row of input in scratch: whole chunks.
std::uint64_t ordered_terms(const Problem& problem) {
  return std::uint64_t{QUANT_CHUNK} * ceil_div(problem.as<QuantisedProblem>().k, QUANT_CHUNK);
}

Pass order_pass() {
  Pass pass;
  pass.name = "order";
  pass.opencl = {
      .file = "quantised/mma/order.cl", .entry = "quantised_order", .ptx_target = "sm_90a"};
  pass.bindings = {kInput, kWeight, kScratch};
  pass.axes = dtype_axes;
  pass.specialized_on =
      std::vector<std::string>{"WARPGROUPS_N", "ROWS", "FORMAT", "SCALE_TYPE", "SHARES"};
  pass.constants = [](const Problem& problem, const Config&) {
    return constants(problem, rows_of(problem));
  };
  pass.group_size = [](const Config&) { return Dim3{kOrderItems}; };
  pass.groups = [](const Problem& problem, const Config& config) {
    if (config.at("X_BYTES") != 0) return Dim3{0, 0, 0};
    constexpr std::uint64_t kEight = 8, kMostGroups = 1024;
    const std::uint64_t items = static_cast<std::uint64_t>(problem.as<QuantisedProblem>().m) *
                                ordered_terms(problem) / kEight;
    const std::uint64_t groups = (items + kOrderItems - 1) / kOrderItems;
    return Dim3{static_cast<std::uint32_t>(std::min(groups, kMostGroups))};
  };
  pass.args = product_arguments;
  return pass;
}

Pass product_pass() {
  Pass pass;
  pass.name = "product";
  pass.opencl = {
      .file = "quantised/mma/hopper.cl", .entry = "quantised_hopper", .ptx_target = "sm_90a"};
  pass.bindings = {kInput, kWeight, kScale, kZero, kOutput, kScratch};
  pass.axes = dtype_axes;
  pass.constants = [](const Problem& problem, const Config&) {
    return constants(problem, rows_of(problem));
  };
  pass.groups = [](const Problem& problem, const Config& config) {
    return Dim3{groups_of(problem, config)};
  };
  pass.args = product_arguments;
  return pass;
}

// As measured on an H200: where columns fill multiprocessors with all warpgroups beside one
// another, and of many rows.
bool prefers_hopper(const Problem& problem, const DeviceProfile& profile) {
  const std::int64_t m = problem.as<QuantisedProblem>().m;
  if (m > kMostRows || !takes(problem, profile, Feature::kWgmma, rejects_call)) return false;
  const std::vector<Config> list = space(problem, profile);
  return !list.empty() && (list.front().at("WARPGROUPS_N") == kBeside || m > kSomeRows);
}

}  // namespace

Way hopper_way() {
  Variant variant;
  variant.name = "hopper";
  variant.idea = "weights become operand A of wgmma in registers, up to 64 rows of input are B";
  variant.tunables = tunables();
  variant.rejects = rejects;
  variant.scratch_bytes = [](const Problem& problem, const Config& config) {
    if (config.at("X_BYTES") != 0) return kMapBytes * groups_of(problem, config);
    const std::uint64_t SHARES = config.at("SHARES");
    const auto& call = problem.as<QuantisedProblem>();
    return 4 * (QUANT_HOPPER_SUMS_START(static_cast<std::uint64_t>(call.m),
                                        static_cast<std::uint64_t>(call.k)) +
                SHARES * rows_of(problem) * geometry_of(problem, config).columns *
                    config.at("WARPGROUPS_K"));
  };
  variant.passes = list_of(order_pass(), product_pass());
  return new_way(std::move(variant), Feature::kWgmma, space,
                 "Hopper's matrix unit, and one read of weights", prefers_hopper);
}

}  // namespace tessera::operations::quantised
