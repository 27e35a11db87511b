// SPDX-License-Identifier: Apache-2.0
#include "operations/attention/host_case.hpp"

#include <algorithm>

namespace tessera::testing {
namespace {

constexpr std::byte kNan{0xFF};
constexpr double kNoLimit = 1e300;

}  // namespace

HostCase::HostCase(const Operation& operation, const Case& shape)
    : name_(shape.name), problem_(make_problem(operation, shape.operands, shape.options)) {
  images_.resize(problem_.operands.size());
  tensors_.resize(problem_.operands.size());
  for (std::size_t slot = 0; slot < images_.size(); ++slot) {
    if (!problem_.has(slot)) continue;
    const TensorSpec& spec = problem_.spec(slot);
    images_[slot].assign(static_cast<std::size_t>(spec.last_element() + 1) * size_of(spec.dtype),
                         kNan);
    tensors_[slot] = {.spec = spec, .data = images_[slot].data()};
  }
  operation.workload.fill(problem_, shape, tensors_);
  expectations_ = operation.workload.expect(problem_, tensors_, {}, kNoLimit);
}

void HostCase::reset_outputs() {
  for (std::size_t slot = 0; slot < images_.size(); ++slot) {
    if (problem_.operation->operands[slot].role == Role::kOutput)
      std::ranges::fill(images_[slot], kNan);
  }
}

}  // namespace tessera::testing
