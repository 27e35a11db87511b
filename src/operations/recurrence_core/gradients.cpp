// SPDX-License-Identifier: Apache-2.0
#include "operations/recurrence_core/gradients.hpp"

#include <string>
#include <utility>

#include "operations/recurrence_core/launch.hpp"

namespace tessera::operations::recurrence {
namespace {

constexpr std::uint32_t kCombineItems = 32, kGammaItems = 64;

Pass last_pass(const std::string& name, std::uint32_t items, std::vector<std::size_t> bindings,
               PassArguments arguments) {
  Pass pass;
  pass.name = name;
  pass.opencl = {.file = "recurrence/tile/" + name + ".cl", .entry = "recurrence_" + name};
  pass.bindings = std::move(bindings);
  pass.specialized_on = std::vector<std::string>{};
  pass.group_size = [items](const Config&) { return Dim3{items}; };
  pass.args = arguments;
  return pass;
}

}  // namespace

std::int64_t rows_of(const RecurrenceProblem& call) {
  return call.batch * call.tokens * call.heads;
}

bool wants(const Problem& problem, abi::u32 gradients) {
  return (arguments_of(problem).features & gradients) != 0;
}

Pass combine_pass(const RecurrenceSlots& slots, PassArguments arguments) {
  Pass pass = last_pass(
      "combine", kCombineItems,
      {kScratch, slots.grad_query, slots.grad_key, slots.grad_g, slots.grad_gk, slots.grad_beta},
      arguments);
  pass.groups = [](const Problem& problem, const Config&) {
    return groups_of(rows_of(problem.as<RecurrenceProblem>()));
  };
  return pass;
}

Pass gamma_pass(const RecurrenceSlots& slots, PassArguments arguments) {
  Pass pass = last_pass("gamma", kGammaItems, {kScratch, slots.grad_gamma}, arguments);
  pass.groups = [](const Problem& problem, const Config&) {
    if (!wants(problem, RECUR_GRAD_GAMMA)) return Dim3{0, 0, 0};
    return Dim3{static_cast<std::uint32_t>(problem.as<RecurrenceProblem>().heads)};
  };
  return pass;
}

}  // namespace tessera::operations::recurrence
