// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "device/device.hpp"
#include "device/opencl/cl.hpp"
#include "device/opencl/fork.hpp"

namespace tessera::device::opencl {

// One context on one device.
class ClDevice final : public Device, public std::enable_shared_from_this<ClDevice> {
 public:
  ClDevice(cl::Context context, cl_device_id device, DeviceProfile profile);
  ~ClDevice() override;
  ClDevice(const ClDevice&) = delete;
  ClDevice& operator=(const ClDevice&) = delete;

  const DeviceProfile& profile() const override { return profile_; }
  BufferPtr create_buffer(std::uint64_t bytes) override;
  std::unique_ptr<Stream> create_stream() override;
  ProgramPtr build(const ProgramRequest& request, BlobStore& store) override;

  cl_context context() const { return context_(); }
  cl_device_id id() const { return device_; }
  const std::string& fingerprint() const { return fingerprint_; }

  // Every call starts here: throws DeviceLost once the device was lost, or in a child of the
  // process that opened it.
  void require_usable() const {
    if (lost_.load(std::memory_order_acquire) || given_up()) [[unlikely]]
      throw_unusable();
  }
  // The driver may not be called any more: handles are forgotten instead of released.
  bool given_up() const noexcept { return forked() || broken_.load(std::memory_order_relaxed); }
  bool lost() const noexcept { return lost_.load(std::memory_order_acquire); }

  // Throws DeviceError, or DeviceLost where the code can mean nothing else.
  void check(cl_int code, std::string_view call) const {
    if (code != CL_SUCCESS) [[unlikely]]
      fail(code, call);
  }
  // The same for calls that wait.
  void check_wait(cl_int code, std::string_view call) const;
  [[noreturn]] void fail(cl_int code, std::string_view call, std::string_view detail = {}) const;
  // Makes a call that may compile. For want of memory PoCL lets exceptions of its compiler through,
  // and its locks stay locked: the device is lost then, and so is what the call worked on, which is
  // forgotten.
  template <class Handle, class Call>
  cl_int compile(std::string_view name, Handle& made, Call call) const {
    try {
      return call();
    } catch (const std::exception& error) {
      abandon(made);
      break_down(name, error.what());
    }
  }
  // Remembers that the device is lost. Throws DeviceLost now and from every later call.
  [[noreturn]] void lose(std::string why) const;

 private:
  bool forked() const noexcept { return fork_count() != forks_; }
  [[noreturn]] void throw_unusable() const;
  [[noreturn]] void break_down(std::string_view call, std::string_view thrown) const;

  cl::Context context_;
  cl_device_id device_;  // a root device: not counted
  DeviceProfile profile_;
  std::string fingerprint_;
  unsigned forks_;
  mutable std::atomic<bool> lost_{false};
  mutable std::atomic<bool> broken_{false};  // by an exception out of the driver
  mutable std::mutex mutex_;
  mutable std::string why_lost_;
};

class ClBuffer final : public Buffer {
 public:
  ClBuffer(std::shared_ptr<const ClDevice> device, cl::Buffer memory, std::uint64_t size);
  // On memory of the application, `flags` of which say what kernels may do with it. `parent`: whose
  // part it is from `origin` on.
  ClBuffer(std::shared_ptr<const ClDevice> device, cl::Buffer memory, std::uint64_t size,
           cl_mem parent, std::uint64_t origin, cl_mem_flags flags);
  ~ClBuffer() override;
  ClBuffer(const ClBuffer&) = delete;
  ClBuffer& operator=(const ClBuffer&) = delete;

  cl_mem memory() const { return memory_(); }
  const ClDevice* device() const { return device_.get(); }

 private:
  std::shared_ptr<const ClDevice> device_;
  cl::Buffer memory_;
};

// `forks`: fork_count() when the device was found.
DevicePtr open_cl_device(cl_platform_id platform, cl_device_id device, const DeviceProfile& profile,
                         unsigned forks);
// In a context that there is.
DevicePtr open_cl_device(cl::Context context, cl_device_id device, const DeviceProfile& profile);

}  // namespace tessera::device::opencl
