// SPDX-License-Identifier: Apache-2.0
// Tessera on an application's own Vulkan objects. Under the validation layer, too: see
// cmake/TesseraTests.cmake.
#include "tessera/interop/vulkan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "support/messages.hpp"
#include "tessera/tessera.hpp"
#include "tessera/tessera_operations.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;
using testing::message_of;

constexpr VkDeviceSize kBytes = 4096;

// What an application has: a device with few features, a queue, a mapped buffer, command buffers.
class VulkanInterop : public ::testing::Test {
 protected:
  void SetUp() override {
    VkApplicationInfo application{};
    application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
    application.apiVersion = VK_API_VERSION_1_2;
    VkInstanceCreateInfo instance{};
    instance.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    instance.pApplicationInfo = &application;
    std::uint32_t count = 1;
    if (vkCreateInstance(&instance, nullptr, &instance_) != VK_SUCCESS ||
        vkEnumeratePhysicalDevices(instance_, &count, &physical_) < VK_SUCCESS || count == 0)
      GTEST_SKIP() << "no Vulkan device here";
    std::vector<VkQueueFamilyProperties> families(16);
    count = static_cast<std::uint32_t>(families.size());
    vkGetPhysicalDeviceQueueFamilyProperties(physical_, &count, families.data());
    while ((families.at(family_).queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) ++family_;

    const float priority = 1;
    VkDeviceQueueCreateInfo queue{};
    queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    queue.queueFamilyIndex = family_;
    queue.queueCount = 1;
    queue.pQueuePriorities = &priority;
    enabled_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    enabled_.timelineSemaphore = VK_TRUE;
    VkDeviceCreateInfo device{};
    device.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    device.pNext = &enabled_;
    device.queueCreateInfoCount = 1;
    device.pQueueCreateInfos = &queue;
    ASSERT_EQ(vkCreateDevice(physical_, &device, nullptr, &device_), VK_SUCCESS);
    vkGetDeviceQueue(device_, family_, 0, &queue_);

    VkBufferCreateInfo buffer{};
    buffer.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
    buffer.size = kBytes;
    buffer.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                   VK_BUFFER_USAGE_TRANSFER_SRC_BIT;
    ASSERT_EQ(vkCreateBuffer(device_, &buffer, nullptr, &buffer_), VK_SUCCESS);
    VkMemoryRequirements needs;
    vkGetBufferMemoryRequirements(device_, buffer_, &needs);
    VkPhysicalDeviceMemoryProperties types;
    vkGetPhysicalDeviceMemoryProperties(physical_, &types);
    constexpr VkMemoryPropertyFlags kMapped =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    VkMemoryAllocateInfo memory{};
    memory.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    memory.allocationSize = needs.size;
    while ((needs.memoryTypeBits >> memory.memoryTypeIndex & 1U) == 0 ||
           (types.memoryTypes[memory.memoryTypeIndex].propertyFlags & kMapped) != kMapped)
      ++memory.memoryTypeIndex;
    ASSERT_EQ(vkAllocateMemory(device_, &memory, nullptr, &memory_), VK_SUCCESS);
    vkBindBufferMemory(device_, buffer_, memory_, 0);
    void* mapped = nullptr;
    vkMapMemory(device_, memory_, 0, VK_WHOLE_SIZE, 0, &mapped);
    values_ = static_cast<float*>(mapped);
    std::fill_n(values_, kBytes / sizeof(float), -1.0F);

    VkCommandPoolCreateInfo pool{};
    pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
    pool.queueFamilyIndex = family_;
    vkCreateCommandPool(device_, &pool, nullptr, &pool_);
  }
  void TearDown() override {
    if (device_ != VK_NULL_HANDLE) {
      vkDeviceWaitIdle(device_);
      vkDestroyCommandPool(device_, pool_, nullptr);
      vkDestroyBuffer(device_, buffer_, nullptr);
      vkFreeMemory(device_, memory_, nullptr);
      vkDestroyDevice(device_, nullptr);
    }
    if (instance_ != VK_NULL_HANDLE) vkDestroyInstance(instance_, nullptr);
  }

  vulkan::Device given() {
    return {.instance = instance_,
            .api_version = VK_API_VERSION_1_2,
            .physical_device = physical_,
            .device = device_,
            .queue_family = family_,
            .queue = queue_,
            .features = &enabled_};
  }
  Context open() { return vulkan::open(given(), {.cache_directory = ""}); }
  // From float `first` of the buffer on.
  Tensor tensor(const Context& context, std::int64_t first, Shape shape) const {
    TensorSpec spec = TensorSpec::contiguous(DType::kF32, std::move(shape));
    spec.offset = first;
    return vulkan::tensor(context, buffer_, 0, kBytes, std::move(spec));
  }
  void put(std::size_t first, std::initializer_list<float> values) {
    std::copy(values.begin(), values.end(), values_ + first);
  }
  std::vector<float> get(std::size_t first, std::size_t count) const {
    return {values_ + first, values_ + first + count};
  }
  VkCommandBuffer begin() const {
    VkCommandBufferAllocateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    info.commandPool = pool_;
    info.commandBufferCount = 1;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    vkAllocateCommandBuffers(device_, &info, &commands);
    begin(commands);
    return commands;
  }
  static void begin(VkCommandBuffer commands) {
    VkCommandBufferBeginInfo info{};
    info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    vkBeginCommandBuffer(commands, &info);
  }
  // Shows results to the host, and submits.
  void submit(VkCommandBuffer commands) const {
    VkMemoryBarrier barrier{};
    barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_HOST_BIT,
                         0, 1, &barrier, 0, nullptr, 0, nullptr);
    vkEndCommandBuffer(commands);
    VkSubmitInfo info{};
    info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    info.commandBufferCount = 1;
    info.pCommandBuffers = &commands;
    EXPECT_EQ(vkQueueSubmit(queue_, 1, &info, VK_NULL_HANDLE), VK_SUCCESS);
  }

  VkInstance instance_ = VK_NULL_HANDLE;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  std::uint32_t family_ = 0;
  VkPhysicalDeviceVulkan12Features enabled_{};
  VkBuffer buffer_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  float* values_ = nullptr;
};

const std::vector<float> kMean{3, 4, 5};

TEST_F(VulkanInterop, SubmitsToTheApplicationsQueueUnderItsLock) {
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

TEST_F(VulkanInterop, TimelineSemaphoresOrderItWithOtherWork) {
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

TEST_F(VulkanInterop, RecordsBetweenTheApplicationsOwnCommands) {
  const Context context = open();
  put(0, {1, 2, 3, 5, 6, 7});
  // Both in flight at the same time, and each again.
  const std::array frames{begin(), begin()};
  const std::array streams{vulkan::record(context, frames[0]), vulkan::record(context, frames[1])};
  for (int round = 0; round < 2; ++round) {
    for (std::size_t n = 0; n < frames.size(); ++n) {
      if (round > 0) {
        begin(frames[n]);
        vulkan::restart(streams[n], frames[n]);
      }
      const Executor on = Executor(context).on(streams[n]);
      const auto place = static_cast<std::int64_t>(64 * (n + 1));
      const VkBufferCopy region{0, static_cast<VkDeviceSize>(place) * sizeof(float), 24};
      vkCmdCopyBuffer(frames[n], buffer_, buffer_, 1, &region);
      // No barrier of ours: the recording's own waits for transfers.
      on.run("sequence_mean", {{"input", tensor(context, place, {1, 2, 3})},
                               {"output", tensor(context, place + 8, {1, 3})}});
      // What one call wrote the next reads.
      on.run("sequence_mean", {{"input", tensor(context, place + 8, {1, 3, 1})},
                               {"output", tensor(context, place + 12, {1, 1})}});
    }
    for (VkCommandBuffer frame : frames) submit(frame);
    vkQueueWaitIdle(queue_);
    for (const std::size_t place : {64U, 128U}) {
      EXPECT_EQ(get(place + 8, 5), (std::vector<float>{3, 4, 5, -1, 4}));
      std::fill_n(values_ + place, 16, -1.0F);
    }
  }
}

TEST_F(VulkanInterop, ARecordingCanNeitherWaitNorCopy) {
  const Context context = open();
  const VkCommandBuffer commands = begin();
  Stream stream = vulkan::record(context, commands);
  EXPECT_EQ(message_of<InvalidArgument>([&] { stream.synchronize(); }),
            "a stream that records into a command buffer of the application can't wait: whoever "
            "submits the command buffer does");
  EXPECT_EQ(message_of<InvalidArgument>([&] { vulkan::signal(stream, VK_NULL_HANDLE, 1); }),
            "the stream submits nothing to a Vulkan queue");
  EXPECT_EQ(message_of<InvalidArgument>([&] { vulkan::restart(stream, VK_NULL_HANDLE); }),
            "the VkCommandBuffer is null");
  EXPECT_EQ(message_of<InvalidArgument>([&] { vulkan::record(context, VK_NULL_HANDLE); }),
            "the VkCommandBuffer is null");
  EXPECT_EQ(
      message_of<InvalidArgument>([&] { vulkan::restart(context.create_stream(), commands); }),
      "the stream records into no command buffer: vulkan::record() makes one");
  vkEndCommandBuffer(commands);
}

TEST_F(VulkanInterop, ARecordedCallTimesNoCandidates) {
  vulkan::Device device = given();
  int submissions = 0;
  device.lock = [&] { ++submissions; };
  device.unlock = [] {};
  const Context context = vulkan::open(device, {.cache_directory = ""});
  const VkCommandBuffer commands = begin();
  const Stream stream = vulkan::record(context, commands);
  Executor(context)
      .with_policy({.autotune = true, .persist = false, .tune_seconds = 0.1})
      .on(stream)
      .run("sequence_mean",
           {{"input", tensor(context, 0, {1, 2, 3})}, {"output", tensor(context, 64, {1, 3})}});
  EXPECT_EQ(submissions, 0);
  EXPECT_EQ(context.last_execution().choice.tier, Tier::kHeuristics);
  vkEndCommandBuffer(commands);
}

TEST_F(VulkanInterop, ScratchIsTheApplicationsWhereItIsHandedOver) {
  const Context context = open();
  const TensorSpec rows = TensorSpec::contiguous(DType::kF32, {64, 32});
  const Tensor x = context.upload(std::vector<float>(64 * 32, 1.5F), {64, 32});
  const Tensor weight = context.upload(std::vector<float>(32, 0.5F), {32});
  const Problem problem = problem_of(
      "rms_norm_backward", {{"input", rows}, {"grad_output", rows}, {"weight", weight.spec()}}, {},
      {"grad_weight"});
  const std::uint64_t bytes = scratch_bytes(context, problem);
  ASSERT_GT(bytes, 0U);
  const auto scratch_of = [&](std::uint64_t size) {
    return context.empty(DType::kU8, {static_cast<std::int64_t>(size)});
  };
  const VkCommandBuffer commands = begin();
  const Tensors operands{{"input", x}, {"grad_output", x}, {"weight", weight}};
  const auto run_on = [&](const Stream& stream) {
    return Executor(context).on(stream).run("rms_norm_backward", operands, {}, {"grad_weight"});
  };
  EXPECT_THAT(message_of<InvalidArgument>(
                  [&] { run_on(vulkan::record(context, commands, scratch_of(bytes - 4))); }),
              HasSubstr("takes " + std::to_string(bytes) + " bytes of scratch"));
  // A part of a larger tensor is as long as it says, and begins where its buffer does.
  TensorSpec part = TensorSpec::contiguous(DType::kU8, {static_cast<std::int64_t>(bytes - 4)});
  const Tensor larger = scratch_of(2 * bytes);
  EXPECT_THAT(message_of<InvalidArgument>([&] {
                run_on(vulkan::record(context, commands, Tensor(part, larger.buffer())));
              }),
              HasSubstr("takes " + std::to_string(bytes) + " bytes of scratch"));
  part.offset = 4;
  EXPECT_THAT(message_of<InvalidArgument>(
                  [&] { vulkan::record(context, commands, Tensor(part, larger.buffer())); }),
              HasSubstr("has strides or an offset"));
  EXPECT_EQ(message_of<InvalidArgument>([&] { run_on(vulkan::record(context, commands, x)); }),
            "rms_norm_backward: the scratch that was handed over overlaps 'input'");
  const Stream stream = vulkan::record(context, commands, scratch_of(bytes));
  const Tensors results = run_on(stream);
  submit(commands);
  vkQueueWaitIdle(queue_);
  EXPECT_EQ(context.download<float>(results.at("grad_weight")),
            context.download<float>(Executor(context)
                                        .run("rms_norm_backward", operands, {}, {"grad_weight"})
                                        .at("grad_weight")));
}

TEST_F(VulkanInterop, UsesWhatWasEnabledAndNothingElse) {
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

TEST_F(VulkanInterop, IsInTheCInterfaceToo) {
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

TEST_F(VulkanInterop, RefusesWhatIsWrong) {
  const auto refused = [](auto call) { return message_of<InvalidArgument>(call); };
  const auto with = [&](auto change) {
    vulkan::Device device = given();
    change(device);
    return refused([&] { vulkan::open(device); });
  };
  EXPECT_EQ(with([](auto& d) { d.instance = VK_NULL_HANDLE; }), "the VkInstance is null");
  EXPECT_EQ(with([](auto& d) { d.physical_device = VK_NULL_HANDLE; }),
            "the VkPhysicalDevice is null");
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
