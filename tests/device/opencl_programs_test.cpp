// SPDX-License-Identifier: Apache-2.0
// Programs, kept binaries, threads and time.
#include <array>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "device/opencl/binary.hpp"
#include "device/opencl/program.hpp"
#include "device/opencl_fixture.hpp"

namespace tessera::device {
namespace {

class OpenClPrograms : public OpenCl {};

// ---- programs -----------------------------------------------------------------------------------

TEST_F(OpenClPrograms, KernelWithDefinesAndArguments) {
  const ProgramPtr program = device_->build(scale_request(), store_);
  BufferPtr x = upload(iota(100)), bias = upload(iota(100, 1000));
  launch_scale(*stream_, *program, x, bias, 0.5F);
  stream_->synchronize();
  const std::vector<float> result = read(*stream_, *x);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto value = static_cast<float>(i);
    EXPECT_EQ(result[i], value * 1.5F + value + 1000) << i;
  }
}

TEST_F(OpenClPrograms, AbsentBufferIsANullPointerInTheKernel) {
  const ProgramPtr program = device_->build(scale_request(), store_);
  BufferPtr x = upload(iota(9, 1)), bias = upload(iota(9));
  launch_scale(*stream_, *program, x, bias, 0);     // the kernel object remembers a buffer …
  launch_scale(*stream_, *program, x, nullptr, 1);  // … which must be gone here
  const std::vector<float> result = read(*stream_, *x);
  for (std::size_t i = 0; i < result.size(); ++i)
    EXPECT_EQ(result[i], 3.0F * static_cast<float>(i)) << i;
}

TEST_F(OpenClPrograms, BuffersMayGoBeforeTheLaunchIsDone) {
  const ProgramPtr program = device_->build(scale_request(1), store_);
  BufferPtr x = upload(std::vector<float>(1000, 1.0F));
  for (int i = 0; i < 100; ++i)
    launch_scale(*stream_, *program, x, upload(std::vector<float>(1000, 1.0F)), 1);
  EXPECT_EQ(read(*stream_, *x), std::vector<float>(1000, 101.0F));
}

TEST_F(OpenClPrograms, BuildErrorShowsNameOptionsAndLog) {
  ProgramRequest request = scale_request();
  request.name = "broken/scale";
  request.source =
      "#line 7 \"broken/scale.cl\"\nkernel void scale(global float* x) { x[0] = nonsense; }\n";
  const std::string text = message_of<BuildError>([&] { (void)device_->build(request, store_); });
  for (const char* part : {"broken/scale", "-DTIMES=3", "-DWG_X=8", "nonsense", "clBuildProgram"}) {
    EXPECT_TRUE(contains(text, part)) << part << " is not in: " << text;
  }
  EXPECT_EQ(store_.puts, 0);
}

TEST_F(OpenClPrograms, LargeRegistersAreAnOptionAndNoMacro) {
  ProgramRequest request = scale_request();
  request.source = "nonsense";
  request.defines.push_back({"LARGE_GRF", 1});
  const std::string text = message_of<BuildError>([&] { (void)device_->build(request, store_); });
  EXPECT_TRUE(contains(text, " -cl-intel-256-GRF-per-thread")) << text;
  EXPECT_FALSE(contains(text, "LARGE_GRF")) << text;
}

TEST_F(OpenClPrograms, BuildLogIsCutAt64KiB) {
  ProgramRequest request = scale_request();
  request.source = "";
  for (int i = 0; i < 3000; ++i) {
    request.source +=
        "#warning a line that is long enough to make the log of this program too long " +
        std::to_string(i) + "\n";
  }
  request.source += "#error stop\n";
  const std::string text = message_of<BuildError>([&] { (void)device_->build(request, store_); });
  EXPECT_LT(text.size(), 66U * 1024);
}

TEST_F(OpenClPrograms, WrongDeclarationsAreRefusedAtTheBuild) {
  ProgramRequest request = scale_request();
  request.entry = "scala";
  EXPECT_TRUE(
      contains(message_of<BuildError>([&] { (void)device_->build(request, store_); }), "scala"));
  request = scale_request();
  request.bindings = 1;
  EXPECT_TRUE(contains(message_of<BuildError>([&] { (void)device_->build(request, store_); }),
                       "3 arguments"));
  request = scale_request();
  request.source.clear();
  EXPECT_THROW((void)device_->build(request, store_), InvalidArgument);
  request = scale_request();
  request.defines.push_back({"X -cl-fast-relaxed-math", 1});
  EXPECT_THROW((void)device_->build(request, store_), InvalidArgument);
}

TEST_F(OpenClPrograms, WrongLaunchesAreRefused) {
  const ProgramPtr program = device_->build(scale_request(), store_);
  BufferPtr x = upload(iota(8));
  const ScaleArgs args{8, 1};
  const std::array<BufferPtr, 2> buffers{x, nullptr};
  Launch good;
  good.program = program.get();
  good.buffers = buffers;
  good.arguments = std::as_bytes(std::span(&args, 1));
  good.group = {8, 1, 1};

  Launch bad = good;
  bad.groups = {1, 0, 1};
  EXPECT_THROW(stream_->launch(bad), InvalidArgument);
  bad = good;
  bad.group = {0, 1, 1};
  EXPECT_THROW(stream_->launch(bad), InvalidArgument);
  bad = good;
  bad.program = nullptr;
  EXPECT_THROW(stream_->launch(bad), InvalidArgument);
  bad = good;
  bad.buffers = bad.buffers.first(1);
  EXPECT_THROW(stream_->launch(bad), InvalidArgument);
  bad = good;
  bad.arguments = {};
  EXPECT_THROW(stream_->launch(bad), InvalidArgument);

  // The driver's own refusal names the call, the code and the kernel.
  bad = good;
  bad.group = {4, 1, 1};
  const std::string text = message_of<DeviceError>([&] { stream_->launch(bad); });
  const std::string expected = "clEnqueueNDRangeKernel: CL_INVALID_WORK_GROUP_SIZE (" +
                               std::to_string(kInvalidGroupSize) + ") (scale, ";
  EXPECT_TRUE(text.starts_with(expected)) << text;

  stream_->launch(good);
  stream_->synchronize();
}

// ---- kept binaries ------------------------------------------------------------------------------

class OpenClBlobs : public OpenCl {
 protected:
  // As on a device whose driver keeps no programs.
  static ProgramPtr build(const ProgramRequest& request, BlobStore& store) {
    return opencl::build_program(std::dynamic_pointer_cast<const opencl::ClDevice>(device_),
                                 request, store);
  }
  // Builds, runs, and says whether the result was right.
  bool works() {
    const ProgramPtr program = build(scale_request(), store_);
    BufferPtr x = upload({2});
    launch_scale(*stream_, *program, x, nullptr, 5);
    return read(*stream_, *x) == std::vector<float>{30};
  }
  std::vector<std::byte>& only_blob() { return store_.blobs.begin()->second; }
};

TEST_F(OpenClBlobs, MissThenHit) {
  EXPECT_TRUE(works());
  EXPECT_EQ(store_.misses, 1);
  EXPECT_EQ(store_.puts, 1);
  ASSERT_EQ(store_.blobs.size(), 1U);
  EXPECT_TRUE(store_.blobs.begin()->first.starts_with("opencl|"));
  EXPECT_TRUE(works());
  EXPECT_EQ(store_.hits, 1);
  EXPECT_EQ(store_.puts, 1);
}

TEST_F(OpenClBlobs, NothingIsKeptBesideADriverThatKeepsPrograms) {
  (void)device_->build(scale_request(), store_);
  EXPECT_EQ(store_.puts, opencl::driver_keeps_programs(device_->profile()) ? 0 : 1);
}

TEST_F(OpenClBlobs, KeyCoversSourceOptionsAndEntry) {
  (void)build(scale_request(), store_);
  (void)build(scale_request(4), store_);
  ProgramRequest request = scale_request();
  request.source += "// different\n";
  (void)build(request, store_);
  request = scale_request();
  request.group = {4, 1, 1};
  (void)build(request, store_);
  EXPECT_EQ(store_.blobs.size(), 4U);
  EXPECT_EQ(store_.hits, 0);
}

// The driver's part is played: PoCL 3.1 crashes on a damaged binary instead of refusing it, which
// is why the real store verifies what it has.
TEST_F(OpenClBlobs, BlobsThatTheDriverRefusesAreRebuilt) {
  ASSERT_TRUE(works());
  only_blob().assign(3, std::byte{0x7F});
  cl_faults.binary = kInvalidBinary;  // also what PoCL says of another version's binary
  EXPECT_TRUE(works());
  EXPECT_EQ(store_.hits, 1);
  EXPECT_EQ(store_.puts, 2);

  cl_faults.clear();
  EXPECT_TRUE(works());
  EXPECT_EQ(store_.hits, 2);
  EXPECT_EQ(store_.puts, 2);
}

TEST_F(OpenClBlobs, BinaryOfAnotherProgramIsRebuilt) {
  ASSERT_TRUE(works());
  ProgramRequest other = scale_request();
  other.name = other.entry = "other";
  other.source = "kernel void other(global float* x) { x[0] = 1; }\n";
  other.bindings = 1;
  other.argument_bytes = 0;
  MemoryStore others;
  (void)build(other, others);
  only_blob() = others.blobs.begin()->second;
  EXPECT_TRUE(works());
  EXPECT_EQ(store_.puts, 2);
}

// ---- threads and time ---------------------------------------------------------------------------

TEST_F(OpenClPrograms, TwoStreamsShareAProgram) {
  const ProgramPtr program = device_->build(scale_request(1), store_);
  constexpr int kLaunches = 500;
  std::array<std::vector<float>, 2> results;
  std::array<std::string, 2> errors;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < results.size(); ++t) {
    threads.emplace_back([&, t] {
      try {
        const std::unique_ptr<Stream> stream = device_->create_stream();
        const std::vector<float> ones(64, static_cast<float>(t + 1));
        BufferPtr x = device_->create_buffer(256), bias = device_->create_buffer(256);
        stream->fill(*x, 0, 256, 0);
        stream->upload(*bias, 0, bytes_of(ones));
        for (int i = 0; i < kLaunches; ++i) launch_scale(*stream, *program, x, bias, 1);
        stream->synchronize();
        results[t] = read(*stream, *x);
      } catch (const std::exception& error) {
        errors[t] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t t = 0; t < results.size(); ++t) {
    EXPECT_EQ(errors[t], "");
    EXPECT_EQ(results[t], std::vector<float>(64, static_cast<float>((t + 1) * kLaunches)));
  }
}

TEST_F(OpenClPrograms, TimeIsPositiveAndInOrder) {
  const ProgramPtr program = device_->build(scale_request(2), store_);
  BufferPtr x = upload(std::vector<float>(4096, 1.0F));
  launch_scale(*stream_, *program, x, nullptr, 1);
  double one = 0;
  for (int round = 0; round < 2; ++round) {
    one = stream_->time([&] { launch_scale(*stream_, *program, x, nullptr, 1); });
    EXPECT_GT(one, 0);
    EXPECT_LT(one, 10);
  }
  const double several = stream_->time([&] {
    for (int i = 0; i < 3; ++i) launch_scale(*stream_, *program, x, nullptr, 1);
  });
  EXPECT_GT(several, 0);
  launch_scale(*stream_, *program, x, nullptr, 1);
  EXPECT_EQ(read(*stream_, *x), std::vector<float>(4096, 128.0F));
  EXPECT_EQ(stream_->time([] {}), 0);
}

TEST_F(OpenClPrograms, TimeSurvivesWorkThatThrows) {
  const ProgramPtr program = device_->build(scale_request(2), store_);
  BufferPtr x = upload({1});
  EXPECT_THROW((void)stream_->time([&] {
    launch_scale(*stream_, *program, x, nullptr, 1);
    throw InvalidArgument("on purpose");
  }),
               InvalidArgument);
  EXPECT_THROW((void)stream_->time([&] { (void)stream_->time([] {}); }), InvalidArgument);
  EXPECT_GT(stream_->time([&] { launch_scale(*stream_, *program, x, nullptr, 1); }), 0);
  EXPECT_EQ(read(*stream_, *x), std::vector<float>{4});
}

}  // namespace
}  // namespace tessera::device
