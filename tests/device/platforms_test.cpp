// SPDX-License-Identifier: Apache-2.0
// Which platforms a selector makes us ask. The drivers are played.
#include "device/platforms.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tessera/context.hpp"
#include "tessera/error.hpp"

#if defined(__linux__)
#include <fstream>
#endif

namespace tessera::device {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Found device(Backend platform, DeviceKind kind, std::string name, std::string uuid = "") {
  Found found;
  found.profile = {.backend = platform, .kind = kind, .name = std::move(name), .uuid = uuid};
  found.open = [] { return DevicePtr(); };
  return found;
}

// Two OpenCL devices, a broken OpenCL driver, one Vulkan device, the host; and a note of who was
// asked.
class PlatformsTest : public testing::Test {
 protected:
  PlatformProbe answer(Backend platform) {
    asked.push_back(platform);
    PlatformProbe probe;
    if (platform == Backend::kOpenCL) {
      probe.found = {device(platform, DeviceKind::kCpu, "pthread CPU"),
                     device(platform, DeviceKind::kDiscreteGpu, "Big GPU", "aa")};
      probe.failures = {{"OpenCL platform 1", "is broken"}};
    } else if (platform == Backend::kVulkan) {
      probe.found = {device(platform, DeviceKind::kDiscreteGpu, "Big GPU (vk)", "aa")};
    } else {
      probe.found = {device(platform, DeviceKind::kCpu, "reference")};
    }
    return probe;
  }
  // The best device for a selector.
  Route best(std::string_view selector) {
    const PartialProbe probe = platforms.probe(selector);
    return probe.routes.at(
        static_cast<std::size_t>(select_devices(probe.probe, selector).at(0).index));
  }

  std::vector<Backend> asked;
  Platforms platforms{[this](Backend platform) { return answer(platform); }};
};

TEST_F(PlatformsTest, ANamedPlatformIsTheOnlyOneThatIsAsked) {
  EXPECT_EQ(best("opencl"), (Route{Backend::kOpenCL, 1}));
  EXPECT_EQ(best("OpenCL:cpu"), (Route{Backend::kOpenCL, 0}));
  EXPECT_EQ(best("pthread:opencl"), (Route{Backend::kOpenCL, 0}));
  EXPECT_THAT(asked, ElementsAre(Backend::kOpenCL));
}

TEST_F(PlatformsTest, APlatformThatComesLaterNeedsNoneBeforeItUntilSomeoneCounts) {
  EXPECT_EQ(best("vulkan"), (Route{Backend::kVulkan, 0}));
  EXPECT_EQ(best("host"), (Route{Backend::kHost, 0}));
  EXPECT_THAT(asked, ElementsAre(Backend::kVulkan, Backend::kHost));
  const PartialProbe probe = platforms.probe("vulkan");
  EXPECT_FALSE(probe.global_indices);
  EXPECT_EQ(platforms.index_of({Backend::kVulkan, 0}), 2);
  EXPECT_THAT(asked, ElementsAre(Backend::kVulkan, Backend::kHost, Backend::kOpenCL));
}

TEST_F(PlatformsTest, AnIndexAsksAsManyAsItTakesToCount) {
  EXPECT_EQ(best("1"), (Route{Backend::kOpenCL, 1}));
  EXPECT_THAT(asked, ElementsAre(Backend::kOpenCL));
  EXPECT_EQ(best("2"), (Route{Backend::kVulkan, 0}));
  EXPECT_EQ(best("vulkan:2"), (Route{Backend::kVulkan, 0}));
  EXPECT_TRUE(select_devices(platforms.probe("vulkan:0").probe, "vulkan:0").empty());
  EXPECT_THAT(asked, ElementsAre(Backend::kOpenCL, Backend::kVulkan));
  EXPECT_EQ(best("3"), (Route{Backend::kHost, 0}));
  EXPECT_TRUE(select_devices(platforms.probe("4").probe, "4").empty());
  EXPECT_TRUE(select_devices(platforms.probe("-1").probe, "-1").empty());
}

TEST_F(PlatformsTest, KindsNamesAndTheEmptySelectorAskEveryone) {
  for (const char* selector : {"", "gpu", "big gpu", "aa", ":"}) {
    asked.clear();
    Platforms fresh([this](Backend platform) { return answer(platform); });
    const PartialProbe probe = fresh.probe(selector);
    EXPECT_THAT(asked, ElementsAre(Backend::kOpenCL, Backend::kVulkan, Backend::kHost)) << selector;
    EXPECT_THAT(probe.not_asked, IsEmpty());
    EXPECT_TRUE(probe.global_indices);
  }
}

TEST_F(PlatformsTest, FindsTheSameAsAmongAllDevices) {
  for (const char* selector : {"", "0", "1", "2", "3", "opencl", "vulkan", "host", "gpu", "cpu",
                               "opencl:gpu", "vulkan:gpu", "big", "reference", "aa", "opencl:1"}) {
    const auto all = select_devices(platforms.all(), selector);
    ASSERT_FALSE(all.empty()) << selector;
    EXPECT_EQ(platforms.index_of(best(selector)), all.front().index) << selector;
  }
}

TEST_F(PlatformsTest, CountsAllDevicesAndNotesWhichAreTheSame) {
  const Probe& all = platforms.all();
  ASSERT_EQ(all.devices.size(), 4U);
  for (int index = 0; index < 4; ++index)
    EXPECT_EQ(all.devices[static_cast<std::size_t>(index)].index, index);
  EXPECT_THAT(all.devices[1].same_as, ElementsAre(2));
  EXPECT_THAT(all.devices[2].same_as, ElementsAre(1));
  EXPECT_EQ(all.failures.size(), 1U);
}

TEST_F(PlatformsTest, EachIsAskedOnceHoweverManyThreadsWant) {
  std::vector<std::jthread> threads;
  for (int n = 0; n < 4; ++n) threads.emplace_back([this] { platforms.all(); });
  threads.clear();
  EXPECT_THAT(asked, ElementsAre(Backend::kOpenCL, Backend::kVulkan, Backend::kHost));
}

#if defined(__linux__) && TESSERA_HAVE_OPENCL && TESSERA_HAVE_VULKAN
bool mapped(const std::string& library) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(library) != std::string::npos) return true;
  }
  return false;
}

// In a new process, as this one may have asked everyone already. libvulkan.so itself is linked; the
// drivers, libvulkan_*.so, are what it loads.
TEST(PlatformsDeathTest, AContextOnAnotherPlatformLoadsNoVulkanDriver) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        for (const char* selector : {"host", "opencl"}) {
          try {
            Context::open({.device = selector, .cache_directory = ""});
          } catch (const NoDevice&) {
          }
        }
        std::_Exit(mapped("libvulkan_") ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}
#endif

TEST(Platforms, NoMemoryIsAnError) {
  Platforms platforms([](Backend) -> PlatformProbe { throw std::bad_alloc(); });
  EXPECT_THROW(platforms.all(), OutOfHostMemory);
  EXPECT_THROW(platforms.probe("host"), OutOfHostMemory);
}

}  // namespace
}  // namespace tessera::device
