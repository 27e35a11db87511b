// SPDX-License-Identifier: Apache-2.0
// Refusals, and pipeline caches that are not ours.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "device/vulkan/programs/pipeline_cache.hpp"
#include "device/vulkan_fixture.hpp"
#include "tessera/error.hpp"

namespace tessera::device {
namespace {

class VulkanLimits : public Vulkan {};

TEST_F(VulkanLimits, NamesTheLimitThatABufferExceeds) {
  open();
  if (!device_) return;
  const DeviceProfile& profile = device_->profile();
  const std::uint64_t limit = std::min(profile.max_allocation, profile.max_binding);
  try {
    device_->create_buffer(limit + 1);
    FAIL() << "a buffer above the limit";
  } catch (const OutOfDeviceMemory& error) {
    EXPECT_EQ(error.asked(), limit + 1);
    EXPECT_EQ(error.limit(), limit);
    if (profile.max_binding < profile.max_allocation) {
      EXPECT_SAYS(std::string(error.what()), "maxStorageBufferRange");
    }
  }
}

TEST_F(VulkanLimits, RefusesLaunchesThatDoNotFitTheProgram) {
  open();
  if (!device_) return;
  const auto stream = device_->create_stream();
  const BufferPtr a = buffer(64);
  const ProgramPtr program = device_->build(affine_request({64, 1, 1}, 0), store_);
  const std::vector<BufferPtr> buffers{a, a, a};
  const AffineArgs args{};
  const auto bytes = std::as_bytes(std::span(&args, 1));
  Launch good;
  good.program = program.get();
  good.buffers = buffers;
  good.arguments = bytes;
  good.group = {64, 1, 1};
  Launch bad = good;
  bad.buffers = bad.buffers.first(2);
  EXPECT_SAYS(message<InvalidArgument>([&] { stream->launch(bad); }),
              "'affine': 2 buffers instead of 3");
  bad = good;
  bad.arguments = bytes.first(4);
  EXPECT_SAYS(message<InvalidArgument>([&] { stream->launch(bad); }),
              "4 bytes of arguments instead of 16");
  bad = good;
  bad.group.x = 32;
  EXPECT_SAYS(message<InvalidArgument>([&] { stream->launch(bad); }), "work-group size");
  bad = good;
  bad.program = nullptr;
  EXPECT_THROW(stream->launch(bad), InvalidArgument);
  const std::uint32_t most = device_->profile().max_groups[1];
  if (most != ~std::uint32_t{0}) {
    bad = good;
    bad.groups.y = most + 1;
    EXPECT_SAYS(message<InvalidArgument>([&] { stream->launch(bad); }), "maxComputeWorkGroupCount");
  }
  const DevicePtr other = probe_vulkan().found.front().open();
  EXPECT_SAYS(message<InvalidArgument>([&] { other->create_stream()->launch(good); }),
              "another device");
  const BufferPtr foreign = other->create_buffer(4);
  EXPECT_THROW(stream->fill(*foreign, 0, 4, 0), InvalidArgument);

  const int before = faults.submissions;
  bad = good;
  bad.groups.z = 0;
  EXPECT_SAYS(message<InvalidArgument>([&] { stream->launch(bad); }), "no work-groups");
  stream->synchronize();
  EXPECT_EQ(faults.submissions, before) << "an empty grid was launched";
}

TEST_F(VulkanLimits, RefusesWhatADriverWouldChokeOn) {
  open();
  if (!device_) return;
  const auto why = [&](const ProgramRequest& request) {
    return message<BuildError>([&] { device_->build(request, store_); });
  };
  const ProgramRequest good = affine_request({64, 1, 1}, 0);
  ProgramRequest bad = good;
  bad.spirv = {};
  EXPECT_SAYS(why(bad), "program 'affine': this is not SPIR-V");
  bad.spirv = std::span(affine_shader()).first(std::size(affine_shader()) - 1);
  EXPECT_SAYS(why(bad), "cut off or damaged");
  bad = good;
  bad.entry = "mai";
  EXPECT_SAYS(why(bad), "no compute entry point 'mai'");
  bad = good;
  bad.group = {64, 64, 64};
  EXPECT_SAYS(why(bad), "maxComputeWorkGroupInvocations");
  bad.group = {64, 0, 1};
  EXPECT_SAYS(why(bad), "maxComputeWorkGroupSize");
  bad = good;
  bad.bindings = 1U << 30;
  EXPECT_SAYS(why(bad), "maxPerStageDescriptorStorageBuffers");
  bad = good;
  bad.argument_bytes = 6;
  EXPECT_SAYS(why(bad), "multiple of 4");
  bad.argument_bytes = 132;
  EXPECT_SAYS(why(bad), "takes push constants");
  Words with_int64(std::begin(affine_shader()), std::end(affine_shader()));
  with_int64.insert(with_int64.begin() + 5, {2U << 16 | 17U, 11U});  // OpCapability Int64
  bad = good;
  bad.spirv = with_int64;
  EXPECT_SAYS(why(bad), "capability Int64");
  if (kFaultsWork) {
    faults.pipelines = VK_ERROR_UNKNOWN;
    EXPECT_SAYS(why(good), "program 'affine': vkCreateComputePipelines: VK_ERROR_UNKNOWN");
  }
}

// ---- the pipeline cache ------------------------------------------------------------------------

TEST_F(VulkanLimits, ForeignPipelineCachesNeverReachTheDriver) {
  open();
  if (!device_) return;
  const auto physical = first_physical();
  std::vector<std::byte> blob(48);
  const std::array<std::uint32_t, 4> header{32, 1, physical->profile.vendor_id,
                                            physical->profile.device_id};
  std::memcpy(blob.data(), header.data(), 16);
  std::memcpy(blob.data() + 16, physical->cache_uuid.data(), 16);
  EXPECT_TRUE(vulkan::blob_fits(*physical, blob));
  EXPECT_FALSE(vulkan::blob_fits(*physical, std::span(blob).first(31)));
  for (const std::size_t byte : {0, 3, 4, 8, 12, 16, 31}) {
    std::vector<std::byte> damaged = blob;
    damaged[byte] ^= std::byte{0x40};
    EXPECT_FALSE(vulkan::blob_fits(*physical, damaged)) << byte;
  }
  MapStore store;
  store.fallback.assign(100, std::byte{0x5a});
  EXPECT_NE(device_->build(affine_request({64, 1, 1}, 0), store), nullptr);
  EXPECT_EQ(store.gets, 1);
}

TEST_F(VulkanLimits, ProgramsHaveKeysOfTheirOwn) {
  open();
  if (!device_) return;
  const auto physical = first_physical();
  const ProgramRequest base = affine_request({64, 1, 1}, 0);
  const std::string key = vulkan::cache_key(*physical, base);
  EXPECT_EQ(key.substr(0, 7), "vulkan|");
  EXPECT_EQ(key, vulkan::cache_key(*physical, affine_request({64, 1, 1}, 0)));
  EXPECT_NE(key, vulkan::cache_key(*physical, affine_request({64, 1, 1}, 1)));
  EXPECT_NE(key, vulkan::cache_key(*physical, affine_request({32, 2, 1}, 0)));
  ProgramRequest other = base;
  other.spirv = table_shader();
  EXPECT_NE(key, vulkan::cache_key(*physical, other));
  // Twice through one store: what the first build left, if anything, serves the second.
  MapStore store;
  EXPECT_NE(device_->build(base, store), nullptr);
  EXPECT_NE(device_->build(base, store), nullptr);
  EXPECT_EQ(store.gets, 2);
}

}  // namespace
}  // namespace tessera::device
