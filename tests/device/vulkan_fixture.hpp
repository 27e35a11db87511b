// SPDX-License-Identifier: Apache-2.0
// The Vulkan platform, on the first device that there is. On Linux the test program also stands
// between the library and the loader: what cannot be had from a good driver (lost devices, full
// memory, cards without mapped memory) is made up.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.hpp"
#include "device/vulkan/instance/physical.hpp"
#include "device/vulkan/instance/vk.hpp"
#include "tessera/error.hpp"

namespace tessera::device {

// What the functions below pretend. Reset after each test.
struct Faults {
  std::atomic<bool> separate_memory{false};  // device memory that the host can't reach
  std::atomic<bool> no_clock{false};         // a queue without timestamps
  std::atomic<bool> old_loader{false};
  std::atomic<std::uint32_t> allocation_limit{0};
  std::atomic<VkResult> create_instance{VK_SUCCESS};
  std::atomic<VkResult> device_extensions{VK_SUCCESS};
  std::atomic<VkResult> allocate{VK_SUCCESS};
  std::atomic<VkResult> submit{VK_SUCCESS};
  std::atomic<VkResult> wait{VK_SUCCESS};
  std::atomic<VkResult> pipelines{VK_SUCCESS};
  std::atomic<bool> refuse_warm_cache{
      false};  // pipelines fail as long as their cache came with data
  std::atomic<std::size_t> cache_bytes{
      0};  // that the driver keeps for a program; it is none for lavapipe
  std::atomic<std::size_t> cache_loaded{0};
  std::atomic<int> submissions{0}, allocations{0}, parts{0};  // counts

  void reset() {
    separate_memory = no_clock = old_loader = refuse_warm_cache = false;
    allocation_limit = 0;
    cache_bytes = cache_loaded = 0;
    for (auto* result :
         {&create_instance, &device_extensions, &allocate, &submit, &wait, &pipelines}) {
      *result = VK_SUCCESS;
    }
  }
};
extern Faults faults;
#if defined(__linux__)
inline constexpr bool kFaultsWork = true;
#else
inline constexpr bool kFaultsWork = false;
#endif

// SPIR-V of the shaders in vulkan_fixture.cpp.
std::span<const std::uint32_t> affine_shader();
std::span<const std::uint32_t> table_shader();
std::span<const std::uint32_t> subgroup_shader();

using Words = std::vector<std::uint32_t>;

struct MapStore final : BlobStore {
  std::vector<std::byte> get(std::string_view key) override {
    const std::lock_guard lock(mutex);
    ++gets;
    const auto found = blobs.find(std::string(key));
    return found != blobs.end() ? found->second : fallback;
  }
  void put(std::string_view key, std::span<const std::byte> blob) override {
    const std::lock_guard lock(mutex);
    blobs[std::string(key)].assign(blob.begin(), blob.end());
  }
  std::mutex mutex;
  std::map<std::string, std::vector<std::byte>> blobs;
  std::vector<std::byte> fallback;
  int gets = 0;
};

struct AffineArgs {
  std::uint32_t count = 0, shift = 0, factor = 1, has_bias = 0;
};
struct TableArgs {
  std::uint32_t count = 0;
  std::array<std::uint32_t, 40> table{};
};

inline ProgramRequest affine_request(Dim3 group, std::uint32_t add) {
  return {.name = "affine",
          .entry = "main",
          .source = {},
          .spirv = affine_shader(),
          .host = {},
          .defines = {},
          .specialization = {{3, add}},
          .group = group,
          .bindings = 3,
          .argument_bytes = sizeof(AffineArgs)};
}

inline ProgramRequest table_request(std::uint32_t argument_bytes = sizeof(TableArgs)) {
  ProgramRequest request = affine_request({64, 1, 1}, 0);
  request.name = "table";
  request.spirv = table_shader();
  request.bindings = 1;
  request.argument_bytes = argument_bytes;
  return request;
}

template <class T>
void launch(Stream& stream, const ProgramPtr& program, const std::vector<BufferPtr>& buffers,
            const T& args, std::uint32_t groups, Dim3 group) {
  Launch launch;
  launch.program = program.get();
  launch.buffers = buffers;
  launch.arguments = std::as_bytes(std::span(&args, 1));
  launch.groups = {groups, 1, 1};
  launch.group = group;
  stream.launch(launch);
}

inline void upload(Stream& stream, const BufferPtr& buffer, const Words& words) {
  stream.upload(*buffer, 0, std::as_bytes(std::span(words)));
}

inline Words download(Stream& stream, const BufferPtr& buffer) {
  Words words(buffer->size() / sizeof(std::uint32_t));
  stream.download(*buffer, 0, std::as_writable_bytes(std::span(words)));
  return words;
}

inline Words iota(std::size_t count, std::uint32_t first = 0) {
  Words words(count);
  std::iota(words.begin(), words.end(), first);
  return words;
}

inline std::uint32_t groups_for(std::uint32_t count, std::uint32_t group) {
  return (count + group - 1) / group;
}

// The message of the Error that `work` throws.
template <class Error, class Work>
std::string message(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another exception: " << error.what();
    return "";
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}
#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

// The first physical device, below the interface.
inline std::shared_ptr<const vulkan::PhysicalDevice> first_physical() {
  const auto instance = vulkan::Instance::create();
  return vulkan::examine(instance, instance->physical_devices().at(0));
}

enum class Route { kMapped, kStaged };
inline void PrintTo(Route route, std::ostream* out) {
  *out << (route == Route::kMapped ? "mapped" : "staged");
}

class Vulkan : public ::testing::Test {
 protected:
  void SetUp() override { faults.reset(); }
  void TearDown() override {
    device_.reset();
    faults.reset();
  }
  void open() {
    const PlatformProbe probe = probe_vulkan();
    if (probe.found.empty()) {
      std::string why = "there is no Vulkan device here:";
      for (const ProbeFailure& failure : probe.failures)
        why += " " + failure.where + ": " + failure.why + ";";
      GTEST_SKIP() << why;
    }
    device_ = probe.found.front().open();
  }
  BufferPtr buffer(std::size_t words) {
    return device_->create_buffer(words * sizeof(std::uint32_t));
  }
  BufferPtr buffer(Stream& stream, const Words& words) {
    BufferPtr result = buffer(words.size());
    upload(stream, result, words);
    return result;
  }

  DevicePtr device_;
  MapStore store_;
};

class VulkanWork : public Vulkan, public ::testing::WithParamInterface<Route> {
 protected:
  void SetUp() override {
    Vulkan::SetUp();
    if (GetParam() == Route::kStaged) {
      if (!kFaultsWork) GTEST_SKIP() << "staging can be forced on Linux only";
      try {
        if (first_physical()->memory.memoryTypeCount != 1) {
          GTEST_SKIP() << "the device has its own choice of memory types";
        }
      } catch (const std::exception&) {
        GTEST_SKIP() << "there is no Vulkan device here";
      }
      faults.separate_memory = true;
    }
    open();
  }
};

}  // namespace tessera::device
