// SPDX-License-Identifier: Apache-2.0
#include "runtime/workbench.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "base/hash.hpp"
#include "tessera/error.hpp"

namespace tessera::runtime {
namespace {

constexpr std::int64_t kGuardElements = 1024;
constexpr std::byte kUntouched{0xFF};  // as f32, f16, bf16 or f64: NaN

double rounding_unit(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 0x1p-11;
    case DType::kBF16:
      return 0x1p-8;
    case DType::kF32:
      return 0x1p-24;
    default:
      return 0;
  }
}

void fill_normal(const Problem& problem, const Case& shape, std::span<HostTensor> tensors) {
  for (std::size_t slot = 0; slot < tensors.size(); ++slot) {
    if (!problem.has(slot) || problem.operation->operands[slot].role == Role::kOutput) continue;
    std::mt19937_64 generator(shape.seed * 1000003 + slot);
    std::normal_distribution<double> normal;
    std::vector<double> values(static_cast<std::size_t>(problem.spec(slot).elements()));
    for (double& value : values) value = normal(generator);
    tensors[slot].write(values);
  }
}

// A double-precision copy of a problem's operands for the reference: inputs as stored, outputs in
// double.
std::vector<Expectation> expect_by_reference(const Problem& problem,
                                             std::span<HostTensor> tensors) {
  const Operation& operation = *problem.operation;
  std::vector<HostTensor> operands(tensors.begin(), tensors.end());
  std::vector<std::vector<double>> outputs(operands.size());
  Problem wide = problem;
  for (std::size_t slot = 0; slot < operands.size(); ++slot) {
    if (!problem.has(slot) || operation.operands[slot].role != Role::kOutput) continue;
    outputs[slot].resize(static_cast<std::size_t>(problem.spec(slot).elements()));
    wide.operands[slot] = TensorSpec::contiguous(DType::kF64, problem.spec(slot).shape);
    operands[slot] = {.spec = wide.spec(slot),
                      .data = reinterpret_cast<std::byte*>(outputs[slot].data())};
  }
  operation.reference(wide, operands);
  std::vector<Expectation> expectations;
  for (std::size_t slot = 0; slot < operands.size(); ++slot) {
    if (!problem.has(slot) || operation.operands[slot].role != Role::kOutput) continue;
    double largest = 0;
    for (const double value : outputs[slot]) {
      if (std::isfinite(value)) largest = std::max(largest, std::fabs(value));
    }
    std::vector<double> bounds(outputs[slot].size());
    for (std::size_t i = 0; i < bounds.size(); ++i) {
      bounds[i] = rounding_unit(problem.spec(slot).dtype) * std::fabs(outputs[slot][i]) +
                  32 * 0x1p-24 * largest;
    }
    expectations.push_back(
        {.slot = slot, .values = std::move(outputs[slot]), .bounds = std::move(bounds)});
  }
  return expectations;
}

}  // namespace

std::int64_t guard_elements(const TensorSpec& spec, const DeviceProfile& profile) {
  constexpr std::int64_t kLine = 64;  // keeps the alignment that the operand has
  const auto size = static_cast<std::int64_t>(size_of(spec.dtype));
  std::int64_t guard = kGuardElements;
  for (const std::uint64_t limit : {profile.max_allocation, profile.max_binding}) {
    if (limit == 0 || limit > static_cast<std::uint64_t>(INT64_MAX)) continue;
    const std::int64_t used = std::max(spec.last_element(), spec.offset) + 1;
    const std::int64_t room = static_cast<std::int64_t>(limit) / size - used;
    guard = std::clamp<std::int64_t>(room / 2, 0, guard);
  }
  return guard / kLine * kLine;
}

std::vector<Expectation> expect(const Problem& problem, std::span<HostTensor> tensors,
                                const Arithmetic& arithmetic, double max_flops) {
  const Workload& workload = problem.operation->workload;
  if (workload.expect) return workload.expect(problem, tensors, arithmetic, max_flops);
  return expect_by_reference(problem, tensors);
}

Workbench::Workbench(ContextState& context, const Operation& operation, const Case& shape,
                     double max_flops)
    : context_(context), max_flops_(max_flops) {
  // Once for the outputs that validate() adds, once with every operand in its place.
  std::vector<std::optional<TensorSpec>> operands =
      make_problem(operation, shape.operands, shape.options).operands;
  std::vector<std::int64_t> guards(operands.size(), 0);
  for (std::size_t slot = 0; slot < operands.size(); ++slot) {
    if (!operands[slot]) continue;
    guards[slot] = guard_elements(*operands[slot], context.profile());
    operands[slot]->offset += guards[slot];
  }
  problem_ = make_problem(operation, operands, shape.options);

  std::vector<HostTensor> tensors(operands.size());
  images_.resize(operands.size());
  buffers_.resize(operands.size());
  for (std::size_t slot = 0; slot < operands.size(); ++slot) {
    if (!problem_.has(slot)) continue;
    const TensorSpec& spec = problem_.spec(slot);
    const std::int64_t last = std::max(spec.last_element(), spec.offset);
    images_[slot].assign(static_cast<std::size_t>(last + 1 + guards[slot]) * size_of(spec.dtype),
                         kUntouched);
    buffers_[slot] = context_.create_buffer(images_[slot].size());
    tensors[slot] = {.spec = spec, .data = images_[slot].data()};
  }
  const Workload& workload = operation.workload;
  if (workload.fill) {
    workload.fill(problem_, shape, tensors);
  } else {
    fill_normal(problem_, shape, tensors);
  }
  upload();
}

void Workbench::upload() {
  context_.default_stream()->use([&](device::Stream& stream) {
    for (std::size_t slot = 0; slot < buffers_.size(); ++slot) {
      if (buffers_[slot]) stream.upload(*buffers_[slot], 0, images_[slot]);
    }
  });
}

std::span<const Expectation> Workbench::expectations(const Plan& plan) {
  const Variant* variant = problem_.operation->find_variant(plan.execution->choice.variant);
  const Arithmetic arithmetic{
      .backend = context_.profile().backend,
      .rounds_factors = variant != nullptr && variant->rounds_factors};  // null: the reference
  if (expected_of_ == arithmetic) return expectations_;
  std::vector<HostTensor> tensors(images_.size());
  for (std::size_t slot = 0; slot < images_.size(); ++slot) {
    if (problem_.has(slot))
      tensors[slot] = {.spec = problem_.spec(slot), .data = images_[slot].data()};
  }
  expectations_ = expect(problem_, tensors, arithmetic, max_flops_);
  expected_of_ = arithmetic;
  return expectations_;
}

void Workbench::reset_outputs() {
  context_.default_stream()->use([&](device::Stream& stream) {
    for (std::size_t slot = 0; slot < buffers_.size(); ++slot) {
      if (!buffers_[slot] || problem_.operation->operands[slot].role != Role::kOutput) continue;
      stream.fill(*buffers_[slot], 0, buffers_[slot]->size(),
                  static_cast<std::uint8_t>(kUntouched));
    }
  });
}

Verdict Workbench::verify(const Plan& plan) {
  const Operation& operation = *problem_.operation;
  std::vector<std::vector<std::byte>> after(images_.size());
  std::vector<HostTensor> tensors(images_.size());
  std::string bits;
  for (std::size_t slot = 0; slot < images_.size(); ++slot) {
    if (!buffers_[slot]) continue;
    after[slot].resize(images_[slot].size());
    context_.default_stream()->use(
        [&](device::Stream& stream) { stream.download(*buffers_[slot], 0, after[slot]); });
    tensors[slot] = {.spec = problem_.spec(slot), .data = after[slot].data()};
  }
  for (std::size_t slot = 0; slot < images_.size(); ++slot) {
    if (!buffers_[slot]) continue;
    const Operand& operand = operation.operands[slot];
    if (operand.role == Role::kInput) {
      if (after[slot] != images_[slot])
        return {.worst = 0, .failure = "the kernel changed input " + operand.name};
      continue;
    }
    bits += hash128(after[slot]);
    // Blank out the elements; what is left must be as it was.
    std::vector<std::byte> around = after[slot];
    HostTensor blank{.spec = problem_.spec(slot), .data = around.data()};
    const std::vector<double> nan(static_cast<std::size_t>(blank.spec.elements()),
                                  std::numeric_limits<double>::quiet_NaN());
    blank.write(nan);
    std::vector<std::byte> expected(around.size(), kUntouched);
    HostTensor{.spec = problem_.spec(slot), .data = expected.data()}.write(nan);
    if (around != expected) {
      return {.worst = 0, .failure = "the kernel wrote outside the elements of " + operand.name};
    }
  }
  output_bits_ = hash128(bits);
  return compare(problem_, tensors, expectations(plan));
}

}  // namespace tessera::runtime
