// SPDX-License-Identifier: Apache-2.0
// route and its gradient: a work-group for each token, blocks of choices for their places.
#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "kernel/gpu.hpp"
#include "kernel/option_access.hpp"
#include "kernel/tunable_list.inc"
#include "operations/common/launch.hpp"
#include "operations/moe/problem.hpp"
#include "operations/moe/route/args.h"

namespace tessera::operations::moe {
namespace {

constexpr std::int64_t kMostRoom = 2048;  // experts whose keys local memory holds

const RouteProblem& call_of(const Problem& problem) { return problem.as<RouteProblem>(); }
abi::u32 narrow(auto value) { return static_cast<abi::u32>(value); }

std::int64_t room_of(const RouteProblem& call) {
  return std::max<std::int64_t>(256, static_cast<std::int64_t>(kernel::next_power_of_two(
                                         static_cast<std::uint64_t>(call.experts))));
}

std::uint32_t blocks_of(const RouteProblem& call) {
  return ceil_div(call.tokens * call.top_k, MOE_BLOCK);
}
std::uint32_t token_blocks_of(const RouteProblem& call) {
  return ceil_div(call.tokens, MOE_TOKENS);
}

std::uint32_t losses_of(const Problem& problem) {
  const bool backward = call_of(problem).backward;
  return (problem.has(backward ? std::size_t{kGradBalance} : std::size_t{kBalanceLoss}) ? 1U : 0U) +
         (problem.has(backward ? std::size_t{kGradZ} : std::size_t{kZLoss}) ? 2U : 0U);
}

abi::u32 offset_of(const Problem& problem, std::size_t slot) {
  return problem.has(slot) ? narrow(problem.spec(slot).offset) : 0U;
}

// Parts of scratch, one behind the other.
std::uint64_t scratch_words(const RouteProblem& call, abi::MoeRouteArgs& args) {
  std::uint64_t words = 0;
  const auto take = [&](abi::u32& part, std::int64_t count) {
    part = narrow(words);
    words += static_cast<std::uint64_t>(count);
  };
  take(args.sums_of_exp, call.tokens);
  take(args.block_counts, std::int64_t{blocks_of(call)} * call.experts);
  take(args.totals, call.experts);
  take(args.block_sums, std::int64_t{token_blocks_of(call)} * call.experts);
  return words;
}

abi::MoeRouteArgs arguments(const Problem& problem) {
  const RouteProblem& call = call_of(problem);
  abi::MoeRouteArgs args{};
  args.tokens = narrow(call.tokens);
  args.experts = narrow(call.experts);
  args.top_k = narrow(call.top_k);
  args.groups = narrow(call.groups);
  args.top_groups = narrow(call.top_groups);
  args.sigmoid = call.sigmoid ? 1U : 0U;
  args.capacity = call.capacity ? narrow(*call.capacity) : MOE_NO_CAPACITY;
  args.renormalise = call.renormalise ? 1U : 0U;
  args.scale = static_cast<float>(call.scale);
  args.noise = static_cast<float>(call.noise);
  args.seed_low = narrow(call.seed);
  args.seed_high = narrow(call.seed >> 32);
  args.logits_offset = offset_of(problem, kLogits);
  args.logits_stride = narrow(problem.spec(kLogits).strides[0]);
  args.balance = static_cast<float>(call.balance);
  args.z = static_cast<float>(call.z);
  scratch_words(call, args);
  if (call.backward) {
    args.ids_offset = offset_of(problem, kOfIds);
    args.slots_offset = offset_of(problem, kOfSlots);
    return args;
  }
  args.biased = problem.has(kBias) ? 1U : 0U;
  args.bias_offset = offset_of(problem, kBias);
  args.ids_offset = offset_of(problem, kIds);
  args.slots_offset = offset_of(problem, kSlots);
  args.weights_offset = offset_of(problem, kWeights);
  args.counts_offset = offset_of(problem, kCounts);
  args.offsets_offset = offset_of(problem, kOffsets);
  args.balance_offset = offset_of(problem, kBalanceLoss);
  args.z_offset = offset_of(problem, kZLoss);
  return args;
}

std::vector<std::byte> bytes_of_arguments(const Problem& problem, const Config& /*config*/) {
  return argument_bytes(arguments(problem));
}

Pass route_pass(std::string name, std::vector<std::size_t> bindings,
                std::vector<std::string> specialized_on,
                std::function<Dim3(const Problem&, const Config&)> groups) {
  Pass pass;
  pass.opencl = {.file = "moe/route/" + name + ".cl", .entry = "moe_" + name};
  pass.vulkan = {.file = "moe/route/" + name + ".comp", .entry = "main"};
  pass.name = std::move(name);
  pass.bindings = std::move(bindings);
  pass.specialized_on = std::move(specialized_on);
  pass.constants = [](const Problem& problem, const Config&) -> std::vector<Define> {
    const RouteProblem& call = call_of(problem);
    return {{"ROOM", narrow(room_of(call))},
            {"LOSSES", losses_of(problem)},
            {"OUTPUTS", call.backward ? 0U : 1U}};
  };
  pass.groups = std::move(groups);
  pass.args = bytes_of_arguments;
  return pass;
}

Dim3 token_groups(const Problem& problem, const Config& config) {
  return {narrow(std::min<std::int64_t>(call_of(problem).tokens, config.at("GROUPS")))};
}
Dim3 block_groups(const Problem& problem, const Config& /*config*/) {
  return {blocks_of(call_of(problem))};
}
Dim3 one_group(const Problem&, const Config&) { return {1}; }

Pass with_dtype(Pass pass) {
  pass.axes = dtype_axes;
  return pass;
}

std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  const RouteProblem& call = call_of(problem);
  const std::int64_t units = kernel::compute_units_of(profile);
  std::vector<Config> configs;
  for (const std::uint32_t items :
       is_cpu(profile) ? std::vector<std::uint32_t>{16} : std::vector<std::uint32_t>{128, 64}) {
    const std::int64_t most = std::max<std::int64_t>(call.tokens, 1);
    const std::int64_t groups = is_cpu(profile) ? units * 16 : units * 2048 / items;
    configs.push_back({{"WG_X", items}, {"GROUPS", narrow(std::min(groups, most))}});
  }
  return configs;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const RouteProblem& call = call_of(problem);
  const std::uint32_t items = config.group().x;
  if ((items & (items - 1)) != 0)
    return "has " + std::to_string(items) + " items in a work-group, no power of two";
  if (call.experts > kMostRoom)
    return "keeps up to " + std::to_string(kMostRoom) + " experts in local memory, not " +
           std::to_string(call.experts);
  if (Refusal no = rejects_storage16(problem, profile)) return no;
  return rejects_long_operands(problem, profile);
}

Way way_of(std::vector<Pass> passes) {
  Variant variant;
  variant.name = "tokens";
  variant.idea = "a work-group for each token: the rank of an expert is how many stand in front";
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  variant.tunables = {
#include "operations/moe/route/route.def"
      {.id = 31, .name = "GROUPS", .fallback = 1, .launch_only = true}};
  variant.passes = std::move(passes);
  variant.space = space;
  variant.local_bytes = [](const Problem& problem, const Config& config) {
    return 4 * (4 * static_cast<std::uint64_t>(room_of(call_of(problem))) + config.group().x +
                MOE_BLOCK);
  };
  variant.scratch_bytes = [](const Problem& problem, const Config&) {
    abi::MoeRouteArgs args{};
    return 4 * std::max<std::uint64_t>(4, scratch_words(call_of(problem), args));
  };
  variant.rejects = rejects;
  return {.variant = std::move(variant),
          .rule = {.why = "runs everywhere",
                   .when = [](const Problem&, const DeviceProfile&) { return true; }}};
}

}  // namespace

Way route_way() {
  std::vector<Pass> passes;
  passes.push_back(with_dtype(
      route_pass("select", {kLogits, kBias, kIds, kWeights, kScratch}, {"ROOM"}, token_groups)));
  passes.push_back(route_pass("count", {kIds, kScratch}, {}, block_groups));
  passes.push_back(
      route_pass("scan", {kScratch, kCounts, kOffsets}, {"ROOM", "OUTPUTS"}, one_group));
  passes.push_back(route_pass("place", {kIds, kScratch, kSlots}, {}, block_groups));
  passes.push_back(
      route_pass("weigh", {kSlots, kWeights}, {}, [](const Problem& problem, const Config& config) {
        return Dim3{ceil_div(call_of(problem).tokens, config.group().x)};
      }));
  passes.push_back(with_dtype(
      route_pass("sums", {kLogits, kScratch}, {}, [](const Problem& problem, const Config&) {
        return Dim3{problem.has(kBalanceLoss) ? token_blocks_of(call_of(problem)) : 0U};
      })));
  passes.push_back(route_pass("losses", {kScratch, kBalanceLoss, kZLoss}, {"LOSSES"},
                              [](const Problem& problem, const Config&) {
                                return Dim3{losses_of(problem) != 0 ? 1U : 0U};
                              }));
  return way_of(std::move(passes));
}

Way route_backward_way() {
  const auto wanted = [](const Problem& problem) { return problem.has(kGradBalance); };
  std::vector<Pass> passes;
  passes.push_back(
      route_pass("count", {kOfIds, kScratch}, {}, [wanted](const Problem& problem, const Config&) {
        return Dim3{wanted(problem) ? blocks_of(call_of(problem)) : 0U};
      }));
  passes.push_back(route_pass(
      "scan", {kScratch, kNoOperand, kNoOperand}, {"ROOM", "OUTPUTS"},
      [wanted](const Problem& problem, const Config&) { return Dim3{wanted(problem) ? 1U : 0U}; }));
  Pass backward = with_dtype(route_pass(
      "backward",
      {kOfLogits, kOfIds, kOfSlots, kGradWeights, kGradBalance, kGradZ, kScratch, kGradLogits},
      {"ROOM", "LOSSES"}, token_groups));
  backward.opencl.entry = "moe_route_backward";
  backward.args = [](const Problem& problem, const Config&) {
    return argument_bytes(abi::MoeRouteBackwardArgs{
        .route = arguments(problem),
        .grad_weights_offset = offset_of(problem, kGradWeights),
        .grad_balance_offset = offset_of(problem, kGradBalance),
        .grad_z_offset = offset_of(problem, kGradZ),
        .grad_logits_offset = offset_of(problem, kGradLogits),
        .grad_logits_stride = narrow(problem.spec(kGradLogits).strides[0])});
  };
  passes.push_back(std::move(backward));
  return way_of(std::move(passes));
}

}  // namespace tessera::operations::moe
