// SPDX-License-Identifier: Apache-2.0
// An item for four channels of a chunk of tokens: any device.
#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include "base/large_registers.hpp"
#include "kernel/tunable_list.hpp"
#include "operations/causal_conv1d/args.h"
#include "operations/causal_conv1d/call.hpp"
#include "operations/common/launch.hpp"

namespace tessera::operations::state_space {
namespace {

const ConvCall& call_of(const Problem& problem) { return problem.as<ConvCall>(); }
const Layout& layout_of(const Problem& problem) { return call_of(problem).layout; }

std::int64_t chunks_of(const Problem& problem, const Config& config) {
  return ceil_div(layout_of(problem).tokens, config.at("CHUNK"));
}

std::int64_t fours_of(const Problem& problem) { return ceil_div(layout_of(problem).dim, 4); }

bool takes_states(const Problem& problem) {
  return problem.has(call_of(problem).backward ? kConvGradInitial : kConvFinal);
}

abi::u32 features_of(const Problem& problem) {
  const ConvCall& call = call_of(problem);
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
  if (!call.backward) return features;
  mark(problem.has(kConvGradInput), CONV_GRAD_INPUT);
  mark(problem.has(kConvGradWeight), CONV_GRAD_WEIGHT);
  mark(problem.has(kConvGradBias), CONV_GRAD_BIAS);
  mark(problem.has(kConvGradInitial), CONV_GRAD_INITIAL);
  return features;
}

std::vector<std::byte> arguments(const Problem& problem, const Config& config) {
  const ConvCall& call = call_of(problem);
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
  args.chunk = config.at("CHUNK");
  args.chunks = narrow(chunks_of(problem, config));
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
  if (!call.backward) return argument_bytes(args);
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
  return argument_bytes(args);
}

std::int64_t units_of(const Problem& problem, const Config& config) {
  const Layout& layout = layout_of(problem);
  return layout.batch * chunks_of(problem, config) + (takes_states(problem) ? layout.sequences : 0);
}

bool has_shares(const Problem& problem) {
  return call_of(problem).backward && (problem.has(kConvGradWeight) || problem.has(kConvGradBias));
}

// In vectors of four floats.
std::int64_t scratch_of(const Problem& problem, const Config& config) {
  const ConvCall& call = call_of(problem);
  const std::int64_t shares = has_shares(problem) ? call.layout.batch * chunks_of(problem, config) *
                                                        (call.width + 1) * fours_of(problem)
                                                  : 0;
  return boundary_vectors(call.layout) + shares;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  if (config.at("CHUNK") == 0) return "takes chunks of at least one token";
  if (Refusal no = rejects_storage16(problem, profile)) return no;
  const Layout& layout = layout_of(problem);
  const std::int64_t groups = units_of(problem, config) * fours_of(problem);
  if (groups >= std::int64_t{1} << 31 || scratch_of(problem, config) >= std::int64_t{1} << 31)
    return "counts chunks of channels to 2^31";
  // Of the boundaries and the sums over chunks; of a chunk's tokens, each with a search where it is
  // of no sequence.
  const std::int64_t tokens = config.at("CHUNK") + 2 * call_of(problem).width;
  const std::int64_t rounds = std::max(
      layout.batch * chunks_of(problem, config) + (layout.packed ? layout.sequences / 16 : 0),
      tokens * (1 + search_rounds(layout)));
  if (Refusal no = rejects_rounds(rounds, profile)) return no;
  return rejects_long_operands(problem, profile, {});
}

std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  if (is_cpu(profile)) return {{{"WG_X", 16}, {"CHUNK", 128}}, {{"WG_X", 16}, {"CHUNK", 512}}};
  // By ocloc 88 to 103 of 128 registers spill with gradients of 8 columns of weights, none of 256.
  const bool spills = call_of(problem).backward && call_of(problem).width > 4;
  std::vector<Config> list;
  const std::uint32_t items = fours_of(problem) >= 128 ? 128 : 32;
  // A chunk reads WIDTH - 1 rows more than it writes; short ones keep a GPU busy.
  const std::int64_t busy = std::int64_t{512} * std::max(profile.compute_units, 16U);
  for (const std::uint32_t chunk : {128U, 32U, 8U}) {
    Config config{{"WG_X", items}, {"CHUNK", chunk}};
    if (spills && has_large_registers(profile)) config.set(std::string(kLargeRegisters), 1);
    if (chunk == 8U ||
        layout_of(problem).batch * chunks_of(problem, config) * fours_of(problem) >= busy)
      list.push_back(config);
  }
  return list;
}

Pass new_pass(const std::string& name, std::vector<std::size_t> bindings) {
  Pass pass;
  pass.name = name;
  pass.opencl = {.file = "state_space/conv/" + name + ".cl", .entry = "causal_conv1d_" + name};
  pass.vulkan = {.file = "state_space/conv/" + name + ".comp", .entry = "main"};
  pass.bindings = std::move(bindings);
  pass.axes = typed_axes;
  pass.constants = [](const Problem& problem, const Config&) {
    return std::vector<Define>{{"WIDTH", static_cast<std::uint32_t>(call_of(problem).width)}};
  };
  pass.groups = [](const Problem& problem, const Config& config) {
    return groups_of(units_of(problem, config) * ceil_div(fours_of(problem), config.group().x));
  };
  pass.args = arguments;
  return pass;
}

std::vector<Pass> passes(bool backward) {
  std::vector<Pass> list{boundaries_pass(layout_of, kConvOffsets)};
  if (!backward) {
    list.push_back(new_pass("forward", {kConvInput, kConvWeight, kConvBias, kConvInitial,
                                        kConvOutput, kConvFinal, kScratch}));
    return list;
  }
  list.push_back(
      new_pass("backward", {kConvInput, kConvWeight, kConvBias, kConvInitial, kConvGradOutput,
                            kConvGradFinal, kConvGradInput, kConvGradInitial, kScratch}));
  Pass combine = new_pass("combine", {kConvGradWeight, kConvGradBias, kScratch});
  combine.specialized_on = std::vector<std::string>{};
  combine.groups = [](const Problem& problem, const Config& config) {
    if (!has_shares(problem)) return Dim3{0, 0, 0};
    const std::int64_t items = (call_of(problem).width + 1) * fours_of(problem);
    return groups_of(ceil_div(items, config.group().x));
  };
  list.push_back(std::move(combine));
  return list;
}

}  // namespace

Way conv_columns_way(bool backward) {
  Variant variant;
  variant.name = "columns";
  variant.idea = "an item slides over the tokens of a chunk, with four channels in registers";
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  variant.tunables = {
#include "operations/causal_conv1d/columns.def"
  };
  variant.tunables.push_back({.id = 30, .name = "CHUNK", .fallback = 64, .launch_only = true});
  variant.passes = passes(backward);
  variant.space = space;
  variant.rejects = rejects;
  variant.scratch_bytes = [](const Problem& problem, const Config& config) {
    return static_cast<std::uint64_t>(16 * scratch_of(problem, config));
  };
  return {.variant = std::move(variant),
          .rule = {.why = "runs everywhere",
                   .when = [](const Problem&, const DeviceProfile&) { return true; },
                   .config =
                       [](const Problem& problem, const DeviceProfile& profile) {
                         return space(problem, profile).front();
                       }}};
}

}  // namespace tessera::operations::state_space
