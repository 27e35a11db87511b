// SPDX-License-Identifier: Apache-2.0
#include "operations/norms/quantised/pass.hpp"

#include "operations/common/launch.hpp"
#include "operations/norms/launch.hpp"
#include "operations/norms/quantised/args.h"

namespace tessera::operations::norms {
namespace {

abi::NormQuantisedArgs arguments(const Problem& problem) {
  const RowAxes axes = *row_axes(problem);
  const auto narrow = [](std::int64_t value) { return static_cast<abi::u32>(value); };
  const auto& strides = axes.strides[kScale];
  const DType type = problem.spec(kOutput).dtype;
  return {.norm = forward_arguments(problem),
          .scale = {narrow(problem.spec(kScale).offset), narrow(strides[0]), narrow(strides[1]),
                    narrow(strides[2])},
          .type = dtype_axis(type),
          .largest = static_cast<float>(largest_code(type))};
}

}  // namespace

Pass quantise_pass() {
  Pass pass;
  pass.name = "quantise";
  pass.bindings = {kInput, kWeight, kBias, kResidual, kOutput, kSum, kScale};
  pass.axes = dtype_axes;
  pass.args = [](const Problem& problem, const Config&) {
    return argument_bytes(arguments(problem));
  };
  return pass;
}

std::vector<std::string> quantised_types() {
  std::vector<std::string> names;
  for (const StorageTypes& types : norm_types()) {
    if (is_quantised(types.of("output"))) names.push_back(types.name());
  }
  return names;
}

}  // namespace tessera::operations::norms
