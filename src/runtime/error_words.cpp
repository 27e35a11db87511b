// SPDX-License-Identifier: Apache-2.0
#include "runtime/error_words.hpp"

#include <string>

#include "tessera/error.hpp"

namespace tessera::runtime {
namespace {

[[noreturn]] void raise(const Operation& operation, const ErrorKind& error, std::uint32_t index) {
  throw DataError(
      operation.name + ": " + error.operand + "[" + std::to_string(index) + "] " + error.sentence,
      operation.name, error.operand, index, error.kind);
}

}  // namespace

ErrorWords::ErrorWords(device::BufferPtr buffer, device::Stream& stream)
    : buffer_(std::move(buffer)) {
  stream.fill(*buffer_, 0, buffer_->size(), 0xFF);
}

bool ErrorWords::add(const Plan& plan, std::uint32_t& first) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t capacity = buffer_->size() / sizeof(std::uint32_t);
  if (plan.error_words > capacity - used_) return false;
  first = used_;
  for (const ErrorRange& range : plan.errors)
    calls_.push_back({range.operation, used_ + range.first});
  used_ += plan.error_words;
  return true;
}

std::uint32_t ErrorWords::used() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

void ErrorWords::check(std::span<const std::uint32_t> words) const {
  const std::lock_guard lock(mutex_);
  for (const ErrorRange& call : calls_) {
    const std::vector<ErrorKind>& errors = call.operation->errors;
    for (std::size_t i = 0; i < errors.size(); ++i) {
      const std::size_t at = call.first + i;
      if (at < words.size() && words[at] != kNotRaised)
        raise(*call.operation, errors[i], words[at]);
    }
  }
}

std::vector<std::uint32_t> ErrorWords::download(device::Stream& stream) const {
  std::vector<std::uint32_t> words(used());
  if (!words.empty()) stream.download(*buffer_, 0, std::as_writable_bytes(std::span(words)));
  return words;
}

void ErrorWords::clear(device::Stream& stream) {
  const std::lock_guard lock(mutex_);
  if (used_ > 0) stream.fill(*buffer_, 0, std::uint64_t{used_} * sizeof(std::uint32_t), 0xFF);
  calls_.clear();
  used_ = 0;
}

ErrorWords& words_of(const std::shared_ptr<ErrorWords>& log) {
  if (!log) throw InvalidArgument("the error log is empty: it was moved from");
  return *log;
}

}  // namespace tessera::runtime
