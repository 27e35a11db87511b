// SPDX-License-Identifier: Apache-2.0
// What is read of a device, of its memory and of a module, before anything runs.
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "device/vulkan/instance/physical.hpp"
#include "device/vulkan/memory/memory.hpp"
#include "device/vulkan/programs/loops.hpp"
#include "device/vulkan/programs/spirv.hpp"
#include "device/vulkan/programs/spirv_codes.hpp"
#include "device/vulkan_fixture.hpp"

namespace tessera::device {
namespace {

class VulkanProbe : public Vulkan {};

TEST_F(VulkanProbe, FillsTheProfile) {
  open();
  if (!device_) return;
  const DeviceProfile& profile = device_->profile();
  EXPECT_EQ(profile.backend, Backend::kVulkan);
  EXPECT_FALSE(profile.name.empty());
  EXPECT_FALSE(profile.vendor.empty());
  EXPECT_FALSE(profile.driver.empty());
  EXPECT_EQ(profile.api_version.substr(0, 9), "Vulkan 1.");
  EXPECT_EQ(profile.uuid.size(), 32U);
  EXPECT_GT(profile.subgroup_size, 0U);
  EXPECT_GE(profile.max_group_size, 128U);
  EXPECT_GE(profile.max_groups[0], 65535U);
  EXPECT_GE(profile.local_memory, 16384U);
  EXPECT_GE(profile.max_binding, std::uint64_t{1} << 27);
  EXPECT_GE(profile.max_allocation, std::uint64_t{1} << 30);
  EXPECT_GE(profile.max_push_constants, 128U);
  EXPECT_GT(profile.global_memory, 0U);
  if (profile.name.find("llvmpipe") != std::string::npos) {
    EXPECT_EQ(profile.kind, DeviceKind::kCpu);
    EXPECT_EQ(profile.vendor, "Mesa");
    EXPECT_EQ(profile.native_float_width, profile.subgroup_size);
    EXPECT_EQ(profile.compiler.substr(0, 4), "LLVM");
    EXPECT_TRUE(has(profile.features, Feature::kStorage16 | Feature::kSubgroupArithmetic));
  }
}

TEST_F(VulkanProbe, TellsWhyThereIsNothing) {
  if (!kFaultsWork) GTEST_SKIP() << "faults can be made on Linux only";
  faults.create_instance = VK_ERROR_INCOMPATIBLE_DRIVER;
  PlatformProbe probe = probe_vulkan();
  EXPECT_TRUE(probe.found.empty());
  ASSERT_EQ(probe.failures.size(), 1U);
  EXPECT_EQ(probe.failures[0].where, "vulkan");
  EXPECT_SAYS(probe.failures[0].why, "vkCreateInstance: VK_ERROR_INCOMPATIBLE_DRIVER");

  faults.reset();
  faults.old_loader = true;
  probe = probe_vulkan();
  ASSERT_EQ(probe.failures.size(), 1U);
  EXPECT_SAYS(probe.failures[0].why, "offers version 1.0.0; at least 1.1 is needed");
}

TEST_F(VulkanProbe, ReportsABrokenDeviceByName) {
  open();
  if (!device_) return;
  if (!kFaultsWork) GTEST_SKIP() << "faults can be made on Linux only";
  faults.device_extensions = VK_ERROR_INITIALIZATION_FAILED;
  const PlatformProbe probe = probe_vulkan();
  EXPECT_TRUE(probe.found.empty());
  ASSERT_FALSE(probe.failures.empty());
  EXPECT_SAYS(probe.failures[0].where, device_->profile().name);
  EXPECT_SAYS(probe.failures[0].why,
              "vkEnumerateDeviceExtensionProperties: VK_ERROR_INITIALIZATION_FAILED");
}

TEST(VulkanSpirv, ReadsWhatAModuleNeeds) {
  const vulkan::ModuleFacts affine = vulkan::examine_module(affine_shader(), "main");
  EXPECT_EQ(affine.fault, "");
  EXPECT_EQ(affine.version, 0x00010300U);
  EXPECT_EQ(affine.needs, Feature::kNone);
  EXPECT_EQ(affine.subgroup_operations, 0U);
  EXPECT_TRUE(affine.takes_push_constants);
  EXPECT_FALSE(vulkan::examine_module(table_shader(), "main").takes_push_constants);
  const vulkan::ModuleFacts subgroup = vulkan::examine_module(subgroup_shader(), "main");
  EXPECT_EQ(subgroup.needs, Feature::kSubgroupArithmetic);
  EXPECT_EQ(subgroup.subgroup_operations,
            std::uint32_t{VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT});
}

// A loop of so many instructions, `branches`, and `places` that reach into a private array.
std::vector<std::uint32_t> loop_words(std::uint32_t nops, std::uint32_t branches,
                                      std::uint32_t places, std::uint32_t mark) {
  using namespace vulkan;
  constexpr std::uint32_t kNop = 1U << 16, kBranch = 2U << 16 | 249;
  std::vector<std::uint32_t> words{kMagic, 0x00010300, 0, 100, 0};
  const auto add = [&](std::initializer_list<std::uint32_t> more) {
    words.insert(words.end(), more);
  };
  add({4U << 16 | kOpVariable, 10, 11, kFunctionClass});  // the private array
  add({4U << 16 | kOpLoopMerge, 20, 21, mark});           // a loop that ends at label 20
  words.insert(words.end(), nops, kNop);
  for (std::uint32_t i = 0; i < branches; ++i) add({3U << 16 | kOpSelectionMerge, 50 + i, 0});
  for (std::uint32_t i = 0; i < places; ++i) add({5U << 16 | kOpAccessChain, 12, 30 + i, 11, 13});
  add({kBranch, 20, 2U << 16 | kOpLabel, 20});
  return words;
}

TEST(VulkanSpirv, KeepsLongLoopsThatBranchAndReachNoPrivateArrays) {
  const auto mark_of = [](std::uint32_t nops, std::uint32_t branches, std::uint32_t places,
                          std::uint32_t mark) {
    const std::vector<std::uint32_t> words = loop_words(nops, branches, places, mark);
    const std::vector<std::uint32_t> kept = vulkan::with_loops_kept(words);
    EXPECT_EQ(kept.size(), words.size());
    return kept.at(12);
  };
  EXPECT_EQ(mark_of(10, 2, 0, 1), 1U);  // short
  EXPECT_EQ(mark_of(60, 2, 0, 1), 2U);
  EXPECT_EQ(mark_of(60, 2, 0, 0), 2U);  // drivers unroll what has no mark, too
  EXPECT_EQ(mark_of(60, 1, 0, 1), 1U);  // branches little
  EXPECT_EQ(mark_of(60, 2, 3, 1), 2U);
  EXPECT_EQ(mark_of(60, 2, 4, 1), 1U);  // registers
  EXPECT_EQ(mark_of(60, 2, 0, 4), 4U);  // another mark
  // What a loop inside reaches is not the outer one's.
  std::vector<std::uint32_t> words = loop_words(60, 3, 2, 1);
  const std::vector<std::uint32_t> inner = loop_words(60, 3, 4, 1);
  std::vector<std::uint32_t> body(inner.begin() + 9, inner.end());
  body[1] = body[body.size() - 1] = 40;
  words.insert(words.begin() + 13, body.begin(), body.end());
  const std::vector<std::uint32_t> kept = vulkan::with_loops_kept(words);
  EXPECT_EQ(kept.at(12), 2U);
  EXPECT_EQ(kept.at(16), 1U);  // registers
}

TEST(VulkanSpirv, KeepsMoreLoopsBesideCooperativeMatrices) {
  const auto mark_of = [](std::uint32_t nops, std::uint32_t places, std::size_t products) {
    std::vector<std::uint32_t> words = loop_words(nops, 0, places, 1);
    words.insert(words.end(), products, 1U << 16 | vulkan::kOpCooperativeMatrixMulAdd);
    return vulkan::with_loops_kept(words).at(12);
  };
  EXPECT_EQ(mark_of(60, 0, 0), 1U);
  EXPECT_EQ(mark_of(60, 0, 1), 2U);
  EXPECT_EQ(mark_of(60, 4, 1), 1U);  // registers
  EXPECT_EQ(mark_of(10, 0, 31), 1U);
  EXPECT_EQ(mark_of(10, 4, 32), 2U);
}

TEST(VulkanMemory, TakesTheTypeThatFitsThePurpose) {
  using vulkan::MemoryUse;
  constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  constexpr VkMemoryPropertyFlags kMapped =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  constexpr VkMemoryPropertyFlags kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  using Types = std::vector<std::uint32_t>;

  VkPhysicalDeviceMemoryProperties card{};  // as NVIDIA's and AMD's cards have it
  card.memoryHeapCount = 3;
  card.memoryHeaps[0].size = std::uint64_t{24} << 30;
  card.memoryHeaps[1].size = std::uint64_t{64} << 30;
  card.memoryHeaps[2].size = std::uint64_t{256} << 20;
  card.memoryTypeCount = 6;
  card.memoryTypes[0] = {0, 1};
  card.memoryTypes[1] = {kLocal, 0};
  card.memoryTypes[2] = {kMapped, 1};
  card.memoryTypes[3] = {kMapped | kCached, 1};
  card.memoryTypes[4] = {kLocal | kMapped, 2};
  card.memoryTypes[5] = {kLocal | kMapped | VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD, 0};
  const auto of_card = [&](MemoryUse use, std::uint32_t allowed = ~0U) {
    return vulkan::choose_memory_types(card, allowed, use, DeviceKind::kDiscreteGpu);
  };
  EXPECT_EQ(of_card(MemoryUse::kDevice), (Types{1, 4}));
  EXPECT_EQ(of_card(MemoryUse::kDevice, 0b10000), (Types{4}));
  EXPECT_EQ(of_card(MemoryUse::kStaging), (Types{3, 2, 4}));
  EXPECT_EQ(of_card(MemoryUse::kArguments), (Types{4, 2, 3}));
  EXPECT_EQ(of_card(MemoryUse::kArguments, 0b10), (Types{}));

  VkPhysicalDeviceMemoryProperties shared{};  // as integrated GPUs have it
  shared.memoryHeapCount = 1;
  shared.memoryHeaps[0].size = std::uint64_t{16} << 30;
  shared.memoryTypeCount = 3;
  shared.memoryTypes[0] = {kLocal, 0};
  shared.memoryTypes[1] = {kLocal | kMapped, 0};
  shared.memoryTypes[2] = {kLocal | kMapped | kCached, 0};
  EXPECT_EQ(
      vulkan::choose_memory_types(shared, ~0U, MemoryUse::kDevice, DeviceKind::kIntegratedGpu),
      (Types{2, 1, 0}));
}

}  // namespace
}  // namespace tessera::device
