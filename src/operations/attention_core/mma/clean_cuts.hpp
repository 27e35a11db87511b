// SPDX-License-Identifier: Apache-2.0
// Which of the cuts for matrix instructions a GPU begins with on which none was measured: one whose
// registers a compiler does not spill.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "base/nvidia_architecture.hpp"
#include "kernel/config_order.hpp"
#include "operations/attention_core/problem.hpp"
#include "tessera/record.hpp"

namespace tessera::operations::attention {

// Registers for matrices, as the cuts' geometry counts them, up to which ptxas 13.0 spills none of
// an item's 255 from clang's PTX. On Hopper all cuts were measured, and their order stands.
inline std::uint32_t most_clean_registers(const Problem& problem, const DeviceProfile& profile) {
  constexpr unsigned kBlackwell = 100;
  constexpr std::uint32_t kClean = 160, kCleanOnBlackwell = 144;  // 160 spills 2 there
  if (has(profile.features, Feature::kWgmma)) return std::numeric_limits<std::uint32_t>::max();
  // Operands of policies, and the row that they belong to. 96 beside them spill nothing, but take
  // ptxas twice as long as 80.
  const std::uint32_t taken = call_of(problem).policies ? 80 : 0;
  return (nvidia_architecture(profile) >= kBlackwell ? kCleanOnBlackwell : kClean) - taken;
}

// Cuts of so many registers keep their order; behind them come the others, the smallest first.
inline void put_clean_cuts_first(std::vector<Config>& configs, std::uint32_t most,
                                 const std::function<std::uint32_t(const Config&)>& registers) {
  kernel::sort_configs(configs, [&](const Config& config) {
    const std::uint32_t taken = registers(config);
    return taken <= most ? 0 : taken;
  });
}

}  // namespace tessera::operations::attention
