// SPDX-License-Identifier: Apache-2.0
// What the ways of this room hand to their kernels.
#pragma once

#include <cstdint>
#include <vector>

#include "operations/common/launch.hpp"
#include "operations/quantised_core/problem.hpp"

namespace tessera::operations::quantised {

// Of kernels that own `rows` of output.
inline std::vector<Define> constants(const Problem& problem, std::uint32_t rows) {
  return {{"ROWS", rows},
          {"FORMAT", format_of(problem)},
          {"GROUP", group_of(problem)},
          {"SCALE_TYPE", dtype_axis(problem.spec(kScale).dtype)},
          {"ZEROS", problem.has(kZero) ? 1U : 0U}};
}

}  // namespace tessera::operations::quantised
