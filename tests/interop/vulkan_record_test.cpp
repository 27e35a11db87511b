// SPDX-License-Identifier: Apache-2.0
// Calls that are recorded into an application's command buffers.
// Under the validation layer, too: see cmake/TesseraTests.cmake.
#include "interop/vulkan_fixture.hpp"

namespace tessera {
namespace {

using ::testing::HasSubstr;
using testing::kBytes;
using testing::kMean;
using testing::message_of;

class VulkanRecordings : public testing::VulkanInterop {};

TEST_F(VulkanRecordings, RecordsBetweenTheApplicationsOwnCommands) {
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

TEST_F(VulkanRecordings, ARecordingCanNeitherWaitNorCopy) {
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

TEST_F(VulkanRecordings, ARecordedCallTimesNoCandidates) {
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

TEST_F(VulkanRecordings, ScratchIsTheApplicationsWhereItIsHandedOver) {
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

}  // namespace
}  // namespace tessera
