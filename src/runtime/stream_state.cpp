// SPDX-License-Identifier: Apache-2.0
#include "runtime/stream_state.hpp"

#include <string>
#include <vector>

#include "tessera/error.hpp"

namespace tessera::runtime {
namespace {

// Words for a stream's errors: thousands of calls between two waits. One more looks, and waits.
constexpr std::uint64_t kErrorBytes = 64 << 10;

}  // namespace

void StreamState::launch(const Plan& plan, std::span<const device::BufferPtr> buffers,
                         ErrorWords* errors) {
  const std::lock_guard lock(mutex_);
  for (const device::BufferPtr& buffer : buffers) {
    if (buffer != nullptr) buffer->used_by(this);
  }
  Memory memory{.operands = buffers,
                .scratch = scratch_.reserve(plan, buffers, [&](std::uint64_t bytes) {
                  return pool_->create(*device_, bytes);
                })};
  if (plan.error_words > 0) {
    if (errors == nullptr && errors_ == nullptr)
      errors_ = std::make_unique<ErrorWords>(pool_->create(*device_, kErrorBytes), *stream_);
    ErrorWords& words = errors != nullptr ? *errors : *errors_;
    memory.first_error = take_error_words(plan, words);
    memory.errors = words.buffer();
  }
  if (plan.in_parts) {
    runtime::launch(plan, *stream_, memory,
                    [this](device::Stream& stream, const device::Launch& launch,
                           std::span<const std::byte> arguments) {
                      limit_->launch(stream, launch, arguments, !only_records_);
                    });
  } else {
    runtime::launch(plan, *stream_, memory,
                    [this](device::Stream& stream, const device::Launch& launch,
                           std::span<const std::byte>) { launch_whole(stream, launch); });
  }
  stream_->flush();
}

void StreamState::launch_whole(device::Stream& stream, const device::Launch& launch) {
  try {
    return stream.launch(launch);
  } catch (const OutOfDeviceMemory&) {
    if (only_records_ || pool_->clear() == 0) throw;
  }
  stream.synchronize();  // or what was freed may still be in use
  stream.launch(launch);
}

std::uint32_t StreamState::take_error_words(const Plan& plan, ErrorWords& errors) {
  std::uint32_t first = 0;
  if (errors.add(plan, first)) return first;
  if (&errors == errors_.get()) {
    throw_raised();
    if (errors.add(plan, first)) return first;
  }
  throw InvalidArgument("the error log has no room for the " + std::to_string(plan.error_words) +
                        " words of " + plan.problem.operation->name +
                        ": clear() it, or make it larger");
}

void StreamState::throw_raised() {
  if (errors_ == nullptr || errors_->used() == 0) return;
  const std::vector<std::uint32_t> words = errors_->download(*stream_);
  // The calls are forgotten once they have been looked at, whatever they raised.
  try {
    errors_->check(words);
  } catch (const DataError&) {
    errors_->clear(*stream_);
    throw;
  }
  errors_->clear(*stream_);
}

void StreamState::synchronize() {
  const std::lock_guard lock(mutex_);
  stream_->synchronize();
  throw_raised();
}

void StreamState::download(const device::Buffer& source, std::uint64_t offset,
                           std::span<std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  stream_->download(source, offset, bytes);
  throw_raised();
}

}  // namespace tessera::runtime
