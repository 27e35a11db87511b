// SPDX-License-Identifier: Apache-2.0
#include <new>

#include "base/out_of_memory.hpp"
#include "runtime/context_state.hpp"
#include "tessera/context.hpp"

namespace tessera {

using runtime::state_of;

ErrorLog::ErrorLog(const Context& context, std::uint32_t words) try : context_(context) {
  if (words == 0) throw InvalidArgument("an error log takes one word at least");
  runtime::ContextState& state = state_of(context);
  words_ = state.create_tensor(TensorSpec::contiguous(DType::kI32, {words}));
  // Calls on other streams find the words ready.
  state.default_stream()->use([&](device::Stream& stream) {
    state_ = std::make_shared<runtime::ErrorWords>(words_.buffer(), stream);
    stream.synchronize();
  });
} catch (const std::bad_alloc&) {
  throw_out_of_host_memory();
}

void ErrorLog::clear() const try {
  state_of(context_).default_stream()->use([&](device::Stream& stream) {
    state_->clear(stream);
    stream.synchronize();
  });
} catch (const std::bad_alloc&) {
  throw_out_of_host_memory();
}

void check_errors(const ErrorLog& log, std::span<const std::int32_t> words) {
  if (words.size() < log.state_->used()) {
    throw InvalidArgument("check_errors: " + std::to_string(words.size()) + " words, and " +
                          std::to_string(log.state_->used()) + " are in use");
  }
  // Signed and unsigned forms of one type may stand for each other.
  log.state_->check({reinterpret_cast<const std::uint32_t*>(words.data()), words.size()});
}

void check_errors(const ErrorLog& log) try {
  log.state_->check(state_of(log.context_).default_stream()->use([&](device::Stream& stream) {
    return log.state_->download(stream);
  }));
} catch (const std::bad_alloc&) {
  throw_out_of_host_memory();
}

}  // namespace tessera
