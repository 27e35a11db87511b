// SPDX-License-Identifier: Apache-2.0
// What the records themselves would choose.
#pragma once

#include <optional>
#include <vector>

#include "selection/selector.hpp"

namespace tessera::selection {

// The first rule that applies and whose configuration is not refused, else the first variant's
// first configuration that fits. `only`, unless null, is the one variant that may be chosen.
std::optional<Choice> heuristic_choice(const Problem& problem, const DeviceProfile& profile,
                                       const Variant* only);

// All variants, those first that rules name for this problem.
std::vector<const Variant*> by_preference(const Problem& problem, const DeviceProfile& profile);

}  // namespace tessera::selection
