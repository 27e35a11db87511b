// SPDX-License-Identifier: Apache-2.0
// The host platform: runs the references on ordinary memory. Every call is finished when it
// returns.
#include <sys/utsname.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>

#include "device/device.hpp"
#include "tessera/error.hpp"

namespace tessera::device {
namespace {

class HostBuffer final : public Buffer {
 public:
  explicit HostBuffer(std::uint64_t size)
      : Buffer(size), bytes_(new std::byte[std::max<std::uint64_t>(size, 1)]) {}
  std::byte* data() { return bytes_.get(); }
  const std::byte* data() const { return bytes_.get(); }

 private:
  std::unique_ptr<std::byte[]> bytes_;
};

class HostProgram final : public Program {
 public:
  explicit HostProgram(HostKernel kernel) : kernel_(std::move(kernel)) {}
  const HostKernel& kernel() const { return kernel_; }

 private:
  HostKernel kernel_;
};

std::byte* bytes_of(Buffer& buffer) { return static_cast<HostBuffer&>(buffer).data(); }
const std::byte* bytes_of(const Buffer& buffer) {
  return static_cast<const HostBuffer&>(buffer).data();
}

// The smallest index of each kind of error, as kernels leave it.
void raise_errors(const Launch& launch, std::span<HostTensor> tensors) {
  const Operation& operation = *launch.problem->operation;
  if (operation.errors.empty()) return;
  for (const Raised& raised : operation.raises(*launch.problem, tensors)) {
    if (raised.error >= operation.errors.size()) {
      throw InvalidArgument(operation.name +
                            ": raises() tells of an error that the record does not have");
    }
    std::byte* const at =
        bytes_of(*launch.errors) + (launch.first_error + raised.error) * sizeof(std::uint32_t);
    std::uint32_t word = 0;
    std::memcpy(&word, at, sizeof word);
    word = std::min(word, raised.index);
    std::memcpy(at, &word, sizeof word);
  }
}

class HostStream final : public Stream {
 public:
  void upload(Buffer& target, std::uint64_t offset, std::span<const std::byte> bytes) override {
    if (!bytes.empty()) std::memcpy(bytes_of(target) + offset, bytes.data(), bytes.size());
  }
  void download(const Buffer& source, std::uint64_t offset, std::span<std::byte> bytes) override {
    if (!bytes.empty()) std::memcpy(bytes.data(), bytes_of(source) + offset, bytes.size());
  }
  void copy(const Buffer& source, std::uint64_t source_offset, Buffer& target,
            std::uint64_t target_offset, std::uint64_t bytes) override {
    std::memmove(bytes_of(target) + target_offset, bytes_of(source) + source_offset, bytes);
  }
  void fill(Buffer& target, std::uint64_t offset, std::uint64_t bytes,
            std::uint8_t value) override {
    std::memset(bytes_of(target) + offset, value, bytes);
  }
  void launch(const Launch& launch) override {
    const Problem& problem = *launch.problem;
    std::vector<HostTensor> tensors(problem.operands.size());
    for (std::size_t slot = 0; slot < tensors.size(); ++slot) {
      if (!problem.has(slot)) continue;
      tensors[slot] = {.spec = problem.spec(slot), .data = bytes_of(*launch.buffers[slot])};
    }
    if (launch.errors != nullptr) raise_errors(launch, tensors);
    static_cast<const HostProgram*>(launch.program)->kernel()(problem, tensors);
  }
  void flush() override {}
  void synchronize() override {}
  double time(const std::function<void()>& work) override {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
};

DeviceProfile host_profile() {
  utsname system{};
  const bool known = uname(&system) == 0;
  DeviceProfile profile;
  profile.backend = Backend::kHost;
  profile.kind = DeviceKind::kCpu;
  profile.name = "reference";
  profile.vendor = "Tessera";
  profile.driver = "double precision, Eigen";
  profile.api_version = known ? std::string("host ") + system.machine : "host";
  profile.features = Feature::kStorage16 | Feature::kFp64;
  profile.compute_units = 1;
  return profile;
}

class HostDevice final : public Device {
 public:
  const DeviceProfile& profile() const override { return profile_; }
  BufferPtr create_buffer(std::uint64_t bytes) override {
    try {
      return std::make_shared<HostBuffer>(bytes);
    } catch (const std::bad_alloc&) {
      throw OutOfDeviceMemory("the host has no " + std::to_string(bytes) + " bytes for a buffer",
                              bytes, 0);
    }
  }
  std::unique_ptr<Stream> create_stream() override { return std::make_unique<HostStream>(); }
  ProgramPtr build(const ProgramRequest& request, BlobStore& /*store*/) override {
    return std::make_shared<HostProgram>(request.host);
  }

 private:
  DeviceProfile profile_ = host_profile();
};

}  // namespace

PlatformProbe probe_host() {
  PlatformProbe probe;
  probe.found.push_back(
      {.profile = host_profile(), .open = [] { return std::make_shared<HostDevice>(); }});
  return probe;
}

}  // namespace tessera::device
