// SPDX-License-Identifier: Apache-2.0
#include "device/clock.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "support/temporary_directory.hpp"

namespace tessera::device {
namespace {

class ClockTest : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    const auto path = folder.path() / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  double megahertz() const {
    return cpu_megahertz((folder.path() / "cpu").string(), (folder.path() / "cpuinfo").string());
  }

  testing::TemporaryDirectory folder;
};

TEST_F(ClockTest, NobodyTells) {
  EXPECT_EQ(megahertz(), 0);
  write("cpuinfo", "processor : 0\nmodel name : X @ 2.60GHz\n");
  write("cpu/online", "0-1\n");
  EXPECT_EQ(megahertz(), 0);
  EXPECT_EQ(clock_reader({.backend = Backend::kVulkan, .kind = DeviceKind::kDiscreteGpu})(), 0);
}

TEST_F(ClockTest, ProcessorsTell) {
  write("cpuinfo",
        "processor : 0\ncpu MHz\t\t: 2596.098\nprocessor : 1\ncpu MHz\t\t: 2000\n"
        "cpu MHz : ?\n");
  EXPECT_DOUBLE_EQ(megahertz(), (2596.098 + 2000) / 2);
  write("cpu/cpu0/cpufreq/scaling_cur_freq", "1200000\n");
  write("cpu/cpu1/cpufreq/scaling_cur_freq", "3400000\n");
  write("cpu/cpu2/cpufreq/scaling_cur_freq", "3500000\n");
  write("cpu/cpu3/cpufreq/scaling_cur_freq", "<unknown>\n");
  EXPECT_DOUBLE_EQ(megahertz(), 3400) << "the median of those that tell";
}

TEST(Clock, OfThisMachineIsAskedWithoutHarm) {
  EXPECT_GE(clock_reader({.backend = Backend::kHost, .kind = DeviceKind::kCpu})(), 0);
  const DeviceProfile nvidia{.backend = Backend::kVulkan,
                             .kind = DeviceKind::kDiscreteGpu,
                             .vendor_id = 0x10DE,
                             .uuid = "0123456789abcdef0123456789abcdef",
                             .pci_address = "ffff:ff:1f.7"};
  EXPECT_EQ(clock_reader(nvidia)(), 0) << "there is no such device";
}

}  // namespace
}  // namespace tessera::device
