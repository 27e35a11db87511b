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

class ClStream final : public Stream {
 public:
  explicit ClStream(std::shared_ptr<const ClDevice> device);
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
  void check_submit(cl_int code, const char* call, std::uint64_t reached) const;
  [[noreturn]] void fail_submit(cl_int code, const char* call, std::uint64_t reached,
                                const std::string& detail = {}) const;
  void set_arguments(cl_kernel kernel, const Launch& launch) const;
  void drained();  // everything submitted so far is done
  double seconds(const Timing& timing) const;

  std::shared_ptr<const ClDevice> device_;
  cl::CommandQueue queue_;
  cl::CommandQueue timing_queue_;  // created by the first time()
  cl_command_queue active_;        // one of the two
  Timing* timing_ = nullptr;       // inside time()
  // Host bytes of uploads that are still under way.
  std::vector<std::unique_ptr<std::byte[]>> staged_;
  std::size_t staged_bytes_ = 0;
};

}  // namespace tessera::device::opencl
