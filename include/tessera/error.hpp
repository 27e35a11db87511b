// SPDX-License-Identifier: Apache-2.0
// Everything that Tessera throws derives from Error. A call that throws before its launch has
// changed nothing: outputs, caches and streams are as they were.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "tessera/export.hpp"

namespace tessera {

class TESSERA_API Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// An argument is wrong; the message names it and its value.
class TESSERA_API InvalidArgument : public Error {
 public:
  using Error::Error;
};

// The call is right but nothing here can do it; the message lists each variant's refusal.
class TESSERA_API Unsupported : public Error {
 public:
  using Error::Error;
};

// No device matches; the message lists what was probed.
class TESSERA_API NoDevice : public Error {
 public:
  using Error::Error;
};

// A driver call failed; the message names the call and its code.
class TESSERA_API DeviceError : public Error {
 public:
  using Error::Error;
};

// A kernel did not compile; the message holds the compiler's log.
class TESSERA_API BuildError : public Error {
 public:
  using Error::Error;
};

// More memory was asked for than the device gives in one piece or at all.
class TESSERA_API OutOfDeviceMemory : public Error {
 public:
  OutOfDeviceMemory(const std::string& what, std::uint64_t asked, std::uint64_t limit)
      : Error(what), asked_(asked), limit_(limit) {}
  std::uint64_t asked() const noexcept { return asked_; }
  std::uint64_t limit() const noexcept { return limit_; }

 private:
  std::uint64_t asked_;
  std::uint64_t limit_;
};

// The host has no memory left for what the call takes there.
class TESSERA_API OutOfHostMemory : public Error {
 public:
  using Error::Error;
};

// A kernel found something in the elements of an operand that makes the call meaningless in part,
// such as a page outside its pool: the message says it in a sentence. The results are what the
// operation's header says for such elements; nothing outside of the operands was read or written.
// Thrown by what waits for the call: synchronize(), downloads, and calls of Executor::run() for
// which a stream has no words left, see context.hpp.
class TESSERA_API DataError : public Error {
 public:
  DataError(const std::string& what, std::string operation, std::string operand,
            std::uint32_t index, std::string kind)
      : Error(what),
        operation_(std::move(operation)),
        operand_(std::move(operand)),
        kind_(std::move(kind)),
        index_(index) {}
  const std::string& operation() const noexcept { return operation_; }
  const std::string& operand() const noexcept { return operand_; }
  const std::string& kind() const noexcept { return kind_; }  // ErrorKind::kind
  // Of the element, row-major; the smallest of those that raised the error.
  std::uint32_t index() const noexcept { return index_; }

 private:
  std::string operation_, operand_, kind_;
  std::uint32_t index_;
};

// The device is gone. Every later call on the same context throws this again.
class TESSERA_API DeviceLost : public Error {
 public:
  using Error::Error;
};

// A cache operation that the user asked for by name failed. The implicit cache path never throws.
class TESSERA_API CacheError : public Error {
 public:
  using Error::Error;
};

}  // namespace tessera
