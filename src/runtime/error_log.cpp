// SPDX-License-Identifier: Apache-2.0

#include "base/system/out_of_memory.hpp"
#include "runtime/context_state.hpp"
#include "tessera/context.hpp"

namespace tessera {

using runtime::ErrorWords;
using runtime::state_of;
using runtime::words_of;

ErrorLog::ErrorLog(const Context& context, std::uint32_t words) try : context_(context) {
  if (words == 0) throw InvalidArgument("an error log takes one word at least");
  runtime::ContextState& state = state_of(context);
  words_ = state.create_tensor(TensorSpec::contiguous(DType::kI32, {words}));
  // Calls on other streams find the words ready.
  state.default_stream()->use([&](device::Stream& stream) {
    state_ = std::make_shared<runtime::ErrorWords>(words_.buffer(), stream);
    stream.synchronize();
  });
} catch (...) {
  rethrow_as_error();
}

void ErrorLog::clear() const try {
  ErrorWords& words = words_of(state_);
  state_of(context_).default_stream()->use([&](device::Stream& stream) {
    words.clear(stream);
    stream.synchronize();
  });
} catch (...) {
  rethrow_as_error();
}

void check_errors(const ErrorLog& log, std::span<const std::int32_t> words) try {
  const ErrorWords& ours = words_of(log.state_);
  if (words.size() < ours.used()) {
    throw InvalidArgument("check_errors: " + std::to_string(words.size()) + " words, and " +
                          std::to_string(ours.used()) + " are in use");
  }
  // Signed and unsigned forms of one type may stand for each other.
  ours.check({reinterpret_cast<const std::uint32_t*>(words.data()), words.size()});
} catch (...) {
  rethrow_as_error();
}

void check_errors(const ErrorLog& log) try {
  const ErrorWords& words = words_of(log.state_);
  words.check(state_of(log.context_).default_stream()->use([&](device::Stream& stream) {
    return words.download(stream);
  }));
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
