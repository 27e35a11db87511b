// SPDX-License-Identifier: Apache-2.0
// Memory of outputs that nobody holds any more, for the next outputs of their size. Drivers take
// some 0.1 ms to give and to clear a few MB: as long as many calls.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "device/device.hpp"

namespace tessera::runtime {

// Thread-safe. Work on a buffer may not be done when it is let go, so that only calls of the same
// stream, which runs in order, get it again, and none does that another stream has used as well.
// What belongs to a stream that is closed is freed.
class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  // Holds this many bytes at most; the ones that wait longest go first.
  explicit BufferPool(std::uint64_t most_bytes) : most_bytes_(most_bytes) {}

  void open(const void* stream);
  // When its work is done.
  void close(const void* stream) noexcept;

  // A new buffer, of nobody's. Where there is no memory, what waits here is freed first.
  device::BufferPtr create(device::Device& device, std::uint64_t bytes);
  // A buffer of this size for calls of the stream, or null. It comes back by itself.
  device::BufferPtr take(const void* stream, std::uint64_t bytes);
  // That a new buffer, of which there is no other holder, will come here when it is let go.
  device::BufferPtr lend(const void* stream, device::BufferPtr buffer);
  std::uint64_t clear() noexcept;  // frees what waits; returns the bytes
  std::uint64_t bytes() const;

 private:
  void give_back(const void* stream, device::BufferPtr buffer) noexcept;

  struct Waiting {
    const void* stream;
    device::BufferPtr buffer;
  };
  std::uint64_t most_bytes_;
  mutable std::mutex mutex_;
  std::set<const void*> streams_;  // that are open
  std::vector<Waiting> waiting_;   // in the order in which they came
  std::uint64_t bytes_ = 0;
};

}  // namespace tessera::runtime
