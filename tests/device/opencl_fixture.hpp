// SPDX-License-Identifier: Apache-2.0
// The OpenCL platform, on the first device that there is. The test program also stands between the
// library and the loader, for drivers that fail on demand.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/device.hpp"
#include "tessera/error.hpp"

namespace tessera::device {

// What the next calls answer instead of doing anything; 0 = the driver's own answer.
struct ClFaults {
  std::atomic<std::int32_t> finish{0}, launch{0}, read{0}, buffer{0}, binary{0};
  std::atomic<int> launches{-1};  // how many of those answer so; -1 = all
  std::atomic<bool> build_throws{false}, launch_throws{false};  // as PoCL for want of memory
  std::atomic<int> parts{0};                                    // of launches, a count
  void clear() {
    finish = launch = read = buffer = binary = 0;
    launches = -1;
    build_throws = launch_throws = false;
  }
};
extern ClFaults cl_faults;

inline constexpr std::int32_t kAllocationFailure = -4, kOutOfResources = -5, kInvalidQueue = -36,
                              kInvalidBinary = -42, kInvalidGroupSize = -54;

struct MemoryStore : BlobStore {
  std::map<std::string, std::vector<std::byte>, std::less<>> blobs;
  int hits = 0, misses = 0, puts = 0;

  std::vector<std::byte> get(std::string_view key) override {
    const auto found = blobs.find(key);
    ++(found == blobs.end() ? misses : hits);
    return found == blobs.end() ? std::vector<std::byte>{} : found->second;
  }
  void put(std::string_view key, std::span<const std::byte> blob) override {
    ++puts;
    blobs[std::string(key)].assign(blob.begin(), blob.end());
  }
};

struct ScaleArgs {
  std::uint32_t n;
  float factor;
};

inline constexpr const char* kScaleSource = R"(
typedef struct { uint n; float factor; } Args;
// x = x * factor * TIMES + bias, where bias is optional
kernel __attribute__((reqd_work_group_size(WG_X, WG_Y, WG_Z)))
void scale(global float* x, const global float* bias, Args args) {
  const uint i = get_global_id(0);
  if (i < args.n) x[i] = x[i] * args.factor * TIMES + (bias ? bias[i] : 0.0f);
}
)";

inline ProgramRequest scale_request(std::uint32_t times = 3) {
  ProgramRequest request;
  request.name = "scale";
  request.entry = "scale";
  request.source = kScaleSource;
  request.defines = {{"TIMES", times}};
  request.group = {8, 1, 1};
  request.bindings = 2;
  request.argument_bytes = sizeof(ScaleArgs);
  return request;
}

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

inline std::vector<float> iota(std::size_t n, float first = 0) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), first);
  return values;
}

inline std::vector<float> read(Stream& stream, const Buffer& buffer) {
  std::vector<float> values(buffer.size() / sizeof(float));
  stream.download(buffer, 0, std::as_writable_bytes(std::span(values)));
  return values;
}

// Runs `scale` on x and waits for nothing.
inline void launch_scale(Stream& stream, const Program& program, BufferPtr x, BufferPtr bias,
                         float factor) {
  const ScaleArgs args{static_cast<std::uint32_t>(x->size() / sizeof(float)), factor};
  const std::array<BufferPtr, 2> buffers{std::move(x), std::move(bias)};
  Launch launch;
  launch.program = &program;
  launch.buffers = buffers;
  launch.arguments = std::as_bytes(std::span(&args, 1));
  launch.group = {8, 1, 1};
  launch.groups = {(args.n + 7) / 8, 1, 1};
  stream.launch(launch);
}

template <class Thrown, class Work>
std::string message_of(Work work) {
  try {
    work();
  } catch (const Thrown& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing of the expected type was thrown";
  return {};
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Holds the first device for the whole suite: opening one takes 20 ms.
class OpenCl : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    PlatformProbe probe = probe_opencl();
    for (const ProbeFailure& failure : probe.failures)
      why_none_ += failure.where + ": " + failure.why + "; ";
    if (!probe.found.empty()) {
      found_ = std::make_unique<Found>(probe.found.front());
      device_ = found_->open();
    }
  }
  static void TearDownTestSuite() {
    device_.reset();
    found_.reset();
  }
  void SetUp() override {
    if (!device_)
      GTEST_SKIP() << "no OpenCL device here (" << why_none_ << "), so nothing was tested";
    stream_ = device_->create_stream();
  }
  void TearDown() override {
    cl_faults.clear();
    stream_.reset();
  }

  BufferPtr upload(const std::vector<float>& values) {
    BufferPtr buffer = device_->create_buffer(values.size() * sizeof(float));
    stream_->upload(*buffer, 0, bytes_of(values));
    return buffer;
  }

  static inline std::string why_none_;
  static inline std::unique_ptr<Found> found_;
  static inline DevicePtr device_;
  MemoryStore store_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace tessera::device
