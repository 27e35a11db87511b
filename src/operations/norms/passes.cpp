// SPDX-License-Identifier: Apache-2.0
#include "operations/norms/passes.hpp"

#include <utility>

#include "operations/common/launch.hpp"

namespace tessera::operations::norms {
namespace {

// Only processors have the choice.
abi::u32 stream_feature(const Config& config) {
  return config.get("STREAM", 0) != 0 ? NORM_STREAM : 0U;
}

Pass new_pass(std::string name, std::vector<std::size_t> bindings) {
  Pass pass;
  pass.name = std::move(name);
  pass.bindings = std::move(bindings);
  pass.axes = dtype_axes;
  return pass;
}

Pass combine_pass(std::string name, std::size_t slot, const Deal& deal) {
  Pass pass = new_pass(std::move(name), {kScratch, slot});
  pass.args = [deal, slot](const Problem& problem, const Config& config) {
    if (!combines(problem, slot)) return argument_bytes(abi::NormCombineArgs{});
    return argument_bytes(combine_arguments(problem, deal(problem, config), slot));
  };
  return pass;
}

}  // namespace

Pass forward_pass() {
  Pass pass = new_pass("normalise", {kInput, kWeight, kBias, kResidual, kOutput, kSum});
  pass.args = [](const Problem& problem, const Config& config) {
    abi::NormForwardArgs args = forward_arguments(problem);
    args.features |= stream_feature(config);
    return argument_bytes(args);
  };
  return pass;
}

Pass backward_pass(const Deal& deal) {
  Pass pass = new_pass("gradients", {kGradOutput, kInput, kWeight, kResidual, kGradSum, kGradInput,
                                     kGradResidual, kScratch});
  pass.args = [deal](const Problem& problem, const Config& config) {
    abi::NormBackwardArgs args = backward_arguments(problem, deal(problem, config));
    args.features |= stream_feature(config);
    return argument_bytes(args);
  };
  return pass;
}

std::vector<Pass> combine_passes(const Deal& deal) {
  return list_of(combine_pass("weight", kGradWeight, deal), combine_pass("bias", kGradBias, deal),
                 combine_pass("residual", kGradResidual, deal));
}

Variant norm_variant(bool backward, const Deal& deal) {
  Variant variant;
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  variant.rejects = [](const Problem& problem, const Config&, const DeviceProfile& profile) {
    return rejects_norm(problem, profile);
  };
  if (!backward) {
    for (const StorageTypes& types : norm_types()) {
      if (!is_quantised(types.of("output"))) variant.types.push_back(types.name());
    }
    return variant;
  }
  variant.scratch_bytes = [deal](const Problem& problem, const Config& config) {
    return 4 * scratch_of(problem, deal(problem, config)).floats;
  };
  variant.rejects = [deal](const Problem& problem, const Config& config,
                           const DeviceProfile& profile) {
    if (Refusal no = rejects_norm(problem, profile)) return no;
    return rejects_scratch(problem, deal(problem, config));
  };
  return variant;
}

}  // namespace tessera::operations::norms
