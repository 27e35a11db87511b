// SPDX-License-Identifier: Apache-2.0
#include "operations/common/boundaries.hpp"

#include <utility>

namespace tessera::operations {
namespace {

constexpr std::uint32_t kItems = 128;  // as many as any device of Vulkan has

}  // namespace

abi::BoundariesArgs boundaries_arguments(const Problem& problem, std::size_t slot,
                                         std::size_t count, const Boundaries& call) {
  abi::BoundariesArgs args{};
  if (!problem.has(slot)) return args;
  const auto narrow = [](auto value) { return static_cast<abi::u32>(value); };
  const TensorSpec& spec = problem.spec(slot);
  args.boundaries = narrow(spec.shape[0]);
  args.tokens = narrow(call.tokens);
  args.offset = narrow(spec.offset);
  args.stride = narrow(spec.strides[0]);
  if (problem.has(count)) {
    args.counted = 1;
    args.count_offset = narrow(problem.spec(count).offset);
  }
  args.result = narrow(call.result / 4);
  args.outside = call.outside;
  args.decreases = call.decreases;
  return args;
}

Pass boundaries_pass(std::size_t slot, std::size_t count,
                     std::function<Boundaries(const Problem&, const Config&)> of) {
  Pass pass;
  pass.name = "boundaries";
  pass.opencl = {.file = "common/boundaries.cl", .entry = "common_boundaries"};
  pass.vulkan = {.file = "common/boundaries.comp", .entry = "main"};
  pass.bindings = {slot, count, kScratch, kErrors};
  pass.errors_at = offsetof(abi::BoundariesArgs, errors);
  pass.specialized_on = std::vector<std::string>{};
  pass.group_size = [](const Config&) { return Dim3{kItems}; };
  pass.groups = [slot](const Problem& problem, const Config&) {
    return problem.has(slot) ? Dim3{1} : Dim3{0, 0, 0};
  };
  pass.args = [slot, count, of = std::move(of)](const Problem& problem, const Config& config) {
    return argument_bytes(boundaries_arguments(
        problem, slot, count, problem.has(slot) ? of(problem, config) : Boundaries{}));
  };
  return pass;
}

std::uint64_t boundaries_bytes(const Problem& problem, std::size_t slot) {
  return problem.has(slot) ? 4 * static_cast<std::uint64_t>(problem.spec(slot).shape[0]) : 0;
}

}  // namespace tessera::operations
