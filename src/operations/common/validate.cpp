// SPDX-License-Identifier: Apache-2.0
#include "operations/common/validate.hpp"

#include <algorithm>

#include "kernel/option_access.hpp"
#include "tessera/error.hpp"

namespace tessera::operations {

void require(const Problem& problem, bool condition, const std::string& sentence) {
  if (!condition) throw InvalidArgument(problem.operation->name + ": " + sentence);
}

std::string operand_text(const Problem& problem, std::size_t slot) {
  return problem.operation->operands[slot].name + " " + problem.spec(slot).to_string();
}

void require_shape(const Problem& problem, std::size_t slot, const Shape& shape) {
  const TensorSpec& spec = problem.spec(slot);
  require(problem, spec.shape == shape,
          operand_text(problem, slot) + " must be " +
              TensorSpec{.dtype = spec.dtype, .shape = shape}.to_string());
}

std::optional<std::int64_t> integer_option(const Problem& problem, std::string_view name,
                                           std::int64_t least) {
  const auto values = kernel::integers_option(problem, name);
  if (!values) return std::nullopt;
  if (values->size() != 1 || values->front() < least) {
    kernel::bad_option(problem, name, "an integer of at least " + std::to_string(least));
  }
  return values->front();
}

std::string bucket(std::int64_t length) {
  // The powers end at 2^63, the bucket of all lengths that are saturated.
  const auto limited = static_cast<std::uint64_t>(std::max<std::int64_t>(length, 0));
  return std::to_string(kernel::next_power_of_two(limited));
}

}  // namespace tessera::operations
