// SPDX-License-Identifier: Apache-2.0
// Which devices the table of quirks means, on recorded profiles and on their neighbours.
#include "device/quirks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "support/profiles.hpp"

namespace tessera::device {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

DeviceProfile like(const char* recorded, std::string name, std::string driver,
                   DeviceKind kind = DeviceKind::kDiscreteGpu) {
  DeviceProfile profile = tessera::testing::load_profile(recorded);
  profile.name = std::move(name);
  profile.driver = std::move(driver);
  profile.kind = kind;
  return profile;
}

TEST(Quirks, RecordedDevicesHaveNone) {
  for (const std::string& name : tessera::testing::profile_names())
    EXPECT_THAT(quirks_of(tessera::testing::load_profile(name)), IsEmpty()) << name;
}

TEST(Quirks, TakeMatricesFromTheDriversThatFail) {
  const char* amd = "rdna3_vulkan";
  const char* intel = "arc_vulkan";
  const char* nvidia = "h200_vulkan";
  const std::string proprietary = "AMD proprietary driver 26.3.1 (LLPC)";
  const DeviceProfile without[] = {
      like(amd, "AMD Radeon(TM) 860M", proprietary, DeviceKind::kIntegratedGpu),
      like(amd, "AMD Radeon RX 6800 XT", proprietary),
      like(amd, "AMD Radeon RX 6800 XT", "AMD open-source driver 2024.Q4.1"),
      like(intel, "Intel(R) Arc(TM) A770 Graphics", "Intel Corporation 101.8826"),
      like(intel, "Intel(R) Iris(R) Xe MAX Graphics (DG1)", "Intel open-source Mesa driver 25.0"),
      like(nvidia, "NVIDIA GeForce RTX 2060 SUPER", "NVIDIA 575.64"),
  };
  for (const DeviceProfile& profile : without) {
    EXPECT_EQ(withheld_features(profile), Feature::kCooperativeMatrix) << profile.name;
    ASSERT_THAT(quirks_of(profile), SizeIs(1)) << profile.name;
    EXPECT_THAT(quirks_of(profile)[0], HasSubstr("without coopmat: "));
    EXPECT_THAT(quirks_of(profile)[0], HasSubstr("https://"));
  }
  const DeviceProfile with[] = {
      like(amd, "AMD Radeon RX 7900 XTX", proprietary),
      like(amd, "AMD Radeon RX 9070", proprietary),
      like(amd, "AMD Radeon RX 6800 XT (RADV NAVI21)", "radv Mesa 25.0"),
      like(amd, "AMD Radeon 8060S (RADV STRIX_HALO)", "radv Mesa 25.0", DeviceKind::kIntegratedGpu),
      like(intel, "Intel(R) Arc(tm) A770 Graphics (DG2)", "Intel open-source Mesa driver 25.0"),
      like(intel, "Intel(R) Arc(TM) B580 Graphics", "Intel Corporation 101.8826"),
      like(nvidia, "NVIDIA GeForce RTX 3090", "NVIDIA 575.64"),
      like("h200_opencl", "NVIDIA GeForce RTX 2060 SUPER", "NVIDIA CUDA 575.64"),
  };
  for (const DeviceProfile& profile : with)
    EXPECT_EQ(withheld_features(profile), Feature::kNone) << profile.name << ' ' << profile.driver;
}

TEST(Quirks, EachSaysWhatWhyAndWho) {
  for (const Quirk& quirk : quirks()) {
    EXPECT_NE(quirk.without, Feature::kNone) << quirk.why;
    EXPECT_FALSE(quirk.why.empty());
    EXPECT_TRUE(quirk.source.starts_with("https://")) << quirk.why;
    EXPECT_FALSE(quirk.names.empty() && quirk.kinds.empty() && quirk.drivers.empty())
        << "would take a feature from all of " << quirk.vendor;
  }
}

}  // namespace
}  // namespace tessera::device
