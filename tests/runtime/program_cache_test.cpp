// SPDX-License-Identifier: Apache-2.0
// What a compiler refused is not compiled again for the next call that wants it.
#include "runtime/program_cache.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "abi/processors.h"
#include "device/no_store.hpp"
#include "support/fake_operation.hpp"
#include "support/messages.hpp"

namespace tessera {
namespace {

using Constants = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

// Compiles nothing but what says "sound".
class PickyDevice final : public device::Device {
 public:
  const DeviceProfile& profile() const override { return profile_; }
  device::BufferPtr create_buffer(std::uint64_t) override { return nullptr; }
  std::unique_ptr<device::Stream> create_stream() override { return nullptr; }
  device::ProgramPtr build(const device::ProgramRequest& request, device::BlobStore&) override {
    ++builds;
    if (no_memory) throw OutOfHostMemory("no memory");
    if (request.spirv.empty() && request.source != "sound") throw BuildError("it is not sound");
    specialization = request.specialization;
    return std::make_shared<device::Program>();
  }

  int builds = 0;
  bool no_memory = false;
  Constants specialization;  // of the last request

 private:
  DeviceProfile profile_{.backend = Backend::kOpenCL};
};

class ProgramCacheTest : public ::testing::Test {
 protected:
  std::string failure(const std::string& source) {
    Pass pass;
    pass.opencl = {.text = source, .entry = "kernel"};
    return testing::message_of(
        [&] { programs.get(problem, variant, pass, Config{}, device.profile()); });
  }

  PickyDevice device;
  device::NoStore store;
  runtime::ProgramCache programs{device, store};
  Problem problem = testing::fake_problem(5);
  Variant variant;
};

TEST_F(ProgramCacheTest, CompilersAreAskedOnceForWhatTheyRefuse) {
  EXPECT_EQ(failure("broken"), "it is not sound");
  EXPECT_EQ(failure("broken"), "it is not sound");
  EXPECT_EQ(device.builds, 1);
  // A kernel file that was mended, while the application runs.
  EXPECT_EQ(failure("sound"), "");
  EXPECT_EQ(failure("sound"), "");
  EXPECT_EQ(device.builds, 2);
}

// Registers are no macro of the kernel, but programs for more of them are others.
TEST_F(ProgramCacheTest, ProgramsForLargeRegistersAreTheirOwn) {
  Pass pass;
  pass.opencl = {.text = "sound", .entry = "kernel"};
  const Config large{{"LARGE_GRF", 1}};
  for (const Config& config : {Config{}, large, Config{{"LARGE_GRF", 0}}, large})
    programs.get(problem, variant, pass, config, device.profile());
  EXPECT_EQ(device.builds, 2);
  pass.specialized_on = std::vector<std::string>{};
  programs.get(problem, variant, pass, large, device.profile());
  programs.get(problem, variant, pass, Config{}, device.profile());
  EXPECT_EQ(device.builds, 2) << "the same program in all configurations, and built before";
}

TEST_F(ProgramCacheTest, ShadersAreToldOfProcessors) {
  Pass pass;
  pass.vulkan = {.spirv = {0x07230203}};
  const auto constants = [&](DeviceKind kind) {
    runtime::ProgramCache fresh(device, store);
    fresh.get(problem, variant, pass, Config{}, {.backend = Backend::kVulkan, .kind = kind});
    return device.specialization;
  };
  EXPECT_EQ(constants(DeviceKind::kCpu), (Constants{{ON_PROCESSOR_ID, 1}}));
  EXPECT_EQ(constants(DeviceKind::kDiscreteGpu), Constants{});
}

TEST_F(ProgramCacheTest, WantOfMemoryPasses) {
  device.no_memory = true;
  EXPECT_EQ(failure("sound"), "no memory");
  device.no_memory = false;
  EXPECT_EQ(failure("sound"), "");
  EXPECT_EQ(device.builds, 2);
}

}  // namespace
}  // namespace tessera
