// SPDX-License-Identifier: Apache-2.0
#include "operations/attention_core/tile/compiled.hpp"

#include <algorithm>
#include <span>
#include <string_view>

#include "base/vendor_ids.hpp"

namespace tessera::operations::attention {
namespace {

struct Compiled {
  std::string_view target;
  std::uint32_t dim;
  std::uint32_t wg, block_q, block_k, item_rows, slice_d, slice, prefetch;
  std::uint32_t registers, spills, scratch;  // words, words, bytes
  std::uint32_t waves;                       // of 64 lanes per SIMD of AMD, else 0
};

constexpr Compiled kForward[] = {
#include "operations/attention_core/tile/forward_compiled.def"
};
constexpr Compiled kKeys[] = {
#include "operations/attention_core/tile/keys_compiled.def"
};
constexpr Compiled kQueries[] = {
#include "operations/attention_core/tile/queries_compiled.def"
};

std::span<const Compiled> rows_of(TileKernel kernel) {
  if (kernel == TileKernel::kForward) return kForward;
  return kernel == TileKernel::kKeys ? std::span<const Compiled>(kKeys) : kQueries;
}

// Targets speak for the GPUs of their vendor through their platform. Through OpenCL of AMD and
// Intel the lists' order stands: only their first cuts were compiled with policies.
struct Target {
  std::string_view name;
  std::uint32_t vendor_id;
  Backend backend;
  std::uint32_t fewest_waves, lanes;  // lanes of a sub-group, 0 = any
};
constexpr Target kTargets[] = {
    {"polaris10", kVendorAmd, Backend::kVulkan, 2, 0},
    {"navi31", kVendorAmd, Backend::kVulkan, 4, 0},
    {"gfx1201", kVendorAmd, Backend::kVulkan, 4, 0},
    {"dg2", kVendorIntel, Backend::kVulkan, 0, 8},
    {"bmg", kVendorIntel, Backend::kVulkan, 0, 16},
    {"ampere", kVendorNvidia, Backend::kVulkan, 0, 0},
    {"sm_80", kVendorNvidia, Backend::kOpenCL, 0, 0},
};

bool is_cut(const Compiled& row, const Config& config) {
  const char* const slice = config.get("SLICE_STEP", 0) != 0 ? "SLICE_STEP" : "SLICE_K";
  return row.wg == config.group().x && row.block_q == config.at("BLOCK_Q") &&
         row.block_k == config.at("BLOCK_K") && row.item_rows == config.at("ITEM_ROWS") &&
         row.slice_d == config.at("SLICE_D") && row.slice == config.at(slice) &&
         row.prefetch == config.get("PREFETCH", 0) && config.get("KEEP_Q", 0) == 0;
}

bool strains(const Compiled& row, const Target& target) {
  return row.spills != 0 || row.scratch != 0 || row.waves < target.fewest_waves;
}

}  // namespace

std::optional<TileFigures> compiled_tile(TileKernel kernel, const Config& config, std::uint32_t dim,
                                         const DeviceProfile& profile) {
  std::optional<TileFigures> figures;
  for (const Target& target : kTargets) {
    if (target.vendor_id != profile.vendor_id || target.backend != profile.backend) continue;
    if (target.lanes != 0 && target.lanes != profile.subgroup_size) continue;
    for (const Compiled& row : rows_of(kernel)) {
      // Rows of 64, 128 and 256 columns stand for all up to them.
      const bool stands = dim <= row.dim && (dim > row.dim / 2 || row.dim == 64);
      if (row.target != target.name || !stands || !is_cut(row, config)) continue;
      if (!figures) figures.emplace();
      figures->registers = std::max(figures->registers, row.registers);
      figures->strains = figures->strains || strains(row, target);
    }
  }
  return figures;
}

}  // namespace tessera::operations::attention
