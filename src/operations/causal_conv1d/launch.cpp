// SPDX-License-Identifier: Apache-2.0
#include "operations/causal_conv1d/launch.hpp"

#include <array>
#include <cstddef>

#include "operations/common/launch.hpp"

namespace tessera::operations::state_space {
namespace {

constexpr std::uint32_t kCombineItems = 64;

abi::u32 features_of(const Problem& problem) {
  const ConvCall& call = conv_call_of(problem);
  abi::u32 features = 0;
  const auto mark = [&](bool holds, abi::u32 feature) { features |= holds ? feature : 0U; };
  constexpr std::array kRows{std::size_t{kConvInput}, std::size_t{kConvInitial},
                             std::size_t{kConvOutput}, std::size_t{kConvFinal}};
  constexpr std::array kGradients{std::size_t{kConvGradInput}, std::size_t{kConvGradInitial}};
  mark(call.layout.packed, CONV_PACKED);
  mark(problem.has(kConvBias), CONV_BIAS);
  mark(problem.has(kConvInitial), CONV_INITIAL);
  mark(problem.has(kConvFinal), CONV_FINAL);
  mark(call.silu, CONV_SILU);
  mark(by_fours(problem, kRows) && (!call.backward || by_fours(problem, kGradients)), CONV_ALIGNED);
  const TensorSpec& weight = problem.spec(kConvWeight);
  mark(
      call.width == 4 && weight.strides[1] == 1 && weight.strides[0] == 4 && weight.offset % 4 == 0,
      CONV_TAPS_OF_CHANNEL);
  if (!call.backward) return features;
  mark(problem.has(kConvGradInput), CONV_GRAD_INPUT);
  mark(problem.has(kConvGradWeight), CONV_GRAD_WEIGHT);
  mark(problem.has(kConvGradBias), CONV_GRAD_BIAS);
  mark(problem.has(kConvGradInitial), CONV_GRAD_INITIAL);
  return features;
}

}  // namespace

bool takes_states(const Problem& problem) {
  return problem.has(conv_call_of(problem).backward ? kConvGradInitial : kConvFinal);
}

bool has_shares(const Problem& problem) {
  return conv_call_of(problem).backward &&
         (problem.has(kConvGradWeight) || problem.has(kConvGradBias));
}

std::int64_t fours_of(const Problem& problem) { return ceil_div(conv_layout_of(problem).dim, 4); }

abi::ConvArgs conv_arguments(const Problem& problem, std::int64_t chunk, std::int64_t chunks) {
  const ConvCall& call = conv_call_of(problem);
  const auto narrow = [](std::int64_t value) { return static_cast<abi::u32>(value); };
  const auto stride = [&](std::size_t slot, std::size_t axis) {
    return narrow(problem.spec(slot).strides[axis]);
  };
  abi::ConvArgs args{};
  args.features = features_of(problem);
  args.types = type_of(problem, kConvInput, CONV_TYPE_ROWS) |
               type_of(problem, kConvWeight, CONV_TYPE_WEIGHT) |
               type_of(problem, kConvBias, CONV_TYPE_BIAS);
  args.tokens = narrow(call.layout.tokens);
  args.batches = narrow(call.layout.batch);
  args.sequences = narrow(call.layout.sequences);
  args.dim = narrow(call.layout.dim);
  args.width = narrow(call.width);
  args.chunk = narrow(chunk);
  args.chunks = narrow(chunks);
  args.states = takes_states(problem) ? args.sequences : 0;
  args.shares = narrow(boundary_vectors(call.layout));
  args.weight_offset = narrow(problem.spec(kConvWeight).offset);
  args.weight_row = stride(kConvWeight, 0);
  args.weight_column = stride(kConvWeight, 1);
  if (problem.has(kConvBias)) {
    args.bias_offset = narrow(problem.spec(kConvBias).offset);
    args.bias_stride = stride(kConvBias, 0);
  }
  args.source = rows_of(problem, kConvInput);
  args.initial_state = rows_of(problem, kConvInitial);
  args.result = rows_of(problem, kConvOutput);
  args.final_state = rows_of(problem, kConvFinal);
  if (!call.backward) return args;
  args.dinput = rows_of(problem, kConvGradInput);
  args.dinitial = rows_of(problem, kConvGradInitial);
  if (problem.has(kConvGradWeight)) {
    args.dweight_offset = narrow(problem.spec(kConvGradWeight).offset);
    args.dweight_row = stride(kConvGradWeight, 0);
    args.dweight_column = stride(kConvGradWeight, 1);
  }
  if (problem.has(kConvGradBias)) {
    args.dbias_offset = narrow(problem.spec(kConvGradBias).offset);
    args.dbias_stride = stride(kConvGradBias, 0);
  }
  return args;
}

std::int64_t conv_scratch(const Problem& problem, std::int64_t chunks) {
  const std::int64_t shares =
      has_shares(problem) ? chunks * (conv_call_of(problem).width + 1) * fours_of(problem) : 0;
  return boundary_vectors(conv_layout_of(problem)) + shares;
}

Pass conv_pass(const std::string& name, std::vector<std::size_t> bindings) {
  Pass pass;
  pass.name = name;
  pass.opencl = {.file = "state_space/conv/" + name + ".cl", .entry = "causal_conv1d_" + name};
  pass.vulkan = {.file = "state_space/conv/" + name + ".comp", .entry = "main"};
  pass.bindings = std::move(bindings);
  pass.axes = typed_axes;
  pass.constants = [](const Problem& problem, const Config&) {
    return std::vector<Define>{{"WIDTH", static_cast<std::uint32_t>(conv_call_of(problem).width)},
                               {"ROWS_TYPE", dtype_axis(problem.dtype)}};
  };
  return pass;
}

Pass conv_combine_pass(std::int64_t (*chunks_of)(const Problem&, const Config&)) {
  Pass pass = conv_pass("combine", {kConvGradWeight, kConvGradBias, kScratch});
  pass.specialized_on = std::vector<std::string>{};
  pass.group_size = [](const Config&) { return Dim3{kCombineItems}; };
  pass.groups = [](const Problem& problem, const Config&) {
    if (!has_shares(problem)) return Dim3{0, 0, 0};
    const std::int64_t items = (conv_call_of(problem).width + 1) * fours_of(problem);
    return groups_of(ceil_div(items, kCombineItems));
  };
  pass.args = [chunks_of](const Problem& problem, const Config& config) {
    abi::ConvArgs args = conv_arguments(problem, 0, chunks_of(problem, config));
    args.batches = 1;
    return argument_bytes(args);
  };
  return pass;
}

}  // namespace tessera::operations::state_space
