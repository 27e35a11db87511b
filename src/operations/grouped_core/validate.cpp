// SPDX-License-Identifier: Apache-2.0
#include "operations/common/validate.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "kernel/option_access.hpp"
#include "operations/grouped_core/problem.hpp"
#include "operations/matmul_core/core/args.h"

namespace tessera::operations::matmul {
namespace {

const std::string& name_of(const Problem& problem, std::size_t slot) {
  return problem.operation->operands[slot].name;
}

void require_rank(const Problem& problem, std::size_t slot, std::size_t rank) {
  require(problem, problem.spec(slot).shape.size() == rank,
          operand_text(problem, slot) + " must be " + problem.operation->operands[slot].shape);
}

// Two operands that share an axis.
void require_equal(const Problem& problem, std::size_t one, std::int64_t extent, std::size_t other,
                   std::int64_t other_extent, const char* what) {
  require(problem, extent == other_extent,
          name_of(problem, one) + " has " + std::to_string(extent) + " " + what + " and " +
              name_of(problem, other) + " " + std::to_string(other_extent) + ": " +
              problem.spec(one).to_string() + " and " + problem.spec(other).to_string());
}

void read_grouped(const Problem& problem, GroupedProblem& call) {
  const GroupedSlots& slots = call.slots;
  const Shape &lhs = problem.spec(slots.lhs).shape, &rhs = problem.spec(slots.rhs).shape;
  require_rank(problem, slots.lhs, 2);
  require_rank(problem, slots.rhs, 3);
  call.transpose_rhs = kernel::bool_option(problem, "transpose_rhs");
  call.m = lhs[0];
  call.k = lhs[1];
  call.held = rhs[0];
  call.n = call.transpose_rhs ? rhs[1] : rhs[2];
  require_equal(problem, slots.lhs, call.k, slots.rhs, call.transpose_rhs ? rhs[2] : rhs[1],
                "terms");
}

void read_transposed(const Problem& problem, GroupedProblem& call) {
  const GroupedSlots& slots = call.slots;
  const Shape &lhs = problem.spec(slots.lhs).shape, &rhs = problem.spec(slots.rhs).shape;
  require_rank(problem, slots.lhs, 2);
  require_rank(problem, slots.rhs, 2);
  call.k = lhs[0];
  call.m = lhs[1];
  call.n = rhs[1];
  require_equal(problem, slots.lhs, call.m, slots.rhs, rhs[0], "terms");
  if (slots.backward()) {
    require_rank(problem, slots.grad_output, 3);
    call.held = problem.spec(slots.grad_output).shape[0];
  } else {
    call.held = integer_option(problem, "groups", 0)
                    .value_or(std::max<std::int64_t>(0, call.groups - call.first));
  }
}

DType output_type(const Problem& problem, const GroupedSlots& slots) {
  if (slots.backward()) return problem.spec(slots.grad_output).dtype;
  const OptionValue& value = problem.option("output_dtype");
  if (!std::holds_alternative<std::monostate>(value)) {
    const std::vector<DType> types{DType::kF32, DType::kF16, DType::kBF16, DType::kI32};
    return types[kernel::choice_option(problem, "output_dtype", {"f32", "f16", "bf16", "i32"})];
  }
  if (problem.has(slots.existing)) return problem.spec(slots.existing).dtype;
  return output_of_factors(problem, slots.lhs, {slots.scale_lhs, slots.scale_rhs});
}

// Factors of 8 bits and their scales; the terms of a transposed call are those of all groups.
void read_factors(const Problem& problem, GroupedProblem& call) {
  const GroupedSlots& slots = call.slots;
  if (slots.backward()) return;
  require_factors(problem, slots.lhs, slots.rhs, {slots.scale_lhs, slots.scale_rhs},
                  slots.transposed ? call.m : call.k);
  const bool alone = problem.dtype == DType::kI8 && !problem.has(slots.scale_lhs) &&
                     !problem.has(slots.scale_rhs) &&
                     !(slots.transposed && problem.has(slots.existing));
  require(problem, call.output != DType::kI32 || alone,
          std::string("an output of i32 is sums of products of i8 as they are, with no scales") +
              (slots.transposed ? " and nothing added" : ""));
  const bool by_rows = slots.transposed || !call.transpose_rhs;
  call.scale_lhs =
      read_scale(problem, slots.scale_lhs, slots.lhs, TermAxis::kColumns, MATMUL_BLOCK);
  call.scale_rhs = read_scale(problem, slots.scale_rhs, slots.rhs,
                              by_rows ? TermAxis::kRows : TermAxis::kColumns, MATMUL_BLOCK);
  for (const auto& [slot, scaling] :
       {std::pair(slots.scale_lhs, call.scale_lhs), std::pair(slots.scale_rhs, call.scale_rhs)})
    require(problem, !slots.transposed || !scaling.terms,
            !scaling.terms ? ""
                           : operand_text(problem, slot) +
                                 " scales blocks of terms, within which groups may begin");
}

std::string make_key(const Problem& problem, const GroupedProblem& call) {
  const auto type = [&](std::size_t slot) {
    return std::string(to_string(problem.spec(slot).dtype));
  };
  const auto unit = [&](std::size_t slot) {
    return problem.spec(slot).strides.back() == 1 ? "n" : "t";
  };
  return "lhs=" + type(call.slots.lhs) + ";rhs=" + type(call.slots.rhs) +
         ";out=" + std::string(to_string(call.output)) + ";m=" + bucket(call.m) +
         ";n=" + bucket(call.n) + ";k=" + bucket(call.k) + ";groups=" + bucket(call.held) +
         ";turns=" + unit(call.slots.lhs) + unit(call.slots.rhs) +
         (call.transpose_rhs ? "t" : "n") +
         (call.scale_lhs.terms || call.scale_rhs.terms ? ";scales=terms" : "");
}

}  // namespace

GroupedSlots grouped_slots() {
  return {.existing = 3, .output = 6, .scale_lhs = 4, .scale_rhs = 5};
}

GroupedSlots grouped_backward_slots() {
  return {.grad_output = 3, .grad_lhs = 4, .grad_rhs = 5, .grad_existing = 6};
}

GroupedSlots transposed_grouped_slots() {
  return {.existing = 3, .output = 6, .scale_lhs = 4, .scale_rhs = 5, .transposed = true};
}

GroupedSlots transposed_grouped_backward_slots() {
  return {.grad_output = 3, .grad_lhs = 4, .grad_rhs = 5, .transposed = true};
}

void validate_grouped(Problem& problem, const GroupedSlots& slots) {
  GroupedProblem call{.slots = slots};
  problem.dtype = problem.spec(slots.lhs).dtype;
  require_rank(problem, slots.sizes, 1);
  call.groups = problem.spec(slots.sizes).shape[0];
  // All from the last one on have no matrix.
  call.first = std::min(*integer_option(problem, "group_offset", 0), call.groups);
  if (slots.transposed) {
    read_transposed(problem, call);
  } else {
    read_grouped(problem, call);
  }
  call.output = output_type(problem, slots);
  read_factors(problem, call);
  const Shape output = slots.transposed ? Shape{call.held, call.k, call.n} : Shape{call.m, call.n};
  if (problem.has(slots.existing)) {
    require_shape(problem, slots.existing, output);
    require(problem, problem.spec(slots.existing).dtype == call.output,
            operand_text(problem, slots.existing) + " must have the dtype of output, " +
                std::string(to_string(call.output)));
  }
  if (slots.backward()) {
    require_shape(problem, slots.grad_output, output);
    const auto infer = [&](std::size_t gradient, std::size_t of) {
      if (gradient != kNoOperand && problem.requested[gradient])
        problem.infer_output(gradient, problem.spec(of).dtype, problem.spec(of).shape);
    };
    infer(slots.grad_lhs, slots.lhs);
    infer(slots.grad_rhs, slots.rhs);
    infer(slots.grad_existing, slots.grad_output);
  } else {
    problem.infer_output(slots.output, call.output, output);
  }
  problem.key = make_key(problem, call);
  problem.set_details(std::move(call));
}

}  // namespace tessera::operations::matmul
