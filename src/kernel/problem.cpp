// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <new>

#include "base/byte_range.hpp"
#include "base/out_of_memory.hpp"
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
  if (operand.role == Role::kOutput) check_distinct_elements(spec, whose);
}

}  // namespace

const OptionValue& Problem::option(std::string_view name) const {
  const auto found = options.find(name);
  if (found == options.end())
    throw InvalidArgument(operation->name + " has no option '" + std::string(name) + "'");
  return found->second;
}

void Problem::throw_details_missing() const {
  throw InvalidArgument((operation == nullptr ? std::string("a problem") : operation->name) +
                        (details == nullptr ? ": validate() has stored no details"
                                            : ": what validate() stored is of another type"));
}

void Problem::infer_output(std::size_t slot, DType dtype, Shape shape) {
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
    if (operand.role == Role::kOutput) {
      requested[slot] = requested[slot] || !operand.optional || operands[slot].has_value();
    } else if (!operands[slot] && !operand.optional) {
      throw InvalidArgument(operation.name + ": input '" + operand.name + "' " + operand.shape +
                            " is missing");
    }
    if (operands[slot]) check_operand(operation, operand, *operands[slot]);
  }
  problem.operands = std::move(operands);
  problem.requested = std::move(requested);
  problem.options = complete(operation, std::move(options));
  problem.precision = kernel::asked_precision(problem.options).value_or(Precision::kDefault);
  operation.validate(problem);
  return problem;
} catch (const std::bad_alloc&) {
  throw_out_of_host_memory();
}

}  // namespace tessera
