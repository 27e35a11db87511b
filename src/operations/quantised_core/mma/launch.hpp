// SPDX-License-Identifier: Apache-2.0
// What the ways of this room have in common.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "operations/common/launch.hpp"
#include "operations/quantised_core/problem.hpp"

namespace tessera::operations::quantised {

// Of kernels that own `rows` of output.
std::vector<Define> constants(const Problem& problem, std::uint32_t rows);

// Whether a device with `unit` takes the call, if nothing is wrong with it by `rejects_call`.
using RejectsCall = Refusal (*)(const Problem&);
bool takes(const Problem& problem, const DeviceProfile& profile, Feature unit,
           RejectsCall rejects_call);

// A way of kernels for `unit`, with its configurations, of which the first is chosen untuned.
using Space = std::vector<Config> (*)(const Problem&, const DeviceProfile&);
using When = bool (*)(const Problem&, const DeviceProfile&);
Way new_way(Variant variant, Feature unit, Space space, std::string why, When when);

}  // namespace tessera::operations::quantised
