// SPDX-License-Identifier: Apache-2.0
// Probing, and buffers.
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/opencl_fixture.hpp"

namespace tessera::device {
namespace {

class OpenClMemory : public OpenCl {};

// ---- probing ------------------------------------------------------------------------------------

TEST_F(OpenClMemory, ProfileIsFilledIn) {
  const DeviceProfile& p = device_->profile();
  EXPECT_EQ(p.backend, Backend::kOpenCL);
  EXPECT_NE(p.kind, DeviceKind::kOther);
  for (const std::string& text : {p.name, p.vendor, p.driver, p.compiler}) {
    EXPECT_FALSE(text.empty());
    EXPECT_EQ(text.find('\0'), std::string::npos);
  }
  EXPECT_TRUE(p.api_version.starts_with("OpenCL "));
  EXPECT_TRUE(p.uuid.empty() || p.uuid.size() == 32) << p.uuid;
  EXPECT_TRUE(p.pci_address.empty() || p.pci_address.size() >= 12) << p.pci_address;
  EXPECT_NE(p.vendor_id, 0U);
  EXPECT_GT(p.compute_units, 0U);
  EXPECT_GT(p.native_float_width, 0U);
  EXPECT_GE(p.max_group_size, 1U);
  EXPECT_GE(p.max_groups[2], 65535U);
  EXPECT_GE(p.local_memory, 16U * 1024);
  EXPECT_GT(p.global_memory, 0U);
  EXPECT_GT(p.max_allocation, 0U);
  EXPECT_EQ(p.max_binding, p.max_allocation);
  EXPECT_TRUE(has(p.features, Feature::kStorage16));
  EXPECT_TRUE(p.kind == DeviceKind::kCpu || !has(p.features, Feature::kCpuBf16Dot));
  EXPECT_TRUE(p.vendor_id == 0x10de || !has(p.features, Feature::kNvidiaPtx));
}

TEST_F(OpenClMemory, ProbingAgainGivesTheSame) {
  const PlatformProbe again = probe_opencl();
  ASSERT_FALSE(again.found.empty());
  EXPECT_EQ(again.found.front().profile.name, device_->profile().name);
  EXPECT_EQ(again.found.front().profile.driver, device_->profile().driver);
}

// A machine without any driver: the loader reads its list of drivers once, hence a process of its
// own.
TEST(OpenClWithoutDriver, IsAProbeFailure) {
  constexpr const char* kNowhere = "/nonexistent/tessera/";
  const char* vendors = std::getenv("OCL_ICD_VENDORS");
  if (vendors == nullptr || std::strcmp(vendors, kNowhere) != 0) {
    std::array<char, PATH_MAX> self{};
    ASSERT_GT(readlink("/proc/self/exe", self.data(), self.size() - 1), 0);
    const std::string command = std::string("OCL_ICD_VENDORS=") + kNowhere +
                                " OPENCL_VENDOR_PATH=" + kNowhere + " '" + self.data() +
                                "' --gtest_filter=OpenClWithoutDriver.IsAProbeFailure > /dev/null";
    EXPECT_EQ(std::system(command.c_str()), 0);
    return;
  }
  const PlatformProbe probe = probe_opencl();
  if (!probe.found.empty()) GTEST_SKIP() << "this loader finds drivers in other ways";
  ASSERT_EQ(probe.failures.size(), 1U);
  EXPECT_TRUE(probe.failures[0].why.starts_with("no OpenCL platform: ")) << probe.failures[0].why;
}

// ---- memory -------------------------------------------------------------------------------------

TEST_F(OpenClMemory, UploadAndDownloadWithOffsets) {
  BufferPtr buffer = upload(iota(100));
  stream_->upload(*buffer, 40, bytes_of(std::vector<float>{-1, -2}));
  std::vector<float> part(4);
  stream_->download(*buffer, 36, std::as_writable_bytes(std::span(part)));
  EXPECT_EQ(part, (std::vector<float>{9, -1, -2, 12}));
}

TEST_F(OpenClMemory, UploadMayForgetTheSourceAtOnce) {
  // Small ones are staged, big ones waited for; the sum of the small ones goes past what is staged
  // at most.
  constexpr std::size_t kSmall = 10'000, kRounds = 60, kBig = 300'000;
  BufferPtr small = device_->create_buffer(kSmall * kRounds * sizeof(float));
  BufferPtr big = device_->create_buffer(kBig * sizeof(float));
  std::vector<float> source;
  for (std::size_t round = 0; round < kRounds; ++round) {
    source.assign(kSmall, static_cast<float>(round));
    stream_->upload(*small, round * kSmall * sizeof(float), bytes_of(source));
  }
  source = iota(kBig);
  stream_->upload(*big, 0, bytes_of(source));
  source.assign(kBig, -1);
  EXPECT_EQ(read(*stream_, *big), iota(kBig));
  const std::vector<float> result = read(*stream_, *small);
  for (std::size_t round = 0; round < kRounds; ++round) {
    EXPECT_EQ(result[round * kSmall], static_cast<float>(round));
    EXPECT_EQ(result[(round + 1) * kSmall - 1], static_cast<float>(round));
  }
}

TEST_F(OpenClMemory, CopyWithOffsets) {
  BufferPtr from = upload(iota(10));
  BufferPtr to = upload(std::vector<float>(10, -1));
  stream_->copy(*from, 8, *to, 20, 12);
  EXPECT_EQ(read(*stream_, *to), (std::vector<float>{-1, -1, -1, -1, -1, 2, 3, 4, -1, -1}));
  stream_->copy(*from, 0, *from, 20, 20);  // within one buffer
  EXPECT_EQ(read(*stream_, *from), (std::vector<float>{0, 1, 2, 3, 4, 0, 1, 2, 3, 4}));
  EXPECT_THROW(stream_->copy(*from, 0, *from, 16, 20), InvalidArgument);  // overlaps
}

TEST_F(OpenClMemory, FillTouchesItsRangeOnly) {
  std::vector<std::uint8_t> bytes(37, 7);
  BufferPtr buffer = device_->create_buffer(bytes.size());
  stream_->upload(*buffer, 0, bytes_of(bytes));
  stream_->fill(*buffer, 5, 23, 0xA5);
  stream_->download(*buffer, 0, std::as_writable_bytes(std::span(bytes)));
  for (std::size_t i = 0; i < bytes.size(); ++i)
    EXPECT_EQ(bytes[i], i >= 5 && i < 28 ? 0xA5 : 7) << i;
}

TEST_F(OpenClMemory, RangesBeyondABufferAreRefused) {
  BufferPtr buffer = upload(iota(4));
  std::vector<float> values(4);
  const auto writable = std::as_writable_bytes(std::span(values));
  EXPECT_THROW(stream_->upload(*buffer, 4, bytes_of(values)), InvalidArgument);
  EXPECT_THROW(stream_->download(*buffer, 1, writable), InvalidArgument);
  EXPECT_THROW(stream_->fill(*buffer, ~std::uint64_t{0}, 2, 0), InvalidArgument);
  EXPECT_THROW(stream_->copy(*buffer, 0, *buffer, 16, 1), InvalidArgument);
  EXPECT_EQ(read(*stream_, *buffer), iota(4));
}

TEST_F(OpenClMemory, BuffersOfZeroBytes) {
  BufferPtr empty = device_->create_buffer(0);
  EXPECT_EQ(empty->size(), 0U);
  stream_->upload(*empty, 0, {});
  stream_->download(*empty, 0, {});
  stream_->fill(*empty, 0, 0, 1);
  stream_->copy(*empty, 0, *empty, 0, 0);
  stream_->synchronize();
  EXPECT_THROW(stream_->fill(*empty, 0, 1, 1), InvalidArgument);
}

TEST_F(OpenClMemory, TooLargeAnAllocationNamesTheLimit) {
  const std::uint64_t limit = device_->profile().max_allocation;
  try {
    (void)device_->create_buffer(limit + 1);
    FAIL() << "was not refused";
  } catch (const OutOfDeviceMemory& error) {
    EXPECT_EQ(error.asked(), limit + 1);
    EXPECT_EQ(error.limit(), limit);
  }
}

TEST_F(OpenClMemory, BuffersOfOtherDevicesAreRefused) {
  const DevicePtr other = found_->open();
  BufferPtr foreign = other->create_buffer(16);
  EXPECT_THROW(stream_->fill(*foreign, 0, 16, 0), InvalidArgument);
}

TEST_F(OpenClMemory, BuffersKeepTheirDevice) {
  DevicePtr other = found_->open();
  std::unique_ptr<Stream> stream = other->create_stream();
  BufferPtr buffer = other->create_buffer(16);
  other.reset();
  stream->fill(*buffer, 0, 16, 0);
  EXPECT_EQ(read(*stream, *buffer), std::vector<float>(4, 0.0F));
}

}  // namespace
}  // namespace tessera::device
