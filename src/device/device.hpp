// SPDX-License-Identifier: Apache-2.0
// One interface to every platform. Implementations: opencl/, vulkan/, host/. Nothing above this
// layer names a vendor API.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/device.hpp"
#include "tessera/record.hpp"

namespace tessera::device {

// Device memory. The driver's object lives as long as the Buffer; a Buffer keeps its device alive.
class Buffer {
 public:
  virtual ~Buffer() = default;
  std::uint64_t size() const { return size_; }
  // The number of the context that made it, so that another's buffer is refused and not misread.
  std::uint64_t owner() const { return owner_; }
  void set_owner(std::uint64_t owner) { owner_ = owner; }

  // Notes whose commands use it, so that `used_only_by` is false once two have.
  void used_by(const void* stream) {
    if (user_ == stream) return;
    const void* nobody = nullptr;
    if (!user_.compare_exchange_strong(nobody, stream) && nobody != stream) user_ = this;
  }
  bool used_only_by(const void* stream) const { return user_ == stream; }

  // Two buffers of the application may hold the same bytes: those of one storage that overlap,
  // counted from their origins.
  const void* storage() const { return shared_.storage != nullptr ? shared_.storage : this; }
  std::uint64_t origin() const { return shared_.origin; }
  bool readable() const { return shared_.readable; }  // by kernels
  bool writable() const { return shared_.writable; }

 protected:
  // Of what the application made.
  struct Shared {
    const void* storage = nullptr;
    std::uint64_t origin = 0;
    bool readable = true, writable = true;
  };
  explicit Buffer(std::uint64_t size) : size_(size) {}
  Buffer(std::uint64_t size, const Shared& shared) : size_(size), shared_(shared) {}

 private:
  std::uint64_t size_;
  std::uint64_t owner_ = 0;
  std::atomic<const void*> user_{nullptr};
  Shared shared_;
};
using BufferPtr = std::shared_ptr<Buffer>;

// Everything that makes one compiled kernel. Two equal requests on one device give the same code.
struct ProgramRequest {
  std::string name;  // for logs and debug labels
  std::string entry;
  std::string source;                      // OpenCL C; empty for the others
  std::string ptx_target{};                // Source::ptx_target
  std::span<const std::uint32_t> spirv{};  // Vulkan; must outlive the call only
  HostKernel host;                         // host
  std::vector<Define> defines;             // axes, constants and tunables by name: OpenCL's -D
  std::vector<std::pair<std::uint32_t, std::uint32_t>>
      specialization;  // constant id, value: Vulkan's
  Dim3 group;
  std::uint32_t bindings = 0;        // buffers that the kernel takes
  std::uint32_t argument_bytes = 0;  // of the by-value struct that follows them
  // The grid of launches that may be made in parts, for which kernels are built another way.
  std::optional<Dim3> grid{};
};

class Program {
 public:
  virtual ~Program() = default;
};
using ProgramPtr = std::shared_ptr<Program>;

// Keeps what drivers compiled, by key, across processes. get() returns nothing for a missing or
// damaged entry.
class BlobStore {
 public:
  virtual ~BlobStore() = default;
  virtual std::vector<std::byte> get(std::string_view key) = 0;
  virtual void put(std::string_view key, std::span<const std::byte> blob) = 0;  // never throws
  virtual bool keeps() const { return true; }  // false: put() is in vain
};

// Work-groups [first, first + count) of a grid along one axis, and all along the others. Kernels
// see the ids and the number of work-groups of the whole grid. None: the whole grid.
struct Part {
  std::uint32_t axis = 0, first = 0, count = 0;
};

struct Launch {
  const Program* program = nullptr;
  std::span<const BufferPtr> buffers;  // a null pointer = an operand that this call does not have
  std::span<const std::byte> arguments;
  Dim3 groups;  // none along an axis is an error
  Dim3 group;
  Part part{};  // of a program that was built for this grid
  // For the host platform, which binds every operand by slot, and raises a call's errors itself,
  // with its first launch. Null: there are none.
  const Problem* problem = nullptr;
  Buffer* errors = nullptr;
  std::uint32_t first_error = 0;
};

// An in-order queue. Not thread-safe. launch() and the copies may return before the work is done;
// synchronize() waits and throws what went wrong since the last call. Destructors wait and never
// throw.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void upload(Buffer& target, std::uint64_t offset, std::span<const std::byte> bytes) = 0;
  virtual void download(const Buffer& source, std::uint64_t offset,
                        std::span<std::byte> bytes) = 0;  // waits
  virtual void copy(const Buffer& source, std::uint64_t source_offset, Buffer& target,
                    std::uint64_t target_offset, std::uint64_t bytes) = 0;
  virtual void fill(Buffer& target, std::uint64_t offset, std::uint64_t bytes,
                    std::uint8_t value) = 0;
  virtual void launch(const Launch& launch) = 0;
  virtual void flush() = 0;  // hands everything recorded so far to the device
  virtual void synchronize() = 0;
  // Seconds on the device's clock from the start of the first to the end of the last launch inside
  // `work`; waits.
  virtual double time(const std::function<void()>& work) = 0;
};

// Thread-safe. A lost device throws DeviceLost from every later call.
class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceProfile& profile() const = 0;
  virtual BufferPtr create_buffer(
      std::uint64_t bytes) = 0;  // throws OutOfDeviceMemory naming the limit
  virtual std::unique_ptr<Stream> create_stream() = 0;
  virtual ProgramPtr build(const ProgramRequest& request,
                           BlobStore& store) = 0;  // throws BuildError with the log
};
using DevicePtr = std::shared_ptr<Device>;

// A device that was found and not opened yet.
struct Found {
  DeviceProfile profile;
  std::function<DevicePtr()> open;
};
struct PlatformProbe {
  std::vector<Found> found;
  std::vector<ProbeFailure> failures;
};

// Ask a driver each time; platforms.hpp remembers the answers. None throws.
PlatformProbe probe_opencl();
PlatformProbe probe_vulkan();
PlatformProbe probe_host();

// Throws OutOfDeviceMemory when a buffer of `bytes` exceeds a limit of the profile, naming it.
void check_allocation(const DeviceProfile& profile, std::uint64_t bytes);

}  // namespace tessera::device
