// SPDX-License-Identifier: Apache-2.0
// Tessera on an application's own Vulkan device and queue. Under the validation layer, too: see
// cmake/TesseraTests.cmake.
#include <set>
#include <string>
#include <string_view>

#include "interop/vulkan_fixture.hpp"

namespace tessera {
namespace {

using testing::find_no_dispatch;
using ::testing::HasSubstr;
using testing::kBytes;
using testing::kMean;
using testing::message_of;

class VulkanDevices : public testing::VulkanInterop {};

TEST_F(VulkanDevices, SubmitsToTheApplicationsQueueUnderItsLock) {
  int locked = 0, submissions = 0;
  vulkan::Device device = given();
  device.lock = [&] { ++locked; };
  device.unlock = [&] { --locked, ++submissions; };
  {
    const Context context = vulkan::open(device, {.cache_directory = ""});
    EXPECT_EQ(context.device_index(), -1);
    put(5, {1, 2, 3, 5, 6, 7});
    const Tensor input = tensor(context, 5, {1, 2, 3});
    const Tensor output = tensor(context, 17, {1, 3});
    EXPECT_EQ(vulkan::buffer(output), buffer_);
    Executor(context).run("sequence_mean", {{"input", input}, {"output", output}});
    context.synchronize();
    EXPECT_EQ(get(16, 5), (std::vector<float>{-1, 3, 4, 5, -1}));
    EXPECT_EQ(context.download<float>(output), kMean);
    EXPECT_EQ(context.download<float>(sequence_mean(context, input)), kMean);
    // Operands in one buffer are told apart by their bytes.
    EXPECT_EQ(message_of<InvalidArgument>([&] {
                Executor(context).run("sequence_mean",
                                      {{"input", input}, {"output", tensor(context, 10, {1, 3})}});
              }),
              "sequence_mean: output 'output' overlaps 'input'");
  }
  EXPECT_EQ(locked, 0);
  EXPECT_GE(submissions, 2);
}

// What an application's loader was asked for.
std::set<std::string>& asked_for() {
  static std::set<std::string> names;
  return names;
}
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL find_and_note(VkInstance instance, const char* name) {
  asked_for().insert(name);
  return vkGetInstanceProcAddr(instance, name);
}

TEST_F(VulkanDevices, FunctionsComeFromTheApplicationsLoader) {
  asked_for().clear();
  vulkan::Device device = given();
  device.get_instance_proc_addr = find_and_note;
  {
    const Context context = vulkan::open(device, {.cache_directory = ""});
    put(0, {1, 2, 3, 5, 6, 7});
    EXPECT_EQ(context.download<float>(sequence_mean(context, tensor(context, 0, {1, 2, 3}))),
              kMean);
  }
  EXPECT_THAT(asked_for(), ::testing::IsSupersetOf({"vkCmdDispatch", "vkQueueSubmit"}));
  EXPECT_FALSE(asked_for().contains("vkCreateInstance"));  // that is the application's
  device.get_instance_proc_addr = find_no_dispatch;
  EXPECT_EQ(message_of<InvalidArgument>([&] { vulkan::open(device); }),
            "the application's vkGetInstanceProcAddr does not find vkCmdDispatch");
}

TEST_F(VulkanDevices, TimelineSemaphoresOrderItWithOtherWork) {
  VkSemaphoreTypeCreateInfo type{};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  info.pNext = &type;
  VkSemaphore timeline = VK_NULL_HANDLE;
  ASSERT_EQ(vkCreateSemaphore(device_, &info, nullptr, &timeline), VK_SUCCESS);
  {
    const Context context = open();
    const Problem problem =
        problem_of("sequence_mean", {{"input", TensorSpec::contiguous(DType::kF32, {1, 2, 3})}});
    prewarm(context, std::array{problem});
    vulkan::wait_for(context, timeline, 1);
    Executor(context).run("sequence_mean", {{"input", tensor(context, 0, {1, 2, 3})},
                                            {"output", tensor(context, 8, {1, 3})}});
    vulkan::signal(context, timeline, 2);
    put(0, {1, 2, 3, 5, 6, 7});  // in time, as nothing has run
    std::uint64_t value = 9;
    vkGetSemaphoreCounterValue(device_, timeline, &value);
    EXPECT_EQ(value, 0U);
    VkSemaphoreSignalInfo go{};
    go.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO;
    go.semaphore = timeline;
    go.value = 1;
    vkSignalSemaphore(device_, &go);
    const std::uint64_t two = 2;
    VkSemaphoreWaitInfo wait{};
    wait.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
    wait.semaphoreCount = 1;
    wait.pSemaphores = &timeline;
    wait.pValues = &two;
    EXPECT_EQ(vkWaitSemaphores(device_, &wait, 10'000'000'000), VK_SUCCESS);
    EXPECT_EQ(get(8, 3), kMean);
  }
  vkDestroySemaphore(device_, timeline, nullptr);
}

TEST_F(VulkanDevices, UsesWhatWasEnabledAndNothingElse) {
  const Context context = open();
  EXPECT_EQ(context.device().features & (Feature::kStorage16 | Feature::kFp16Arithmetic |
                                         Feature::kFp64 | Feature::kIntegerDot),
            Feature::kNone);
  const TensorSpec half = TensorSpec::contiguous(DType::kF16, {1, 4, 2, 32});
  const auto no = query_support(
      context, problem_of("flash_attention", {{"query", half}, {"key", half}, {"value", half}}));
  ASSERT_TRUE(no.has_value());
  EXPECT_THAT(*no, HasSubstr("storage16"));

  vulkan::Device device = given();
  const std::array extensions{"VK_KHR_nonsense"};
  device.extensions = extensions;
  EXPECT_EQ(message_of<InvalidArgument>([&] { vulkan::open(device); }),
            "VK_KHR_nonsense is said to be enabled, and the device lacks it");
  device.extensions = {};
  // Of Vulkan 1.3, and neither the instance's version nor an extension says so.
  VkPhysicalDeviceMaintenance4Features maintenance4{};
  maintenance4.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES;
  maintenance4.maintenance4 = VK_TRUE;
  device.features = &maintenance4;
  EXPECT_THAT(message_of<InvalidArgument>([&] { vulkan::open(device); }),
              HasSubstr("maintenance4 is said to be enabled"));
  VkPhysicalDeviceTimelineSemaphoreFeatures timeline{};
  timeline.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES;
  timeline.timelineSemaphore = VK_TRUE;
  device.features = &timeline;
  device.api_version = VK_API_VERSION_1_1;
  EXPECT_THAT(message_of<InvalidArgument>([&] { vulkan::open(device); }),
              HasSubstr("timelineSemaphore is said to be enabled"));
  device.api_version = VK_API_VERSION_1_2;
  device.features = nullptr;
  const Context without = vulkan::open(device, {.cache_directory = ""});
  EXPECT_EQ(message_of<InvalidArgument>(
                [&] { vulkan::wait_for(without, reinterpret_cast<VkSemaphore>(8), 1); }),
            "timelineSemaphore was not said to be enabled");
}

TEST_F(VulkanDevices, RefusesWhatIsWrong) {
  const auto refused = [](auto call) { return message_of<InvalidArgument>(call); };
  const auto with = [&](auto change) {
    vulkan::Device device = given();
    change(device);
    return refused([&] { vulkan::open(device); });
  };
  EXPECT_EQ(with([](auto& d) { d.instance = VK_NULL_HANDLE; }), "the VkInstance is null");
  EXPECT_EQ(with([](auto& d) { d.physical_device = VK_NULL_HANDLE; }),
            "the VkPhysicalDevice is null");
  // As one of another instance, or one that is gone.
  EXPECT_EQ(with([&](auto& d) { d.physical_device = reinterpret_cast<VkPhysicalDevice>(&d); }),
            "the VkPhysicalDevice is not one of the VkInstance");
  EXPECT_EQ(with([](auto& d) { d.device = VK_NULL_HANDLE; }), "the VkDevice is null");
  EXPECT_EQ(with([](auto& d) { d.queue = VK_NULL_HANDLE; }), "the VkQueue is null");
  EXPECT_EQ(with([](auto& d) { d.queue_family = 1000; }),
            "queue family 1000 of the device does not compute");
  EXPECT_EQ(with([](auto& d) { d.api_version = VK_API_VERSION_1_0; }),
            "the instance was made for Vulkan 1.0.0; at least 1.1 is needed");
  EXPECT_EQ(with([](auto& d) { d.lock = [] {}; }), "a queue's lock() and unlock() go together");

  const Context context = open();
  const TensorSpec spec = TensorSpec::contiguous(DType::kF32, {8});
  const auto at = [&](VkBuffer buffer, VkDeviceSize offset, VkDeviceSize bytes) {
    return refused([&] { vulkan::tensor(context, buffer, offset, bytes, spec); });
  };
  EXPECT_EQ(at(VK_NULL_HANDLE, 0, kBytes), "the VkBuffer is null");
  EXPECT_THAT(at(buffer_, 0, 30), HasSubstr("multiple of 4"));
  EXPECT_THAT(at(buffer_, 0, 0), HasSubstr("multiple of 4"));
  EXPECT_THAT(at(buffer_, 2, 32), HasSubstr("minStorageBufferOffsetAlignment"));
  EXPECT_THAT(at(buffer_, 1 << 20, 32), HasSubstr("whose memory has"));
  EXPECT_THAT(at(buffer_, 0, 16), HasSubstr("16"));  // too small for its spec
  const Context host = Context::open({.device = "host", .cache_directory = ""});
  EXPECT_EQ(refused([&] { vulkan::tensor(host, buffer_, 0, 32, spec); }),
            "the context is on no Vulkan device");
  EXPECT_EQ(refused([&] { vulkan::buffer(host.empty(DType::kF32, {1})); }),
            "the tensor is on no Vulkan device");
  EXPECT_EQ(refused([&] { vulkan::buffer({}); }), "the tensor is empty");
  EXPECT_EQ(refused([&] { vulkan::signal(Stream(), VK_NULL_HANDLE, 1); }),
            "the stream is empty: vulkan::record() makes one");
  EXPECT_EQ(refused([&] { vulkan::signal(context, VK_NULL_HANDLE, 1); }),
            "the VkSemaphore is null");
  // Nothing was lost.
  put(0, {1, 2, 3, 5, 6, 7});
  EXPECT_EQ(context.download<float>(sequence_mean(context, tensor(context, 0, {1, 2, 3}))), kMean);
}

}  // namespace
}  // namespace tessera
