// SPDX-License-Identifier: Apache-2.0
// An item for the channels of sixteen bytes and a chunk of tokens, several of which it asks for at
// once: any GPU, where rows are vectors.
#include <algorithm>
#include <array>
#include <string>

#include "kernel/tunable_list.inc"
#include "operations/causal_conv1d/launch.hpp"
#include "operations/common/launch.hpp"

namespace tessera::operations::state_space {
namespace {

constexpr std::int64_t kMostTaps = 4;  // in registers, with as many inputs

std::int64_t channels_of_item(const Problem& problem) { return 128 / bits_of(problem.dtype); }

std::int64_t vectors_of(const Problem& problem) {
  return ceil_div(conv_layout_of(problem).dim, channels_of_item(problem));
}

std::int64_t vector_chunks(const Problem& problem, const Config& config) {
  return ceil_div(conv_layout_of(problem).tokens, config.at("CHUNK"));
}

// Packed sequences may have no token that would leave their state.
std::int64_t state_units(const Problem& problem) {
  const Layout& layout = conv_layout_of(problem);
  const bool apart = layout.packed || layout.tokens == 0;
  return takes_states(problem) && apart ? layout.sequences : 0;
}

std::int64_t vector_units(const Problem& problem, const Config& config) {
  return conv_layout_of(problem).batch * vector_chunks(problem, config) + state_units(problem);
}

bool is_aligned(const Problem& problem) {
  constexpr std::array kRows{std::size_t{kConvInput}, std::size_t{kConvInitial},
                             std::size_t{kConvOutput}, std::size_t{kConvFinal}};
  return by_vectors(problem, kRows, channels_of_item(problem));
}

Refusal rejects_vectors(const Problem& problem, const Config& config,
                        const DeviceProfile& profile) {
  if (config.at("CHUNK") == 0) return "takes chunks of at least one token";
  if (config.at("AHEAD") == 0) return "asks for at least one token at once";
  if (conv_call_of(problem).width > kMostTaps)
    return "takes up to " + std::to_string(kMostTaps) + " taps";
  if (!is_aligned(problem)) return "takes rows and states that are contiguous by sixteen bytes";
  if (Refusal no = rejects_storage16(problem, profile)) return no;
  const Layout& layout = conv_layout_of(problem);
  if (vector_units(problem, config) * vectors_of(problem) >= std::int64_t{1} << 31)
    return "counts chunks of channels to 2^31";
  const std::int64_t rounds = std::max<std::int64_t>(
      layout.packed ? layout.sequences / 16 : 0,
      config.at("CHUNK") * (1 + search_rounds(layout)) + std::int64_t{2} * kMostTaps);
  if (Refusal no = rejects_rounds(rounds, profile)) return no;
  return rejects_long_operands(problem, profile, {});
}

std::vector<Config> vector_space(const Problem& problem, const DeviceProfile& profile) {
  std::vector<Config> list;
  const std::uint32_t items = vectors_of(problem) >= 64 ? 64 : 32;
  // A chunk reads WIDTH - 1 rows more than it writes; short ones keep a GPU busy.
  const std::int64_t busy = std::int64_t{384} * std::max(profile.compute_units, 16U);
  // On an H200, bf16: 4 and 8 tokens at once take 0.095 and 0.109 ms through Vulkan, 0.0825 and
  // 0.0824 through OpenCL, 0.0799 with chunks of 64 tokens.
  const bool opencl = profile.backend == Backend::kOpenCL;
  for (const std::uint32_t chunk : {128U, 64U, 32U, 16U, 8U}) {
    if (opencl && chunk > 64) continue;
    const Config config{{"WG_X", items}, {"CHUNK", chunk}, {"AHEAD", opencl ? 8 : 4}};
    const std::int64_t vectors =
        conv_layout_of(problem).batch * vector_chunks(problem, config) * vectors_of(problem);
    if (chunk == 8U || vectors >= busy) list.push_back(config);
  }
  return list;
}

Pass vectors_pass() {
  Pass pass = conv_pass("vectors", {kConvInput, kConvWeight, kConvBias, kConvInitial, kConvOutput,
                                    kConvFinal, kScratch});
  pass.groups = [](const Problem& problem, const Config& config) {
    return groups_of(vector_units(problem, config) *
                     ceil_div(vectors_of(problem), config.group().x));
  };
  pass.args = [](const Problem& problem, const Config& config) {
    abi::ConvArgs args =
        conv_arguments(problem, config.at("CHUNK"), vector_chunks(problem, config));
    args.states = static_cast<abi::u32>(state_units(problem));
    return argument_bytes(args);
  };
  return pass;
}

}  // namespace

Way conv_vectors_way() {
  Variant variant;
  variant.name = "vectors";
  variant.idea =
      "an item slides over the tokens of a chunk, with the channels of sixteen bytes in registers";
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  variant.tunables = {
#include "operations/causal_conv1d/vectors.def"
  };
  variant.tunables.push_back({.id = 30, .name = "CHUNK", .fallback = 64, .launch_only = true});
  variant.passes = list_of(boundaries_pass(conv_layout_of, kConvOffsets), vectors_pass());
  variant.space = vector_space;
  variant.rejects = rejects_vectors;
  variant.scratch_bytes = [](const Problem& problem, const Config&) {
    return static_cast<std::uint64_t>(16 * conv_scratch(problem, 0));
  };
  return {.variant = std::move(variant),
          .rule = {.why = "a GPU, and rows are vectors",
                   .when = [](const Problem& problem, const DeviceProfile& profile) {
                     return is_gpu(profile) && is_aligned(problem) &&
                            conv_call_of(problem).width <= kMostTaps;
                   }}};
}

}  // namespace tessera::operations::state_space
