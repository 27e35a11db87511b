// SPDX-License-Identifier: Apache-2.0
// The application's own Vulkan through tessera.h.
// Under the validation layer, too: see cmake/TesseraTests.cmake.
#include "interop/vulkan_fixture.hpp"
#include "tessera/tessera_operations.h"

namespace tessera {
namespace {

using testing::find_no_dispatch;
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

TEST_F(VulkanInC, FunctionsComeFromTheApplicationsLoader) {
  const vulkan::Device mine = given();
  tessera_vulkan_device device{};
  device.struct_size = sizeof device;
  device.instance = mine.instance;
  device.api_version = mine.api_version;
  device.queue_family = mine.queue_family;
  device.physical_device = mine.physical_device;
  device.device = mine.device;
  device.queue = mine.queue;
  device.get_instance_proc_addr = reinterpret_cast<void (*)()>(find_no_dispatch);
  const tessera_context_options options{sizeof options, nullptr, "", 0};
  tessera_context* context = nullptr;
  EXPECT_EQ(tessera_vulkan_open(&device, &options, &context), TESSERA_INVALID_ARGUMENT);
  EXPECT_STREQ(tessera_last_error(),
               "the application's vkGetInstanceProcAddr does not find vkCmdDispatch");
  // Structs of the first version end before it: the process' loader is taken.
  device.struct_size = offsetof(tessera_vulkan_device, get_instance_proc_addr);
  ASSERT_EQ(tessera_vulkan_open(&device, &options, &context), TESSERA_SUCCESS)
      << tessera_last_error();
  tessera_context_destroy(context);
}

TEST_F(VulkanInC, ARecordingRaisesItsErrorsInALog) {
  const vulkan::Device mine = given();
  tessera_vulkan_device device{};
  device.struct_size = sizeof device;
  device.instance = mine.instance;
  device.api_version = mine.api_version;
  device.queue_family = mine.queue_family;
  device.physical_device = mine.physical_device;
  device.device = mine.device;
  device.queue = mine.queue;
  const tessera_context_options options{sizeof options, nullptr, "", 0};
  tessera_context* context = nullptr;
  ASSERT_EQ(tessera_vulkan_open(&device, &options, &context), TESSERA_SUCCESS)
      << tessera_last_error();
  const std::array<std::int64_t, 2> pages{4, 2};
  const std::array<std::int64_t, 1> pairs{2};
  const std::array<float, 8> values{0, 1, 2, 3, 4, 5, 6, 7};
  const std::array<std::int32_t, 2> from{1, 9}, to{0, 2};  // there is no page 9
  const tessera_spec pool_spec{sizeof pool_spec, TESSERA_F32, 2, pages.data(), nullptr, 0},
      list{sizeof list, TESSERA_I32, 1, pairs.data(), nullptr, 0};
  tessera_tensor *pool = nullptr, *source = nullptr, *target = nullptr;
  ASSERT_EQ(tessera_upload(context, &pool_spec, values.data(), sizeof values, &pool),
            TESSERA_SUCCESS);
  ASSERT_EQ(tessera_upload(context, &list, from.data(), sizeof from, &source), TESSERA_SUCCESS);
  ASSERT_EQ(tessera_upload(context, &list, to.data(), sizeof to, &target), TESSERA_SUCCESS);
  tessera_copy_pages_call call{};
  call.source_pages = source;
  call.target_pages = target;
  call.pool = pool;

  VkCommandBuffer commands = begin();
  tessera_stream* recording = nullptr;
  ASSERT_EQ(tessera_vulkan_record(context, commands, nullptr, &recording), TESSERA_SUCCESS);
  EXPECT_EQ(tessera_copy_pages(context, recording, &call), TESSERA_INVALID_ARGUMENT);
  EXPECT_THAT(tessera_last_error(), HasSubstr("error log"));
  tessera_error_log* log = nullptr;
  EXPECT_EQ(tessera_error_log_create(context, 0, &log), TESSERA_INVALID_ARGUMENT);
  ASSERT_EQ(tessera_error_log_create(context, 16, &log), TESSERA_SUCCESS) << tessera_last_error();
  ASSERT_EQ(tessera_stream_set_error_log(recording, log), TESSERA_SUCCESS);
  ASSERT_EQ(tessera_copy_pages(context, recording, &call), TESSERA_SUCCESS) << tessera_last_error();
  EXPECT_EQ(tessera_error_log_check(log), TESSERA_SUCCESS) << "nothing has run yet";
  submit(commands);
  vkQueueWaitIdle(queue_);
  EXPECT_EQ(tessera_error_log_check(log), TESSERA_DATA_ERROR);
  EXPECT_THAT(tessera_last_error(), HasSubstr("source_pages[1]"));
  std::array<float, 8> result{};
  EXPECT_EQ(tessera_download(context, pool, result.data(), sizeof result), TESSERA_SUCCESS);
  EXPECT_EQ(result, (std::array<float, 8>{2, 3, 2, 3, 4, 5, 6, 7}));

  tessera_tensor* words = nullptr;
  ASSERT_EQ(tessera_error_log_words(log, &words), TESSERA_SUCCESS);
  std::array<std::int32_t, 16> raised{};
  EXPECT_EQ(tessera_download(context, words, raised.data(), sizeof raised), TESSERA_SUCCESS);
  EXPECT_EQ(tessera_error_log_check_words(log, raised.data(), raised.size()), TESSERA_DATA_ERROR);
  raised.fill(-1);
  EXPECT_EQ(tessera_error_log_check_words(log, raised.data(), raised.size()), TESSERA_SUCCESS);
  EXPECT_EQ(tessera_error_log_check_words(log, nullptr, 0), TESSERA_INVALID_ARGUMENT);
  EXPECT_EQ(tessera_error_log_clear(log), TESSERA_SUCCESS);
  EXPECT_EQ(tessera_error_log_check(log), TESSERA_SUCCESS);
  for (auto call_with_null : {tessera_error_log_check, tessera_error_log_clear})
    EXPECT_EQ(call_with_null(nullptr), TESSERA_INVALID_ARGUMENT);
  EXPECT_EQ(tessera_stream_set_error_log(nullptr, log), TESSERA_INVALID_ARGUMENT);
  EXPECT_EQ(tessera_stream_set_error_log(recording, nullptr), TESSERA_SUCCESS);
  tessera_error_log_destroy(nullptr);
  tessera_error_log_destroy(log);
  tessera_stream_destroy(recording);
  for (tessera_tensor* tensor : {words, pool, source, target}) tessera_tensor_destroy(tensor);
  tessera_context_destroy(context);
}

}  // namespace
}  // namespace tessera
