// SPDX-License-Identifier: Apache-2.0
#include "kernel/ranking.hpp"

#include <algorithm>
#include <cmath>

#include "base/vendor_ids.hpp"

namespace tessera::kernel {
namespace {

// In multiply-adds. Fitted to 46 times of the tile kernels on an H200 (docs/performance/method.md,
// tests/operations/attention/h200_times.json).
constexpr double kLoad = 4, kCopy = 8, kOther = 1, kStep = 40;
// Cycles that pass unused, as a share of what one resident item for each lane takes.
constexpr double kIdle = 1;

}  // namespace

double predicted_cycles(const Effort& effort, const DeviceProfile& profile) {
  const Core core = core_of(profile);
  const double work = effort.products + kLoad * effort.loads + kCopy * effort.copies +
                      kOther * effort.others + kStep * effort.steps;
  // Groups that share a core.
  std::uint64_t resident = std::max(core.items / effort.items, 1U);
  if (effort.local_bytes != 0) resident = std::min(resident, core.local_bytes / effort.local_bytes);
  if (effort.registers != 0 && core.registers != 0) {
    const std::uint64_t registers = std::uint64_t{effort.items} * effort.registers;
    resident = std::min(resident, core.registers / registers);
  }
  const double cores = compute_units_of(profile);
  const double shared = std::min(static_cast<double>(std::max<std::uint64_t>(resident, 1)),
                                 std::ceil(effort.groups / cores));
  // Groups end neither all at once nor in a perfect row: between the two.
  const double turns = effort.groups / (cores * shared);
  const double taken = turns <= 1 ? 1 : (turns + std::ceil(turns)) / 2;
  return taken * effort.rounds * work * (shared * effort.items / core.lanes + kIdle);
}

bool strains(const Effort& effort, const DeviceProfile& profile) {
  const GroupBudget budget = group_budget(profile);
  return effort.registers > budget.registers ||
         128 * effort.local_bytes / effort.items > budget.local_bytes;
}

void rank(std::vector<Config>& configs, const std::function<bool(const Config&)>& strains,
          const std::function<double(const Config&)>& cycles) {
  struct Ranked {
    bool strains;
    double cycles;
    Config config;
  };
  std::vector<Ranked> ranked;
  for (Config& config : configs) {
    const bool last = strains(config);
    const double time = cycles(config);
    ranked.push_back({last, time, std::move(config)});
  }
  std::ranges::stable_sort(ranked, [](const Ranked& a, const Ranked& b) {
    return a.strains != b.strains ? b.strains : a.cycles < b.cycles;
  });
  std::ranges::transform(ranked, configs.begin(),
                         [](Ranked& one) { return std::move(one.config); });
}

bool is_measured(const DeviceProfile& profile) { return profile.vendor_id == kVendorNvidia; }

}  // namespace tessera::kernel
