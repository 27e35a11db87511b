// SPDX-License-Identifier: Apache-2.0
// dispatch, combine and its gradient: what they take, and their definition.
#include <algorithm>
#include <string>
#include <utility>

#include "operations/common/validate.hpp"
#include "operations/moe/rows.hpp"
#include "operations/moe/rows/args.h"
#include "operations/moe/rows/oracle.hpp"
#include "tessera/error.hpp"

namespace tessera::operations::moe {
namespace {

void require_rows(const Problem& problem, std::size_t slot) {
  const TensorSpec& spec = problem.spec(slot);
  require(problem, spec.shape.size() == 2,
          operand_text(problem, slot) + " must be " + problem.operation->operands[slot].shape);
  require(problem, spec.shape[1] <= 1 || spec.strides[1] == 1,
          problem.operation->operands[slot].name + " must be contiguous along its last axis");
}

void require_list(const Problem& problem, std::size_t slot, const Shape& shape) {
  if (!problem.has(slot)) return;
  require_shape(problem, slot, shape);
  require(problem, problem.spec(slot).is_contiguous(),
          problem.operation->operands[slot].name + " must be contiguous");
}

}  // namespace

void validate_rows(Problem& problem, Moves moves) {
  problem.dtype = problem.spec(kFrom).dtype;
  require_rows(problem, kFrom);
  const Shape& from = problem.spec(kFrom).shape;
  const Shape& ids = problem.spec(kExpertIds).shape;
  require(problem, ids.size() == 2, operand_text(problem, kExpertIds) + " must be [tokens, top_k]");
  const Shape& starts = problem.spec(kStarts).shape;
  require(problem, starts.size() == 1 && starts[0] >= 1,
          operand_text(problem, kStarts) + " must be [experts + 1]");
  RowsProblem call{.moves = moves,
                   .tokens = ids[0],
                   .top_k = ids[1],
                   .experts = starts[0] - 1,
                   .rows = from[0],
                   .dim = from[1]};
  require(problem, call.top_k >= 1 && call.dim >= 1,
          operand_text(problem, kExpertIds) + " has no choices, or " +
              operand_text(problem, kFrom) + " no features");
  require_list(problem, kExpertIds, ids);
  require_list(problem, kExpertSlots, ids);
  require_list(problem, kStarts, starts);
  require_list(problem, kChoiceWeights, ids);
  if (moves == Moves::kDispatch) {
    require(problem, from[0] == call.tokens,
            operand_text(problem, kFrom) + " and " + operand_text(problem, kExpertIds) +
                " differ in tokens");
    call.rows = integer_option(problem, "rows", 0).value_or(call.choices());
    problem.infer_output(kTo, problem.dtype, {call.rows, call.dim});
  } else if (moves == Moves::kCombine) {
    problem.infer_output(kTo, problem.dtype, {call.tokens, call.dim});
  } else {
    require_shape(problem, kTo, {call.tokens, call.dim});
    require(problem, problem.spec(kTo).dtype == problem.dtype,
            operand_text(problem, kTo) + " must have the dtype of rows, " +
                std::string(to_string(problem.dtype)));
    require(problem, problem.has(kChoiceWeights) || !problem.requested[kGradChoiceWeights],
            "grad_weights is wanted, but the call has no weights");
    problem.infer_output(kGradRows, problem.dtype, {call.rows, call.dim});
    problem.infer_output(kGradChoiceWeights, DType::kF32, ids);
    require_rows(problem, kGradRows);
    require_list(problem, kGradChoiceWeights, ids);
  }
  require_rows(problem, kTo);
  require(problem, std::max(call.choices(), call.rows) < std::int64_t{1} << 31,
          "counts choices and rows to 2^31");
  problem.key = "dtype=" + std::string(to_string(problem.dtype)) +
                ";tokens=" + bucket(call.tokens) + ";rows=" + bucket(call.rows) +
                ";k=" + std::to_string(call.top_k) + ";dim=" + bucket(call.dim) +
                ";weights=" + (problem.has(kChoiceWeights) ? "1" : "0");
  problem.set_details(call);
}

ChoiceRows choice_rows(const Problem& problem, std::span<const HostTensor> tensors) {
  const auto& call = problem.as<RowsProblem>();
  const std::vector<double> ids = tensors[kExpertIds].read(), slots = tensors[kExpertSlots].read();
  const std::vector<double> starts = tensors[kStarts].read();
  const auto all = static_cast<double>(call.rows);
  ChoiceRows result{.rows = std::vector<std::int64_t>(ids.size(), MOE_NOWHERE)};
  for (std::size_t n = 0; n < ids.size(); ++n) {
    if (ids[n] == MOE_NOWHERE || slots[n] == MOE_NOWHERE) continue;
    const auto index = static_cast<std::uint32_t>(n);
    if (ids[n] < 0 || ids[n] >= static_cast<double>(call.experts)) {
      result.raised.push_back({.error = MOE_BAD_EXPERT, .index = index});
      continue;
    }
    const double start = starts[static_cast<std::size_t>(ids[n])];
    if (slots[n] < 0 || start < 0 || start >= all || start + slots[n] >= all) {
      result.raised.push_back({.error = MOE_BAD_SLOT, .index = index});
    } else {
      result.rows[n] = static_cast<std::int64_t>(start + slots[n]);
    }
  }
  return result;
}

std::vector<Raised> raised_by_rows(const Problem& problem, std::span<HostTensor> tensors) {
  return choice_rows(problem, tensors).raised;
}

void reference_rows(const Problem& problem, std::span<HostTensor> tensors) {
  const MovedRows result = moved_rows(problem, tensors);
  const bool backward = problem.as<RowsProblem>().moves == Moves::kCombineBackward;
  tensors[backward ? kGradRows : kTo].write(result.rows.values);
  if (problem.has(kGradChoiceWeights))
    tensors[kGradChoiceWeights].write(result.grad_weights.values);
}

Operation rows_operation(Moves moves) {
  const bool dispatch = moves == Moves::kDispatch, backward = moves == Moves::kCombineBackward;
  const auto floats = [](std::string name, Role role, std::string shape, std::string doc) {
    return Operand{.name = std::move(name),
                   .role = role,
                   .optional = false,
                   .shape = std::move(shape),
                   .dtypes = {DType::kF32, DType::kF16, DType::kBF16},
                   .doc = std::move(doc)};
  };
  const auto list = [](std::string name, bool optional, std::string shape, DType dtype,
                       std::string doc) {
    return Operand{.name = std::move(name),
                   .role = Role::kInput,
                   .optional = optional,
                   .shape = std::move(shape),
                   .dtypes = {dtype},
                   .doc = std::move(doc)};
  };
  Operation operation;
  operation.name = dispatch ? "dispatch" : backward ? "combine_backward" : "combine";
  operation.operands = {
      dispatch ? floats("input", Role::kInput, "[tokens, dim]", "any stride between rows")
               : floats("rows", Role::kInput, "[rows, dim]", "what the experts made"),
      list("expert_ids", false, "[tokens, top_k]", DType::kI32, "as route gives them"),
      list("slots", false, "[tokens, top_k]", DType::kI32, "-1: the choice is dropped"),
      list("offsets", false, "[experts + 1]", DType::kI32,
           "the row at which each expert's places begin"),
      list("weights", true, "[tokens, top_k]", DType::kF32, "1 where they are left out")};
  if (dispatch) {
    operation.summary = "the rows of tokens, sorted by the experts that they go to";
    operation.formula =
        "output[offsets[expert_ids[t, r]] + slots[t, r]] = weights[t, r] input[t]; rows without a "
        "token are 0";
    operation.operands.push_back(
        floats("output", Role::kOutput, "[rows, dim]", "0 where no token has its place"));
    operation.options = {{.name = "rows",
                          .fallback = {},
                          .type = "int",
                          .doc = "of output: experts capacity; tokens top_k where it is not set"}};
  } else {
    operation.summary =
        backward ? "gradients of combine" : "the sums of what experts made of tokens";
    operation.formula =
        backward ? "grad_rows[p(t, r)] = weights[t, r] grad_output[t]; grad_weights[t, r] = "
                   "grad_output[t] . rows[p(t, r)]"
                 : "output[t] = sum_r weights[t, r] rows[offsets[expert_ids[t, r]] + slots[t, r]]";
    operation.operands.push_back(
        backward ? floats("grad_output", Role::kInput, "[tokens, dim]", "in the dtype of rows")
                 : floats("output", Role::kOutput, "[tokens, dim]", "in the dtype of rows"));
  }
  if (backward) {
    operation.operands.push_back(
        floats("grad_rows", Role::kOutput, "[rows, dim]", "0 where no token has its place"));
    Operand gradient =
        list("grad_weights", true, "[tokens, top_k]", DType::kF32, "0 of choices that are dropped");
    gradient.role = Role::kOutput;
    operation.operands.push_back(std::move(gradient));
  }
  operation.errors = {
      {.kind = "expert_outside", .operand = "expert_ids", .sentence = "names no expert"},
      {.kind = "slot_outside", .operand = "slots", .sentence = "names no row that there is"}};
  operation.validate = [moves](Problem& problem) { validate_rows(problem, moves); };
  operation.reference = reference_rows;
  operation.raises = raised_by_rows;
  add_ways(operation, list_of(rows_way(moves)));
  operation.workload = rows_workload(moves);
  return operation;
}

}  // namespace tessera::operations::moe
