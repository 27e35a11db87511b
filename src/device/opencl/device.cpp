// SPDX-License-Identifier: Apache-2.0
#include "device/opencl/device.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/system/environment.hpp"
#include "base/system/log.hpp"
#include "device/no_store.hpp"
#include "device/opencl/binary.hpp"
#include "device/opencl/errors.hpp"
#include "device/opencl/host_pages.hpp"
#include "device/opencl/profile.hpp"
#include "device/opencl/program.hpp"
#include "device/opencl/ptx_promotion.hpp"
#include "device/opencl/stream.hpp"
#include "tessera/error.hpp"

namespace tessera::device::opencl {
namespace {

constexpr std::string_view kForked =
    "the OpenCL driver was in use before fork(), which leaves it unusable in the child process; "
    "open devices in the "
    "child only, or start it with exec()";

constexpr std::uint64_t kSmallestBuffer = 64;  // OpenCL has no buffers of zero bytes

// Drivers say more here than their codes do.
void CL_CALLBACK log_notice(const char* notice, const void* /*data*/, std::size_t /*bytes*/,
                            void* /*user*/) {
  if (notice != nullptr && log_enabled(LogLevel::kDebug)) {
    log(LogLevel::kDebug, std::string("opencl: ") + notice);
  }
}

}  // namespace

ClDevice::ClDevice(cl::Context context, cl_device_id device, DeviceProfile profile)
    : context_(std::move(context)),
      device_(device),
      profile_(std::move(profile)),
      fingerprint_(opencl::fingerprint(profile_, device)),
      forks_(fork_count()) {}

ClDevice::~ClDevice() {
  if (given_up()) abandon(context_);
}

BufferPtr ClDevice::create_buffer(std::uint64_t bytes) {
  require_usable();
  check_allocation(profile_, bytes);
  const std::uint64_t asked = std::max(bytes, kSmallestBuffer);
  cl_int code = CL_SUCCESS;
  cl::Buffer memory;
  if (asked > std::numeric_limits<std::size_t>::max()) {
    code = CL_INVALID_BUFFER_SIZE;
  } else {
    code = CL_INVALID_HOST_PTR;
    if (is_pocl(profile_) && is_cpu(profile_) && asked >= kHugePage)
      memory = cl::Buffer(create_in_huge_pages(context_(), asked, &code), false);
    if (code != CL_SUCCESS) {
      memory = cl::Buffer(clCreateBuffer(context_(), CL_MEM_READ_WRITE,
                                         static_cast<std::size_t>(asked), nullptr, &code),
                          false);
    }
  }
  if (means_out_of_memory(code)) {
    const std::uint64_t limit =
        code == CL_INVALID_BUFFER_SIZE ? profile_.max_allocation : profile_.global_memory;
    throw OutOfDeviceMemory(
        describe("clCreateBuffer", code) + ": " + std::to_string(bytes) + " bytes asked for, " +
            profile_.name + (code == CL_INVALID_BUFFER_SIZE ? " gives " : " has ") +
            std::to_string(limit) + (code == CL_INVALID_BUFFER_SIZE ? " in one piece" : ""),
        bytes, limit);
  }
  check(code, "clCreateBuffer");
  return std::make_shared<ClBuffer>(shared_from_this(), std::move(memory), bytes);
}

std::unique_ptr<Stream> ClDevice::create_stream() {
  require_usable();
  return std::make_unique<ClStream>(shared_from_this());
}

ProgramPtr ClDevice::build(const ProgramRequest& request, BlobStore& store) {
  require_usable();
  NoStore none;
  return build_program(shared_from_this(), request, driver_keeps_programs(profile_) ? none : store);
}

void ClDevice::check_wait(cl_int code, std::string_view call) const {
  if (code == CL_SUCCESS) return;
  if (means_lost_when_waiting(code)) lose(describe(call, code));
  fail(code, call);
}

void ClDevice::fail(cl_int code, std::string_view call, std::string_view detail) const {
  std::string text = describe(call, code);
  text += detail;
  if (always_means_lost(code)) lose(std::move(text));
  throw DeviceError(text);
}

void ClDevice::lose(std::string why) const {
  {
    const std::lock_guard lock(mutex_);
    if (why_lost_.empty()) why_lost_ = std::move(why);
  }
  lost_.store(true, std::memory_order_release);
  throw_unusable();
}

void ClDevice::break_down(std::string_view call, std::string_view thrown) const {
  broken_ = true;
  lost_.store(true, std::memory_order_release);
  lose(std::string(call) + " threw " + std::string(thrown));
}

void ClDevice::throw_unusable() const {
  if (forked()) throw DeviceLost(std::string(kForked));
  const std::lock_guard lock(mutex_);
  // Nothing is known where there was no memory for it.
  throw DeviceLost("OpenCL device " + profile_.name + " is lost: " +
                   (why_lost_.empty() ? "its driver threw an exception" : why_lost_));
}

ClBuffer::ClBuffer(std::shared_ptr<const ClDevice> device, cl::Buffer memory, std::uint64_t size)
    : Buffer(size), device_(std::move(device)), memory_(std::move(memory)) {}

ClBuffer::ClBuffer(std::shared_ptr<const ClDevice> device, cl::Buffer memory, std::uint64_t size,
                   cl_mem parent, std::uint64_t origin, cl_mem_flags flags)
    : Buffer(size, {.storage = parent,
                    .origin = origin,
                    .readable = (flags & CL_MEM_WRITE_ONLY) == 0,
                    .writable = (flags & CL_MEM_READ_ONLY) == 0}),
      device_(std::move(device)),
      memory_(std::move(memory)) {}

ClBuffer::~ClBuffer() {
  if (device_->given_up()) abandon(memory_);
}

DevicePtr open_cl_device(cl_platform_id platform, cl_device_id device, const DeviceProfile& profile,
                         unsigned forks) {
  if (forks != fork_count()) throw DeviceLost(std::string(kForked));
  const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                              reinterpret_cast<cl_context_properties>(platform), 0};
  cl_int code = CL_SUCCESS;
  cl::Context context(clCreateContext(properties, 1, &device, &log_notice, nullptr, &code), false);
  check_code(code, "clCreateContext");
  return open_cl_device(std::move(context), device, profile);
}

DevicePtr open_cl_device(cl::Context context, cl_device_id device, const DeviceProfile& profile) {
  auto opened = std::make_shared<ClDevice>(context, device, profile);
  if (!has(profile.features, Feature::kWgmma)) return opened;
  if (has(environment().disabled, Feature::kWgmma) || !wgmma_works(opened)) {
    DeviceProfile less = profile;
    less.features = without(less.features, Feature::kWgmma);
    return std::make_shared<ClDevice>(std::move(context), device, std::move(less));
  }
  return opened;
}

}  // namespace tessera::device::opencl
