// SPDX-License-Identifier: Apache-2.0
// The passes of grouped products as those of another operation's variant.
#include "operations/grouped_core/gated.hpp"

#include <cstddef>
#include <cstring>
#include <utility>

#include "kernel/steps.hpp"

namespace tessera::operations::matmul {
namespace {

using ProductOf = std::function<Problem(const Problem&)>;

Problem gated_product(const GatedCall& call, const Problem& caller) {
  Problem problem = kernel::problem_of(call.product, caller);
  GroupedProblem details = problem.as<GroupedProblem>();
  details.gate = call.activation;
  problem.set_details(std::move(details));
  return problem;
}

std::size_t slot_of_caller(std::size_t slot, const GroupedSlots& caller) {
  const GroupedSlots own = grouped_slots();
  if (slot == own.lhs) return caller.lhs;
  if (slot == own.rhs) return caller.rhs;
  if (slot == own.sizes) return caller.sizes;
  if (slot == own.output) return caller.output;
  return slot == kScratch || slot == kErrors ? kScratch : kNoOperand;
}

// Errors go to the last words of the list's first vector, which nobody reads.
std::vector<std::byte> without_errors(std::vector<std::byte> args, std::size_t errors_at) {
  constexpr std::uint32_t kWords = 2;
  std::memcpy(args.data() + errors_at, &kWords, sizeof kWords);
  return args;
}

Pass pass_of_caller(Pass pass, const ProductOf& product_of, const GroupedSlots& caller) {
  pass.name = "gated " + pass.name;
  for (std::size_t& slot : pass.bindings) slot = slot_of_caller(slot, caller);
  pass.axes = [axes = std::move(pass.axes), product_of](const Problem& problem,
                                                        const DeviceProfile& profile) {
    return axes(product_of(problem), profile);
  };
  pass.constants = [constants = std::move(pass.constants), product_of](const Problem& problem,
                                                                       const Config& config) {
    return constants(product_of(problem), config);
  };
  pass.groups = [groups = std::move(pass.groups), product_of](const Problem& problem,
                                                              const Config& config) {
    return groups(product_of(problem), config);
  };
  pass.args = [args = std::move(pass.args), product_of, errors_at = pass.errors_at](
                  const Problem& problem, const Config& config) {
    std::vector<std::byte> bytes = args(product_of(problem), config);
    return errors_at ? without_errors(std::move(bytes), *errors_at) : bytes;
  };
  pass.errors_at.reset();
  return pass;
}

}  // namespace

Way gated_hopper_way(const std::function<GatedCall(const Problem&)>& call_of,
                     const GroupedSlots& slots) {
  const ProductOf product_of = [call_of](const Problem& problem) {
    return gated_product(call_of(problem), problem);
  };
  Way way = grouped_hopper_way(grouped_slots());
  Variant& variant = way.variant;
  for (Pass& pass : variant.passes) pass = pass_of_caller(std::move(pass), product_of, slots);
  variant.space = [space = std::move(variant.space), product_of](const Problem& problem,
                                                                 const DeviceProfile& profile) {
    return space(product_of(problem), profile);
  };
  variant.rejects = [rejects = std::move(variant.rejects), product_of](
                        const Problem& problem, const Config& config,
                        const DeviceProfile& profile) {
    return rejects(product_of(problem), config, profile);
  };
  variant.scratch_bytes = [scratch = std::move(variant.scratch_bytes), product_of](
                              const Problem& problem, const Config& config) {
    return scratch(product_of(problem), config);
  };
  way.rule.when = [when = std::move(way.rule.when), product_of](const Problem& problem,
                                                                const DeviceProfile& profile) {
    return when(product_of(problem), profile);
  };
  return way;
}

}  // namespace tessera::operations::matmul
