// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "device/opencl/cl.hpp"
#include "device/opencl/device.hpp"

namespace tessera::device::opencl {

// On a queue of its own, or on one of the application. That one is never finished and only flushed
// by what waits, and where it is out of order the stream's commands wait for each other by events.
class ClStream final : public Stream {
 public:
  explicit ClStream(std::shared_ptr<const ClDevice> device);
  ClStream(std::shared_ptr<const ClDevice> device, cl::CommandQueue queue, bool in_order);
  ~ClStream() override;
  ClStream(const ClStream&) = delete;
  ClStream& operator=(const ClStream&) = delete;

  void upload(Buffer& target, std::uint64_t offset, std::span<const std::byte> bytes) override;
  void download(const Buffer& source, std::uint64_t offset, std::span<std::byte> bytes) override;
  void copy(const Buffer& source, std::uint64_t source_offset, Buffer& target,
            std::uint64_t target_offset, std::uint64_t bytes) override;
  void fill(Buffer& target, std::uint64_t offset, std::uint64_t bytes, std::uint8_t value) override;
  void launch(const Launch& launch) override;
  void flush() override;
  void synchronize() override;
  double time(const std::function<void()>& work) override;

  const ClDevice& device() const { return *device_; }
  // For a stream on the application's queue: what comes waits for these events too.
  void wait_for(std::span<const cl_event> events);
  // Completes when the commands so far have.
  cl::Event event_after();

 private:
  struct Timing {
    cl::Event first, last;  // launches
  };
  class TimingScope;

  cl::CommandQueue create_queue(cl_command_queue_properties properties) const;
  cl_mem memory_of(const Buffer& buffer) const;  // throws InvalidArgument for another device's
  cl_mem checked_range(const Buffer& buffer, std::uint64_t offset, std::uint64_t bytes,
                       const char* what) const;
  // `reached`: bytes of the buffers that the command uses, for drivers that allocate on first use.
  void check_submit(cl_int code, const char* call, std::uint64_t reached);
  [[noreturn]] void fail_submit(cl_int code, const char* call, std::uint64_t reached,
                                const std::string& detail = {});
  void set_arguments(cl_kernel kernel, const Launch& launch) const;
  // Enqueues by call(waits, their number, event) what waits for what it must; `event`, where there
  // is one, is given away.
  template <class Call>
  cl_int enqueue(Call call, cl_event* event = nullptr);
  // On an out-of-order queue, where a marker without a list would wait for all that the application
  // has there.
  bool has_nothing_to_wait_for() const { return chained_ && active_ == queue_() && waits_.empty(); }
  cl_int finish();  // waits for the stream's commands
  void drained();   // everything submitted so far is done
  double seconds(const Timing& timing) const;

  std::shared_ptr<const ClDevice> device_;
  cl::CommandQueue queue_;
  cl::CommandQueue timing_queue_;    // created by the first time()
  cl_command_queue active_;          // one of the two
  Timing* timing_ = nullptr;         // inside time()
  bool foreign_ = false;             // the queue is the application's
  bool chained_ = false;             // and out of order
  std::vector<cl::Event> waits_;     // for which its next command waits: the last, and the caller's
  std::vector<cl_event> wait_list_;  // kept for its memory
  // Host bytes of uploads that are still under way.
  std::vector<std::unique_ptr<std::byte[]>> staged_;
  std::size_t staged_bytes_ = 0;
};

}  // namespace tessera::device::opencl
