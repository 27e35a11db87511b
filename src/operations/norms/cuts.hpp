// SPDX-License-Identifier: Apache-2.0
// Configurations of the kernels whose lines of items keep a row in registers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "operations/norms/launch.hpp"

namespace tessera::operations::norms {

inline constexpr std::uint32_t kCombineColumns = 8, kCombineLines = 32;

bool quantises(const Problem& problem);  // a forward call

std::vector<Define> line_constants(const Problem& problem, const Config& config);
Dealing deal_groups(const Problem& problem, const Config& config);
Dim3 line_groups(const Problem& problem, const Config& config);

// The first one is the untuned choice.
std::vector<Config> line_space(const Problem& problem, const DeviceProfile& profile);
Refusal rejects_lines(const Config& config, const DeviceProfile& profile);

}  // namespace tessera::operations::norms
