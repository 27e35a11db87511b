// SPDX-License-Identifier: Apache-2.0
#include "operations/quantised_core/mma/launch.hpp"

#include <utility>

namespace tessera::operations::quantised {

std::vector<Define> constants(const Problem& problem, std::uint32_t rows) {
  std::vector<Define> list = weight_constants(problem);
  list.push_back({"ROWS", rows});
  return list;
}

bool takes(const Problem& problem, const DeviceProfile& profile, Feature unit,
           RejectsCall rejects_call) {
  return has(profile.features, unit) &&
         (problem.dtype == DType::kF16 || problem.dtype == DType::kBF16) &&
         !rejects_quantised(problem, profile) && !rejects_call(problem);
}

Way new_way(Variant variant, Feature unit, Space space, std::string why, When when) {
  variant.needs = {.backends = {Backend::kOpenCL}, .features = Feature::kNvidiaPtx | unit};
  variant.dtypes = {DType::kF16, DType::kBF16};
  variant.space = space;
  return {.variant = std::move(variant), .rule = {.why = std::move(why), .when = when}};
}

}  // namespace tessera::operations::quantised
