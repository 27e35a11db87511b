// SPDX-License-Identifier: Apache-2.0
// What a Stream shares: a queue of the device, and what launches on it need.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "device/device.hpp"
#include "runtime/buffer_pool.hpp"
#include "runtime/dispatch_limit.hpp"
#include "runtime/error_words.hpp"
#include "runtime/plan.hpp"
#include "runtime/work_memory.hpp"

namespace tessera::runtime {

// A device stream with what its launches need. The default stream is shared by threads, so every
// use takes the lock.
class StreamState {
 public:
  // `context`: the number of the one that it belongs to, which it may outlive.
  StreamState(device::DevicePtr device, std::uint64_t context, std::shared_ptr<DispatchLimit> limit,
              std::shared_ptr<BufferPool> pool, std::unique_ptr<device::Stream> stream)
      : device_(std::move(device)),
        context_(context),
        limit_(std::move(limit)),
        pool_(std::move(pool)),
        stream_(std::move(stream)) {
    pool_->open(this);
  }
  ~StreamState() {
    stream_.reset();  // which waits
    pool_->close(this);
  }
  StreamState(const StreamState&) = delete;
  StreamState& operator=(const StreamState&) = delete;

  std::uint64_t context() const { return context_; }

  template <class Work>
  auto use(Work work) {
    const std::lock_guard lock(mutex_);
    return work(*stream_);
  }
  // Launches a plan. Its kernels raise errors in `errors`, or where that is null in words of the
  // stream: what waits for the stream then throws what they hold, once.
  void launch(const Plan& plan, std::span<const device::BufferPtr> buffers,
              ErrorWords* errors = nullptr);
  void lend_scratch(device::BufferPtr buffer, std::uint64_t bytes) {
    scratch_.lend(std::move(buffer), bytes);
  }
  // Calls of a stream that only records are to submit nothing, so none of them times candidates.
  void only_record() { only_records_ = true; }
  bool only_records() const { return only_records_; }
  void synchronize();
  void download(const device::Buffer& source, std::uint64_t offset, std::span<std::byte> bytes);

 private:
  // Drivers may give a buffer its memory where it is first used: then what waits for outputs goes.
  void launch_whole(device::Stream& stream, const device::Launch& launch);
  std::uint32_t take_error_words(const Plan& plan, ErrorWords& errors);
  void throw_raised();  // waits, if there is something to look at

  device::DevicePtr device_;
  std::uint64_t context_;
  std::shared_ptr<DispatchLimit> limit_;
  std::shared_ptr<BufferPool> pool_;
  std::mutex mutex_;
  std::unique_ptr<device::Stream> stream_;
  bool only_records_ = false;
  Scratch scratch_;
  std::unique_ptr<ErrorWords> errors_;  // made for the first plan that may raise some
};

}  // namespace tessera::runtime
