// SPDX-License-Identifier: Apache-2.0
// An item for four channels of a chunk of tokens: any device.
#include <algorithm>
#include <string>

#include "base/large_registers.hpp"
#include "base/vendor_ids.hpp"
#include "kernel/tunable_list.inc"
#include "operations/causal_conv1d/launch.hpp"
#include "operations/common/launch.hpp"

namespace tessera::operations::state_space {
namespace {

std::int64_t chunks_of(const Problem& problem, const Config& config) {
  return ceil_div(conv_layout_of(problem).tokens, config.at("CHUNK"));
}

std::int64_t units_of(const Problem& problem, const Config& config) {
  const Layout& layout = conv_layout_of(problem);
  return layout.batch * chunks_of(problem, config) + (takes_states(problem) ? layout.sequences : 0);
}

// Of all batch entries.
std::int64_t all_chunks(const Problem& problem, const Config& config) {
  return conv_layout_of(problem).batch * chunks_of(problem, config);
}

std::int64_t scratch_of(const Problem& problem, const Config& config) {
  return conv_scratch(problem, all_chunks(problem, config));
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  if (config.at("CHUNK") == 0) return "takes chunks of at least one token";
  if (config.get("AHEAD", 1) == 0) return "asks for at least one token at once";
  if (Refusal no = rejects_storage16(problem, profile)) return no;
  const Layout& layout = conv_layout_of(problem);
  const std::int64_t groups = units_of(problem, config) * fours_of(problem);
  if (groups >= std::int64_t{1} << 31 || scratch_of(problem, config) >= std::int64_t{1} << 31)
    return "counts chunks of channels to 2^31";
  // Of the boundaries and the sums over chunks; of a chunk's tokens, each with a search where it is
  // of no sequence.
  const std::int64_t tokens = config.at("CHUNK") + 2 * conv_call_of(problem).width;
  const std::int64_t rounds = std::max(
      layout.batch * chunks_of(problem, config) + (layout.packed ? layout.sequences / 16 : 0),
      tokens * (1 + search_rounds(layout)));
  if (Refusal no = rejects_rounds(rounds, profile)) return no;
  return rejects_long_operands(problem, profile, {});
}

std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  // Processors only check them: few tokens at once compile sooner.
  if (is_cpu(profile))
    return {{{"WG_X", 16}, {"CHUNK", 128}, {"AHEAD", 2}},
            {{"WG_X", 16}, {"CHUNK", 512}, {"AHEAD", 2}}};
  // By ocloc 88 to 103 of 128 registers spill with gradients of 8 columns of weights, none of 256.
  const bool backward = conv_call_of(problem).backward;
  const bool spills = backward && conv_call_of(problem).width > 4;
  // Two tokens at once spill 15 to 26 registers there with gradients of 4 columns.
  const bool one = spills || profile.vendor_id == kVendorIntel;
  std::vector<Config> list;
  const std::uint32_t items = fours_of(problem) >= 128 ? 128 : 32;
  // A chunk reads WIDTH - 1 rows more than it writes; short ones keep a GPU busy.
  const std::int64_t busy = std::int64_t{512} * std::max(profile.compute_units, 16U);
  for (const std::uint32_t chunk : {128U, 32U, 8U}) {
    Config config{{"WG_X", items}, {"CHUNK", chunk}};
    if (backward) config.set("AHEAD", one ? 1 : 4);
    if (spills && has_large_registers(profile)) config.set(std::string(kLargeRegisters), 1);
    if (chunk == 8U ||
        conv_layout_of(problem).batch * chunks_of(problem, config) * fours_of(problem) >= busy)
      list.push_back(config);
  }
  return list;
}

Pass new_pass(const std::string& name, std::vector<std::size_t> bindings) {
  Pass pass = conv_pass(name, std::move(bindings));
  pass.groups = [](const Problem& problem, const Config& config) {
    return groups_of(units_of(problem, config) * ceil_div(fours_of(problem), config.group().x));
  };
  pass.args = [](const Problem& problem, const Config& config) {
    return argument_bytes(conv_arguments(problem, config.at("CHUNK"), chunks_of(problem, config)));
  };
  return pass;
}

std::vector<Pass> passes(bool backward) {
  std::vector<Pass> list = list_of(boundaries_pass(conv_layout_of, kConvOffsets));
  if (!backward) {
    list.push_back(new_pass("forward", {kConvInput, kConvWeight, kConvBias, kConvInitial,
                                        kConvOutput, kConvFinal, kScratch}));
    list.back().specialized_on = std::vector<std::string>{"WIDTH"};
    return list;
  }
  list.push_back(
      new_pass("backward", {kConvInput, kConvWeight, kConvBias, kConvInitial, kConvGradOutput,
                            kConvGradFinal, kConvGradInput, kConvGradInitial, kScratch}));
  list.push_back(conv_combine_pass(all_chunks));
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
                   .when = [](const Problem&, const DeviceProfile&) { return true; }}};
}

}  // namespace tessera::operations::state_space
