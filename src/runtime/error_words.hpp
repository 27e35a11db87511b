// SPDX-License-Identifier: Apache-2.0
// The words in which kernels raise errors, and whose calls they are.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "device/device.hpp"
#include "runtime/plan.hpp"

namespace tessera::runtime {

// What a word holds while nothing was raised, which no index is.
inline constexpr std::uint32_t kNotRaised = 0xFFFFFFFF;

// Thread-safe.
class ErrorWords {
 public:
  // Initialised by a command of `stream`.
  ErrorWords(device::BufferPtr buffer, device::Stream& stream);

  const device::BufferPtr& buffer() const { return buffer_; }
  // Takes words for a launch of the plan; false where there is no room.
  bool add(const Plan& plan, std::uint32_t& first);
  std::uint32_t used() const;
  // Throws DataError for the first call that raised something in `words`, which begin as the buffer
  // does.
  void check(std::span<const std::uint32_t> words) const;
  std::vector<std::uint32_t> download(device::Stream& stream) const;  // those in use; waits
  void clear(device::Stream& stream);

 private:
  device::BufferPtr buffer_;
  mutable std::mutex mutex_;
  std::vector<ErrorRange> calls_;
  std::uint32_t used_ = 0;
};

// Those of an error log; InvalidArgument where it is empty.
ErrorWords& words_of(const std::shared_ptr<ErrorWords>& log);

}  // namespace tessera::runtime
