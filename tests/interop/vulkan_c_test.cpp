// SPDX-License-Identifier: Apache-2.0
// The application's own Vulkan through tessera.h.
// Under the validation layer, too: see cmake/TesseraTests.cmake.
#include "interop/vulkan_fixture.hpp"
#include "tessera/tessera_operations.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;
using testing::kBytes;
using testing::kMean;
using testing::message_of;

class VulkanInC : public testing::VulkanInterop {};

TEST_F(VulkanInC, IsInTheCInterfaceToo) {
  struct Lock {
    int held = 0, times = 0;
  } lock;
  tessera_vulkan_device device{};
  device.struct_size = sizeof device;
  device.instance = instance_;
  device.api_version = VK_API_VERSION_1_2;
  device.queue_family = family_;
  device.physical_device = physical_;
  device.device = device_;
  device.queue = queue_;
  device.features = &enabled_;
  device.lock = [](void* data) { ++static_cast<Lock*>(data)->held; };
  device.unlock = [](void* data) {
    --static_cast<Lock*>(data)->held;
    ++static_cast<Lock*>(data)->times;
  };
  device.user_data = &lock;
  const tessera_context_options options{sizeof options, nullptr, "", 0};
  tessera_context* context = nullptr;
  ASSERT_EQ(tessera_vulkan_open(&device, &options, &context), TESSERA_SUCCESS)
      << tessera_last_error();
  std::uint64_t number = 0;
  std::memcpy(&number, &buffer_, sizeof buffer_);
  const std::array<std::int64_t, 3> shape{1, 2, 3};
  const std::array<std::int64_t, 2> mean{1, 3};
  const tessera_spec in{sizeof in, TESSERA_F32, 3, shape.data(), nullptr, 5},
      out{sizeof out, TESSERA_F32, 2, mean.data(), nullptr, 17};
  tessera_tensor *input = nullptr, *output = nullptr;
  ASSERT_EQ(tessera_vulkan_tensor(context, number, 0, kBytes, &in, &input), TESSERA_SUCCESS);
  ASSERT_EQ(tessera_vulkan_tensor(context, number, 0, kBytes, &out, &output), TESSERA_SUCCESS);
  std::uint64_t same = 0;
  EXPECT_EQ(tessera_vulkan_buffer(output, &same), TESSERA_SUCCESS);
  EXPECT_EQ(same, number);
  EXPECT_EQ(tessera_vulkan_tensor(context, 0, 0, kBytes, &in, &input), TESSERA_INVALID_ARGUMENT);
  EXPECT_STREQ(tessera_last_error(), "the VkBuffer is null");

  tessera_sequence_mean_call call{};
  call.input = input;
  call.output = &output;
  put(5, {1, 2, 3, 5, 6, 7});
  EXPECT_EQ(tessera_sequence_mean(context, nullptr, &call), TESSERA_SUCCESS)
      << tessera_last_error();
  EXPECT_EQ(tessera_synchronize(context), TESSERA_SUCCESS);
  EXPECT_EQ(get(17, 3), kMean);
  EXPECT_EQ(lock.held, 0);
  EXPECT_GE(lock.times, 1);

  put(17, {-1, -1, -1});
  VkCommandBuffer commands = begin();
  tessera_stream* recording = nullptr;
  EXPECT_EQ(tessera_vulkan_record(context, nullptr, nullptr, &recording), TESSERA_INVALID_ARGUMENT);
  ASSERT_EQ(tessera_vulkan_record(context, commands, nullptr, &recording), TESSERA_SUCCESS);
  EXPECT_EQ(tessera_vulkan_restart(recording, commands), TESSERA_SUCCESS);
  EXPECT_EQ(tessera_sequence_mean(context, recording, &call), TESSERA_SUCCESS)
      << tessera_last_error();
  EXPECT_EQ(tessera_stream_synchronize(recording), TESSERA_INVALID_ARGUMENT);
  EXPECT_EQ(tessera_vulkan_signal(context, recording, 8, 1), TESSERA_INVALID_ARGUMENT);
  EXPECT_EQ(tessera_vulkan_wait_for(context, nullptr, 0, 1), TESSERA_INVALID_ARGUMENT);
  submit(commands);
  vkQueueWaitIdle(queue_);
  EXPECT_EQ(get(17, 3), kMean);
  tessera_stream_destroy(recording);
  tessera_tensor_destroy(input);
  tessera_tensor_destroy(output);
  tessera_context_destroy(context);
}

}  // namespace
}  // namespace tessera
