// SPDX-License-Identifier: Apache-2.0
#include "kernel/matrices.hpp"

#include <algorithm>
#include <string>

namespace tessera::kernel {

Requirements matrix_needs() {
  return {.backends = {Backend::kVulkan},
          .features = Feature::kStorage16 | Feature::kFp16Arithmetic |
                      Feature::kSubgroupArithmetic | Feature::kCooperativeMatrix};
}

MatrixShape matrix_shape(const Problem& problem, const Config& config) {
  return {.input = problem.dtype,
          .m = config.at("MATRIX_M"),
          .n = config.at("MATRIX_N"),
          .k = config.at("MATRIX_K")};
}

Refusal rejects_matrices(const Problem& problem, const Config& config,
                         const DeviceProfile& profile) {
  const MatrixShape shape = matrix_shape(problem, config);
  if (std::ranges::find(profile.matrix_shapes, shape) == profile.matrix_shapes.end())
    return "multiplies matrices of " + to_string(shape) + ", and the device does not";
  if (config.at("LANES") != profile.subgroup_size)
    return "LANES is " + std::to_string(config.at("LANES")) +
           ", and the device's sub-groups have " + std::to_string(profile.subgroup_size);
  return std::nullopt;
}

}  // namespace tessera::kernel
