// SPDX-License-Identifier: Apache-2.0
// A frame loop with two frames in flight: the renderer makes queries, Tessera records attention,
// and the renderer makes a picture of the output, all in one command buffer.
#include <array>
#include <cmath>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <tessera/interop/vulkan.hpp>
#include <tessera/tessera.hpp>
#include <vector>

#include "renderer.hpp"

namespace ts = tessera;

namespace {

constexpr std::int64_t kTokens = 32, kHeads = 2, kDim = 32;
constexpr std::uint32_t kElements = kTokens * kHeads * kDim;
constexpr int kRounds = 6;
enum Part : std::uint32_t { kInput, kQuery, kOutput, kPicture };

// Between compute work that reads or writes the same memory, and for the host at the end.
void barrier(VkCommandBuffer commands, VkPipelineStageFlags next, VkAccessFlags access) {
  VkMemoryBarrier memory{};
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  memory.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
  memory.dstAccessMask = access;
  vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, next, 0, 1, &memory, 0,
                       nullptr, 0, nullptr);
}

ts::Tensor part(const ts::Context& context, const Renderer& renderer, Part number) {
  ts::TensorSpec spec = ts::TensorSpec::contiguous(ts::DType::kF32, {1, kTokens, kHeads, kDim});
  spec.offset = std::int64_t{number} * kElements;
  return ts::vulkan::tensor(context, renderer.buffer, 0, renderer.bytes, spec);
}

void run() {
  Renderer renderer(kElements);  // goes last
  for (std::uint32_t i = 0; i < kElements; ++i) renderer.part(kInput)[i] = std::sin(0.1F * i);

  ts::vulkan::Device device;
  device.instance = renderer.instance;
  device.api_version = VK_API_VERSION_1_2;
  device.physical_device = renderer.physical_device;
  device.device = renderer.device;
  device.queue_family = renderer.queue_family;
  device.queue = renderer.queue;
  device.features = &renderer.features;
  const ts::Context context = ts::vulkan::open(device);
  std::printf("%s\n", ts::summary(context.device()).c_str());

  const ts::Tensor query = part(context, renderer, kQuery);
  const ts::Tensors operands{{"query", query},
                             {"key", query},
                             {"value", query},
                             {"output", part(context, renderer, kOutput)}};
  const ts::Options options{{"causal", true}};
  const ts::Problem problem = ts::problem_of(
      "flash_attention", {{"query", query.spec()}, {"key", query.spec()}, {"value", query.spec()}},
      options);
  ts::prewarm(context, std::array{problem});  // no compiler in the loop
  std::printf("each frame takes %llu bytes of scratch\n",
              static_cast<unsigned long long>(ts::scratch_bytes(context, problem)));

  // One recording for each frame in flight.
  std::vector<ts::Stream> recordings;
  for (int round = 0; round < kRounds; ++round) {
    const std::size_t slot = static_cast<std::size_t>(round) % Renderer::kFrames;
    Frame& frame = renderer.next_frame();
    if (recordings.size() <= slot) {
      recordings.push_back(ts::vulkan::record(context, frame.commands));
    } else {
      ts::vulkan::restart(recordings[slot], frame.commands);
    }
    // The frame before may still be at work on the same parts.
    barrier(frame.commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
            VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT);
    renderer.dispatch(frame.commands, kInput, kQuery, 1.0F, 0.01F * static_cast<float>(round));
    ts::Executor(context).on(recordings[slot]).run("flash_attention", operands, options);
    barrier(frame.commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_READ_BIT);
    renderer.dispatch(frame.commands, kOutput, kPicture, 0.5F, 0);
    barrier(frame.commands, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
    renderer.submit(frame);
  }
  for (const Frame& frame : renderer.frames)
    check(vkWaitForFences(renderer.device, 1, &frame.done, VK_TRUE, UINT64_MAX), "vkWaitForFences");

  // The first row sees only itself: its output is the query that the last frame made.
  float worst = 0;
  for (std::uint32_t i = 0; i < kHeads * kDim; ++i)
    worst = std::max(worst, std::abs(renderer.part(kPicture)[i] - 0.5F * renderer.part(kQuery)[i]));
  std::printf("%d frames, worst error %g\n", kRounds, worst);
  if (!(worst < 1e-6F)) throw std::runtime_error("that is wrong");
}

}  // namespace

int main() {
  try {
    run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
