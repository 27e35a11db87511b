// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/system/out_of_memory.hpp"
#include "base/tensors/byte_range.hpp"
#include "kernel/precision.hpp"
#include "tessera/error.hpp"
#include "tessera/record.hpp"

namespace tessera {
namespace {

std::string names_of(const Operation& operation) {
  std::string text;
  for (const Operand& operand : operation.operands)
    text += (text.empty() ? "" : ", ") + operand.name;
  return text;
}

const OptionInfo* find_option(const Operation& operation, std::string_view name) {
  const auto found = std::ranges::find(operation.options, name, &OptionInfo::name);
  return found == operation.options.end() ? nullptr : &*found;
}

Options complete(const Operation& operation, Options given) {
  for (const auto& [name, value] : given) {
    const OptionInfo* info = find_option(operation, name);
    if (info == nullptr) {
      std::string known;
      for (const OptionInfo& option : operation.options)
        known += (known.empty() ? "" : ", ") + option.name;
      throw InvalidArgument(operation.name + " has no option '" + name + "'; it has " +
                            (known.empty() ? "none" : known));
    }
    const bool same_type = value.index() == info->fallback.index();
    const bool unset = std::holds_alternative<std::monostate>(value) || info->fallback.index() == 0;
    if (!same_type && !unset) {
      throw InvalidArgument(operation.name + ": option '" + name + "' takes " + info->type +
                            ", not '" + to_string(value) + "'");
    }
  }
  for (const OptionInfo& option : operation.options)
    given.try_emplace(option.name, option.fallback);
  return given;
}

// What holds for every operand of every operation.
void check_operand(const Operation& operation, const Operand& operand, const TensorSpec& spec) {
  if (!operand.dtypes.empty() &&
      std::ranges::find(operand.dtypes, spec.dtype) == operand.dtypes.end()) {
    std::string allowed;
    for (const DType dtype : operand.dtypes)
      allowed += (allowed.empty() ? "" : ", ") + std::string(to_string(dtype));
    throw InvalidArgument(operation.name + ": " + operand.name + " " + spec.to_string() +
                          " must be one of " + allowed);
  }
  const Whose whose{.call = operation.name, .name = operand.name};
  byte_range(spec, whose);
  if (is_written(operand.role)) check_distinct_elements(spec, whose);
}

// Does the call have these dtypes, as far as it has the operands?
bool fits(const StorageTypes& types, const Problem& problem) {
  return std::ranges::all_of(types.operands(), [&](const auto& operand) {
    const std::size_t slot = problem.operation->slot(operand.first);
    return !problem.has(slot) || problem.spec(slot).dtype == operand.second;
  });
}

// The first combination that the call has.
const StorageTypes& types_of(const Problem& problem) {
  const Operation& operation = *problem.operation;
  std::string known;
  for (const StorageTypes& types : operation.types) {
    if (fits(types, problem)) return types;
    known += (known.empty() ? "" : ", ") + types.to_string();
  }
  std::string got;
  for (const auto& [name, dtype] : operation.types.front().operands()) {
    const std::size_t slot = operation.slot(name);
    if (!problem.has(slot)) continue;
    got.append(got.empty() ? "" : ", ").append(name).append(" ");
    got.append(to_string(problem.spec(slot).dtype));
  }
  throw InvalidArgument(operation.name + ": " + got +
                        " is no combination of dtypes that it takes; " + "they are " + known);
}

}  // namespace

std::string_view to_string(Role role) {
  return role == Role::kInput ? "input" : role == Role::kOutput ? "output" : "in-out";
}

bool takes(const Variant& variant, const StorageTypes& types) {
  const bool of_dtype =
      variant.dtypes.empty() || std::ranges::count(variant.dtypes, types.dtype()) != 0;
  const bool of_types =
      variant.types.empty() || std::ranges::count(variant.types, types.name()) != 0;
  return of_dtype && of_types;
}

const OptionValue& Problem::option(std::string_view name) const try {
  const auto found = options.find(name);
  if (found == options.end())
    throw InvalidArgument(operation->name + " has no option '" + std::string(name) + "'");
  return found->second;
} catch (...) {
  rethrow_as_error();
}

void Problem::throw_details_missing() const try {
  throw InvalidArgument((operation == nullptr ? std::string("a problem") : operation->name) +
                        (details == nullptr ? ": validate() has stored no details"
                                            : ": what validate() stored is of another type"));
} catch (...) {
  rethrow_as_error();
}

void Problem::infer_output(std::size_t slot, DType dtype, Shape shape) try {
  if (!requested[slot]) return;
  TensorSpec inferred = TensorSpec::contiguous(dtype, std::move(shape));
  if (!operands[slot]) {
    operands[slot] = std::move(inferred);
    return;
  }
  if (operands[slot]->dtype != inferred.dtype || operands[slot]->shape != inferred.shape) {
    throw InvalidArgument(operation->name + ": " + operation->operands[slot].name + " is " +
                          operands[slot]->to_string() + " but must be " + inferred.to_string());
  }
} catch (...) {
  rethrow_as_error();
}

Problem make_problem(const Operation& operation, std::vector<std::optional<TensorSpec>> operands,
                     Options options, std::vector<bool> requested) try {
  const std::size_t slots = operation.operands.size();
  if (operands.size() > slots) {
    throw InvalidArgument(operation.name + " has " + std::to_string(slots) +
                          " operands: " + names_of(operation));
  }
  Problem problem{.operation = &operation};
  operands.resize(slots);
  requested.resize(slots, false);
  for (std::size_t slot = 0; slot < slots; ++slot) {
    const Operand& operand = operation.operands[slot];
    if (is_written(operand.role)) {
      requested[slot] = operands[slot].has_value() ||
                        (operand.role == Role::kOutput && (requested[slot] || !operand.optional));
    }
    if (is_read(operand.role) && !operands[slot] && !operand.optional) {
      throw InvalidArgument(operation.name + ": input '" + operand.name + "' " + operand.shape +
                            " is missing");
    }
    if (operands[slot]) check_operand(operation, operand, *operands[slot]);
  }
  problem.operands = std::move(operands);
  problem.requested = std::move(requested);
  problem.options = complete(operation, std::move(options));
  problem.precision = kernel::asked_precision(problem.options).value_or(Precision::kDefault);
  if (!operation.types.empty()) problem.types = types_of(problem);
  operation.validate(problem);
  // Outputs may tell combinations apart.
  problem.types = operation.types.empty() ? StorageTypes(problem.dtype) : types_of(problem);
  if (problem.types.name() != to_string(problem.dtype))
    problem.key += ";types=" + problem.types.name();
  return problem;
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
