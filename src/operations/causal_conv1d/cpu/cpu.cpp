// SPDX-License-Identifier: Apache-2.0
// Tiles of channels that go down the tokens: processors through OpenCL.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "kernel/tunable_list.inc"
#include "operations/causal_conv1d/launch.hpp"
#include "operations/common/launch.hpp"

namespace tessera::operations::state_space {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 31;

std::int64_t tokens_of(const Problem& problem) {
  return conv_layout_of(problem).batch * conv_layout_of(problem).tokens;
}
std::int64_t tiles_of(const Problem& problem, std::int64_t tile) {
  return ceil_div(conv_layout_of(problem).dim, tile);
}
// Of all tokens; one where only states are passed on.
std::int64_t chunks_of(const Problem& problem, const Config& config) {
  return std::max<std::int64_t>(ceil_div(tokens_of(problem), config.at("CHUNK")), 1);
}
std::int64_t items_of(const Problem& problem, const Config& config) {
  return chunks_of(problem, config) * tiles_of(problem, config.at("TILE"));
}

// Several items for each core, of at least so many tokens that taps cost little. Outputs that the
// caches do not hold go past them.
Config config_of(const Problem& problem, const DeviceProfile& profile, std::int64_t tile,
                 bool stream) {
  constexpr std::int64_t kLeastTokens = 64;
  const std::int64_t items = std::int64_t{8} * std::max(profile.compute_units, 1U);
  const std::int64_t chunks =
      std::clamp<std::int64_t>(items / std::max<std::int64_t>(tiles_of(problem, tile), 1), 1,
                               std::max<std::int64_t>(tokens_of(problem) / kLeastTokens, 1));
  const std::uint32_t chunk = std::max(ceil_div(tokens_of(problem), chunks), 1U);
  return {{"TILE", static_cast<std::uint32_t>(tile)},
          {"VECTOR_WIDTH", vector_width(profile)},
          {"CHUNK", chunk},
          {"STREAM", stream ? 1U : 0U}};
}

std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  constexpr std::int64_t kLargeElements = std::int64_t{1} << 20;
  const bool large = tokens_of(problem) * conv_layout_of(problem).dim >= kLargeElements;
  return {config_of(problem, profile, 256, large), config_of(problem, profile, 256, !large)};
}

// Rows and states, of which a vector takes neighbouring channels.
constexpr std::array kWithChannels{std::size_t{kConvInput},     std::size_t{kConvInitial},
                                   std::size_t{kConvOutput},    std::size_t{kConvFinal},
                                   std::size_t{kConvGradInput}, std::size_t{kConvGradInitial}};
bool has_neighbours(const Problem& problem) {
  for (const std::size_t slot : kWithChannels) {
    const bool is_row = conv_call_of(problem).backward || slot <= kConvFinal;
    if (is_row && problem.has(slot) && problem.spec(slot).strides.back() != 1) return false;
  }
  return true;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const std::uint32_t width = config.at("VECTOR_WIDTH"), tile = config.at("TILE");
  if (Refusal no = rejects_vector_width(config)) return no;
  if (tile == 0 || tile % (2 * width) != 0 || tile > 1024)
    return "takes up to 1024 channels by pairs of vectors, and TILE is " + std::to_string(tile);
  if (config.at("CHUNK") == 0) return "takes chunks of at least one token";
  if (!has_neighbours(problem)) return "takes rows whose channels lie one behind the other";
  if (tokens_of(problem) >= kMost || items_of(problem, config) >= kMost)
    return "counts tokens and tiles to 2^31";
  if (4 * conv_scratch(problem, chunks_of(problem, config)) >= kMost)
    return "counts shares of gradients to 2^31";
  return rejects_long_operands(problem, profile, kWithChannels);
}

Pass cpu_pass(const std::string& name, std::vector<std::size_t> bindings) {
  Pass pass = conv_pass(name, std::move(bindings));
  pass.opencl = {.file = "state_space/cpu/conv_" + name + ".cl",
                 .entry = "causal_conv1d_" + name + "_cpu"};
  pass.vulkan = {};
  pass.axes = dtype_axes;
  pass.groups = [](const Problem& problem, const Config& config) {
    return groups_of(items_of(problem, config));
  };
  pass.args = [](const Problem& problem, const Config& config) {
    abi::ConvArgs args = conv_arguments(problem, config.at("CHUNK"), chunks_of(problem, config));
    if (config.at("STREAM") != 0) args.features |= CONV_STREAM;
    return argument_bytes(args);
  };
  return pass;
}

std::vector<Pass> passes(bool backward) {
  std::vector<Pass> list = list_of(boundaries_pass(conv_layout_of, kConvOffsets));
  if (!backward) {
    list.push_back(cpu_pass("forward", {kConvInput, kConvWeight, kConvBias, kConvInitial,
                                        kConvOutput, kConvFinal, kScratch}));
    return list;
  }
  list.push_back(
      cpu_pass("backward", {kConvInput, kConvWeight, kConvBias, kConvInitial, kConvGradOutput,
                            kConvGradFinal, kConvGradInput, kConvGradInitial, kScratch}));
  list.push_back(conv_combine_pass(chunks_of));
  return list;
}

}  // namespace

Way conv_cpu_way(bool backward) {
  Variant variant;
  variant.name = "cpu";
  variant.idea = "an item takes a tile of channels down the tokens, four at a time";
  variant.needs = opencl_cpu();
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  variant.tunables = {
#include "operations/causal_conv1d/cpu/cpu.def"
  };
  variant.tunables.push_back({.id = 30, .name = "CHUNK", .fallback = 64, .launch_only = true});
  variant.tunables.push_back({.id = 31, .name = "STREAM", .fallback = 0, .launch_only = true});
  variant.passes = passes(backward);
  variant.space = space;
  variant.rejects = rejects;
  variant.scratch_bytes = [](const Problem& problem, const Config& config) {
    return static_cast<std::uint64_t>(16 * conv_scratch(problem, chunks_of(problem, config)));
  };
  return {.variant = std::move(variant),
          .rule = {.why = "processors want whole vectors in one item, and no local memory",
                   .when = [](const Problem&, const DeviceProfile& profile) {
                     return is_opencl_cpu(profile);
                   }}};
}

}  // namespace tessera::operations::state_space
