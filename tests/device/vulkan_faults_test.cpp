// SPDX-License-Identifier: Apache-2.0
// Full memory, lost devices, forks, and the end of the process.
#include "device/vulkan_fixture.hpp"

#if defined(__linux__)
#include <sys/wait.h>
#include <unistd.h>
#endif

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/vulkan/programs/pipeline_cache.hpp"
#include "tessera/error.hpp"

namespace tessera::device {
namespace {

class VulkanProcess : public Vulkan {};

class VulkanFaults : public Vulkan {
 protected:
  void SetUp() override {
    Vulkan::SetUp();
    if (!kFaultsWork) GTEST_SKIP() << "faults can be made on Linux only";
  }
};

TEST_F(VulkanFaults, FullMemoryIsAnErrorThatPasses) {
  open();
  if (!device_) return;
  for (const VkResult full : {VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_OUT_OF_HOST_MEMORY}) {
    faults.allocate = full;
    try {
      device_->create_buffer(4096);
      FAIL() << "memory out of nowhere";
    } catch (const OutOfDeviceMemory& error) {
      EXPECT_EQ(error.asked(), 4096U);
      EXPECT_EQ(error.limit(), device_->profile().global_memory);
      EXPECT_SAYS(std::string(error.what()), "vkAllocateMemory gave VK_ERROR_OUT_OF_");
    }
  }
  faults.allocate = VK_SUCCESS;
  EXPECT_EQ(device_->create_buffer(4096)->size(), 4096U);
}

TEST_F(VulkanFaults, CountsAllocations) {
  faults.allocation_limit = 5;
  open();
  if (!device_) return;
  std::vector<BufferPtr> buffers;
  const std::string text = message<OutOfDeviceMemory>([&] {
    for (int i = 0; i < 10; ++i) buffers.push_back(device_->create_buffer(16));
  });
  EXPECT_SAYS(text, "maxMemoryAllocationCount");
  EXPECT_EQ(buffers.size(), 4U) << "one belongs to the device itself";
  buffers.pop_back();
  buffers.push_back(device_->create_buffer(16));
}

TEST_F(VulkanFaults, PipelineCachesGoThroughTheStore) {
  faults.cache_bytes = 100;
  open();
  if (!device_) return;
  const ProgramRequest request = affine_request({64, 1, 1}, 0);
  EXPECT_NE(device_->build(request, store_), nullptr);
  EXPECT_EQ(faults.cache_loaded, 0U);
  ASSERT_EQ(store_.blobs.size(), 1U);
  EXPECT_EQ(store_.blobs.begin()->second.size(), 132U);
  EXPECT_TRUE(vulkan::blob_fits(*first_physical(), store_.blobs.begin()->second));
  EXPECT_NE(device_->build(request, store_), nullptr);
  EXPECT_EQ(faults.cache_loaded, 132U);
  EXPECT_NE(device_->build(affine_request({32, 1, 1}, 0), store_), nullptr);
  EXPECT_EQ(faults.cache_loaded, 0U);
  EXPECT_EQ(store_.blobs.size(), 2U);

  faults.refuse_warm_cache = true;
  EXPECT_NE(device_->build(request, store_), nullptr) << "the driver can't use what it kept";
  EXPECT_EQ(faults.cache_loaded, 0U);
}

// ---- lost devices ------------------------------------------------------------------------------

TEST_F(VulkanFaults, ALostDeviceStaysLost) {
  open();
  if (!device_) return;
  for (const bool at_submit : {true, false}) {
    const DevicePtr device = probe_vulkan().found.front().open();
    const auto stream = device->create_stream();
    const auto second = device->create_stream();
    const ProgramPtr program = device->build(affine_request({64, 1, 1}, 0), store_);
    const BufferPtr a = device->create_buffer(256);
    launch(*stream, program, {nullptr, a, nullptr}, AffineArgs{.count = 0}, 1, {64, 1, 1});
    stream->synchronize();
    launch(*stream, program, {nullptr, a, nullptr}, AffineArgs{.count = 0}, 1, {64, 1, 1});
    (at_submit ? faults.submit : faults.wait) = VK_ERROR_DEVICE_LOST;
    const std::string call = at_submit ? "vkQueueSubmit" : "vkWaitForFences";
    EXPECT_SAYS(message<DeviceLost>([&] { stream->synchronize(); }),
                call + ": VK_ERROR_DEVICE_LOST");
    faults.reset();
    std::vector<std::byte> bytes(4);
    EXPECT_SAYS(message<DeviceLost>([&] { stream->synchronize(); }), "was lost earlier: " + call);
    EXPECT_THROW(stream->flush(), DeviceLost);
    EXPECT_THROW(second->upload(*a, 0, bytes), DeviceLost);
    EXPECT_THROW(second->download(*a, 0, bytes), DeviceLost);
    EXPECT_THROW(second->fill(*a, 0, 4, 0), DeviceLost);
    EXPECT_THROW(second->copy(*a, 0, *a, 8, 4), DeviceLost);
    EXPECT_THROW(second->time([] {}), DeviceLost);
    EXPECT_THROW(launch(*second, program, {nullptr, a, nullptr}, AffineArgs{}, 1, {64, 1, 1}),
                 DeviceLost);
    EXPECT_THROW(device->create_buffer(4), DeviceLost);
    EXPECT_THROW(device->create_stream(), DeviceLost);
    EXPECT_THROW(device->build(affine_request({64, 1, 1}, 0), store_), DeviceLost);
  }
  // Another device on the same driver is not concerned.
  EXPECT_EQ(device_->create_buffer(4)->size(), 4U);
  device_->create_stream()->synchronize();
}

TEST_F(VulkanFaults, AFailedSubmissionLosesItsOwnWorkOnly) {
  open();
  if (!device_) return;
  const auto stream = device_->create_stream();
  const BufferPtr a = buffer(*stream, iota(8));
  stream->synchronize();  // a staged upload is work, too
  faults.submit = VK_ERROR_OUT_OF_DEVICE_MEMORY;
  stream->fill(*a, 0, 4, 1);
  EXPECT_SAYS(message<OutOfDeviceMemory>([&] { stream->flush(); }),
              "vkQueueSubmit: VK_ERROR_OUT_OF_DEVICE_MEMORY");
  faults.submit = VK_SUCCESS;
  stream->fill(*a, 4, 4, 0);
  EXPECT_EQ(download(*stream, a), (Words{0, 0, 2, 3, 4, 5, 6, 7}));
}

TEST_F(VulkanFaults, AHangIsAnError) {
  open();
  if (!device_) return;
  auto stream = device_->create_stream();
  const BufferPtr a = buffer(8);
  stream->fill(*a, 0, 32, 3);
  faults.wait = VK_TIMEOUT;
  EXPECT_SAYS(message<DeviceError>([&] { stream->synchronize(); }), "VK_TIMEOUT");
  faults.wait = VK_SUCCESS;
  EXPECT_EQ(download(*stream, a), Words(8, 0x03030303));
}

// ---- the process -------------------------------------------------------------------------------

#if defined(__linux__)
TEST_F(VulkanFaults, AForkedChildIsToldSo) {
  open();
  if (!device_) return;
  const auto stream = device_->create_stream();
  const BufferPtr a = buffer(*stream, iota(8));
  const pid_t child = fork();
  if (child == 0) {
    int told = 0;
    for (const std::function<void()>& call : std::initializer_list<std::function<void()>>{
             [&] { stream->synchronize(); }, [&] { device_->create_buffer(4); },
             [&] { buffer(*stream, iota(8)); }}) {
      try {
        call();
      } catch (const DeviceError& error) {
        if (std::string(error.what()).find("forked") != std::string::npos) ++told;
      }
    }
    device_.reset();
    _exit(told == 3 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(download(*stream, a), iota(8));
}
#endif

// Older than the driver's statics, so destroyed after them, with work under way.
struct Leftover {
  DevicePtr device;
  BufferPtr buffer;
  ProgramPtr program;
  std::unique_ptr<Stream> stream;
};
Leftover leftover;

TEST_F(VulkanProcess, StaticsMayHoldADeviceToTheEnd) {
  open();
  if (!device_) return;
  leftover.device = device_;
  leftover.stream = device_->create_stream();
  leftover.buffer = buffer(1 << 18);
  leftover.program = device_->build(affine_request({64, 1, 1}, 0), store_);
  launch(*leftover.stream, leftover.program, {nullptr, leftover.buffer, nullptr},
         AffineArgs{.count = 0}, 1 << 12, {64, 1, 1});
  leftover.stream->flush();
  launch(*leftover.stream, leftover.program, {nullptr, leftover.buffer, nullptr},
         AffineArgs{.count = 0}, 1, {64, 1, 1});
}

TEST_F(VulkanProcess, OpensAndClosesOften) {
  for (int i = 0; i < 20; ++i) {
    open();
    if (!device_) return;
    const auto stream = device_->create_stream();
    const BufferPtr a = buffer(*stream, iota(16));
    EXPECT_EQ(download(*stream, a), iota(16));
  }
}

}  // namespace
}  // namespace tessera::device
