// SPDX-License-Identifier: Apache-2.0
#include "runtime/workbench.hpp"

#include <gtest/gtest.h>

namespace tessera::runtime {
namespace {

// Bytes that a buffer takes with the bands.
std::uint64_t banded(const TensorSpec& spec, const DeviceProfile& profile) {
  const std::int64_t guard = guard_elements(spec, profile);
  return static_cast<std::uint64_t>(spec.last_element() + 1 + 2 * guard) * size_of(spec.dtype);
}

TEST(GuardBands, AreShorterWhereABindingEnds) {
  DeviceProfile profile;
  const TensorSpec spec = TensorSpec::contiguous(DType::kF32, {1 << 20});
  EXPECT_EQ(guard_elements(spec, profile), 1024) << "no limits are known";
  profile.max_binding = std::uint64_t{1} << 32;
  EXPECT_EQ(guard_elements(spec, profile), 1024);
  for (const std::uint64_t spare : {0, 4, 511, 512, 1000, 4096, 8191, 8192}) {
    profile.max_binding = (std::uint64_t{4} << 20) + spare;
    profile.max_allocation = 0;
    EXPECT_LE(banded(spec, profile), profile.max_binding) << spare;
    std::swap(profile.max_binding, profile.max_allocation);
    EXPECT_LE(banded(spec, profile), profile.max_allocation) << spare;
    EXPECT_EQ(guard_elements(spec, profile) % 64, 0) << "alignment stays";
    EXPECT_EQ(guard_elements(spec, profile) > 0, spare >= 512) << spare;
  }
  profile.max_allocation = 100;
  EXPECT_EQ(guard_elements(spec, profile), 0) << "the allocation says what is too large";
}

}  // namespace
}  // namespace tessera::runtime
