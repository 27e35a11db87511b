// SPDX-License-Identifier: Apache-2.0
#include "runtime/workbench.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "base/hash.hpp"
#include "base/normal_numbers.hpp"
#include "base/tensors/rounding.hpp"
#include "kernel/elements.hpp"
#include "kernel/repeated.hpp"
#include "tessera/error.hpp"

namespace tessera::runtime {
namespace {

constexpr std::int64_t kGuardElements = 1024;
constexpr std::byte kUntouched{0xFF};  // as a float of any kind: NaN

// Whether numbers are rounded to whole ones, by a half at most.
bool is_whole(DType dtype) {
  return dtype == DType::kI8 || dtype == DType::kI4 || dtype == DType::kU4;
}

void fill_normal(const Problem& problem, const Case& shape, std::span<HostTensor> tensors) {
  for (std::size_t slot = 0; slot < tensors.size(); ++slot) {
    if (!problem.has(slot) || !is_read(problem.operation->operands[slot].role)) continue;
    std::mt19937_64 generator(shape.seed * 1000003 + slot);
    kernel::write_repeated(
        tensors[slot],
        normal_numbers(static_cast<std::size_t>(problem.spec(slot).elements()), generator));
  }
}

// Row-major indices of the elements that the call writes; empty = all of them.
std::vector<std::size_t> written_of(const Problem& problem, std::span<HostTensor> tensors,
                                    std::size_t slot) {
  const Operation& operation = *problem.operation;
  const bool some = operation.operands[slot].role == Role::kInOut && operation.writes;
  if (!some) return {};
  std::vector<std::size_t> elements = operation.writes(problem, tensors, slot);
  const auto count = static_cast<std::size_t>(problem.spec(slot).elements());
  if (std::ranges::any_of(elements, [&](std::size_t element) { return element >= count; })) {
    throw InvalidArgument(operation.name + ": writes() tells of an element that " +
                          operation.operands[slot].name + " does not have");
  }
  return elements;
}

// A double-precision copy of a problem's operands for the reference: inputs as stored, what is
// written in double.
std::vector<Expectation> expect_by_reference(const Problem& problem,
                                             std::span<HostTensor> tensors) {
  const Operation& operation = *problem.operation;
  std::vector<HostTensor> operands(tensors.begin(), tensors.end());
  std::vector<std::vector<double>> outputs(operands.size());
  Problem wide = problem;
  for (std::size_t slot = 0; slot < operands.size(); ++slot) {
    if (!problem.has(slot) || !is_written(operation.operands[slot].role)) continue;
    outputs[slot].resize(static_cast<std::size_t>(problem.spec(slot).elements()));
    if (is_read(operation.operands[slot].role)) outputs[slot] = tensors[slot].read();
    wide.operands[slot] = TensorSpec::contiguous(DType::kF64, problem.spec(slot).shape);
    operands[slot] = {.spec = wide.spec(slot),
                      .data = reinterpret_cast<std::byte*>(outputs[slot].data())};
  }
  operation.reference(wide, operands);
  std::vector<Expectation> expectations;
  for (std::size_t slot = 0; slot < operands.size(); ++slot) {
    if (!problem.has(slot) || !is_written(operation.operands[slot].role)) continue;
    const bool is_partial = operation.operands[slot].role == Role::kInOut && operation.writes;
    std::vector<std::size_t> elements = written_of(problem, tensors, slot);
    if (is_partial && elements.empty()) continue;
    if (is_partial) {
      std::vector<double> written;
      for (const std::size_t element : elements) written.push_back(outputs[slot][element]);
      outputs[slot] = std::move(written);
    }
    double largest = 0;
    for (const double value : outputs[slot]) {
      if (std::isfinite(value)) largest = std::max(largest, std::fabs(value));
    }
    const DType dtype = problem.spec(slot).dtype;
    std::vector<double> bounds(outputs[slot].size());
    for (std::size_t i = 0; i < bounds.size(); ++i) {
      bounds[i] = storage_unit(dtype) * std::fabs(outputs[slot][i]) + (is_whole(dtype) ? 0.5 : 0) +
                  32 * 0x1p-24 * largest;
    }
    expectations.push_back({.slot = slot,
                            .elements = std::move(elements),
                            .values = std::move(outputs[slot]),
                            .bounds = std::move(bounds)});
  }
  return expectations;
}

}  // namespace

std::int64_t guard_elements(const TensorSpec& spec, const DeviceProfile& profile) {
  constexpr std::int64_t kLine = 64;  // keeps the alignment that the operand has
  const auto bits = static_cast<std::int64_t>(bits_of(spec.dtype));
  std::int64_t guard = kGuardElements;
  for (const std::uint64_t limit : {profile.max_allocation, profile.max_binding}) {
    if (limit == 0 || limit > static_cast<std::uint64_t>(INT64_MAX) / 8) continue;
    const std::int64_t used = std::max(spec.last_element(), spec.offset) + 1;
    const std::int64_t room = 8 * static_cast<std::int64_t>(limit) / bits - used;
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
    const auto bits = static_cast<std::size_t>(last + 1 + guards[slot]) * bits_of(spec.dtype);
    images_[slot].assign((bits + 7) / 8, kUntouched);
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
  const Operation& operation = *problem_.operation;
  pristine_.resize(buffers_.size());
  for (std::size_t slot = 0; slot < buffers_.size(); ++slot) {
    if (buffers_[slot] && operation.operands[slot].role == Role::kInOut)
      pristine_[slot] = context_.create_buffer(images_[slot].size());
  }
  context_.default_stream()->use([&](device::Stream& stream) {
    for (std::size_t slot = 0; slot < buffers_.size(); ++slot) {
      if (buffers_[slot]) stream.upload(*buffers_[slot], 0, images_[slot]);
      if (pristine_[slot]) stream.upload(*pristine_[slot], 0, images_[slot]);
    }
  });
}

std::vector<HostTensor> Workbench::tensors_before() {
  std::vector<HostTensor> tensors(images_.size());
  for (std::size_t slot = 0; slot < images_.size(); ++slot) {
    if (problem_.has(slot))
      tensors[slot] = {.spec = problem_.spec(slot), .data = images_[slot].data()};
  }
  return tensors;
}

std::span<const Expectation> Workbench::expectations(const Plan& plan) {
  // What was asked for counts, whatever was chosen.
  const bool may_round = plan.problem.precision != Precision::kHighest;
  const Arithmetic arithmetic{.backend = context_.profile().backend,
                              .rounds_factors = may_round && plan.rounds_factors};
  for (const auto& [known, expected] : expectations_) {
    if (known == arithmetic) return expected;
  }
  std::vector<HostTensor> tensors = tensors_before();
  const auto start = std::chrono::steady_clock::now();
  expectations_.emplace_back(arithmetic, expect(problem_, tensors, arithmetic, max_flops_));
  oracle_seconds_ +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return expectations_.back().second;
}

void Workbench::launch(const Plan& plan) {
  restore();
  const device::BufferPtr words =
      plan.error_words > 0 ? context_.create_buffer(plan.error_words * sizeof(std::uint32_t))
                           : nullptr;
  context_.default_stream()->use([&](device::Stream& stream) {
    for (std::size_t slot = 0; slot < buffers_.size(); ++slot) {
      if (!buffers_[slot] || problem_.operation->operands[slot].role != Role::kOutput) continue;
      stream.fill(*buffers_[slot], 0, buffers_[slot]->size(),
                  static_cast<std::uint8_t>(kUntouched));
    }
    errors_ = words ? std::make_unique<ErrorWords>(words, stream) : nullptr;
  });
  context_.default_stream()->launch(plan, buffers_, errors_.get());
}

void Workbench::restore() {
  context_.default_stream()->use([&](device::Stream& stream) {
    for (std::size_t slot = 0; slot < buffers_.size(); ++slot) {
      if (pristine_[slot])
        stream.copy(*pristine_[slot], 0, *buffers_[slot], 0, pristine_[slot]->size());
    }
  });
}

// What differs from the image but for the elements that are written; empty = nothing.
std::string Workbench::wrong_bytes(std::size_t slot, const std::vector<std::byte>& after) {
  const Operand& operand = problem_.operation->operands[slot];
  if (!is_written(operand.role))
    return after == images_[slot] ? "" : "the kernel changed input " + operand.name;
  const TensorSpec& spec = problem_.spec(slot);
  const bool is_partial = operand.role == Role::kInOut && problem_.operation->writes;
  std::vector<std::byte> expected = images_[slot];
  const auto copy = [&](std::size_t element) {
    kernel::copy_element(spec.dtype, after.data(), element, expected.data(), element);
  };
  if (is_partial) {
    std::vector<bool> written(static_cast<std::size_t>(spec.elements()));
    std::vector<HostTensor> before = tensors_before();
    for (const std::size_t element : written_of(problem_, before, slot)) written[element] = true;
    kernel::for_each_element(spec, [&](std::size_t flat, std::size_t element) {
      if (written[flat]) copy(element);
    });
  } else {
    kernel::for_each_run(spec, 0, spec.elements(), [&](const kernel::Run& run) {
      if (run.stride == 1 && !is_packed(spec.dtype))
        return kernel::copy_elements(spec.dtype, after.data(), run.element, expected.data(),
                                     run.element, run.count);
      for (std::size_t i = 0; i < run.count; ++i) copy(run.element + i * run.stride);
    });
  }
  if (after == expected) return "";
  return "the kernel wrote outside the elements of " + operand.name +
         (is_partial ? " that the call writes" : "");
}

// The call's own errors; those of calls that it makes are theirs to check.
std::string Workbench::wrong_errors(const Plan& plan) {
  const std::vector<ErrorKind>& errors = problem_.operation->errors;
  if (errors.empty()) return "";
  std::vector<std::uint32_t> wanted(errors.size(), kNotRaised);
  std::vector<HostTensor> before = tensors_before();
  for (const Raised& raised : problem_.operation->raises(problem_, before)) {
    if (raised.error >= wanted.size()) {
      throw InvalidArgument(problem_.operation->name +
                            ": raises() tells of an error that the record does not have");
    }
    wanted[raised.error] = std::min(wanted[raised.error], raised.index);
  }
  const std::vector<std::uint32_t> words = context_.default_stream()->use(
      [&](device::Stream& stream) { return errors_->download(stream); });
  const auto text = [](std::uint32_t word) {
    return word == kNotRaised ? "nowhere" : "at " + std::to_string(word);
  };
  for (std::size_t i = 0; i < errors.size(); ++i) {
    const std::uint32_t word = words.at(plan.errors.front().first + i);
    if (word == wanted[i]) continue;
    return "the kernel raised " + errors[i].kind + " of " + errors[i].operand + " " + text(word) +
           " but must " + text(wanted[i]);
  }
  return "";
}

void Workbench::download(std::size_t slot) {
  downloads_.resize(images_.size());
  downloads_[slot].resize(images_[slot].size());
  context_.default_stream()->use(
      [&](device::Stream& stream) { stream.download(*buffers_[slot], 0, downloads_[slot]); });
}

std::string Workbench::hash_outputs() const {
  std::string bits;
  for (std::size_t slot = 0; slot < images_.size(); ++slot) {
    if (buffers_[slot] && is_written(problem_.operation->operands[slot].role))
      bits += hash128(downloads_[slot]);
  }
  return hash128(bits);
}

std::string Workbench::download_bits() {
  for (std::size_t slot = 0; slot < images_.size(); ++slot) {
    if (buffers_[slot] && is_written(problem_.operation->operands[slot].role)) download(slot);
  }
  return hash_outputs();
}

Verdict Workbench::verify(const Plan& plan) {
  std::vector<HostTensor> tensors(images_.size());
  for (std::size_t slot = 0; slot < images_.size(); ++slot) {
    if (!buffers_[slot]) continue;
    download(slot);
    tensors[slot] = {.spec = problem_.spec(slot), .data = downloads_[slot].data()};
  }
  for (std::size_t slot = 0; slot < images_.size(); ++slot) {
    if (!buffers_[slot]) continue;
    if (std::string wrong = wrong_bytes(slot, downloads_[slot]); !wrong.empty())
      return {.worst = 0, .failure = std::move(wrong)};
  }
  if (std::string wrong = wrong_errors(plan); !wrong.empty())
    return {.worst = 0, .failure = std::move(wrong)};
  output_bits_ = hash_outputs();
  return compare(problem_, tensors, expectations(plan));
}

}  // namespace tessera::runtime
