// SPDX-License-Identifier: Apache-2.0
// Drivers that fail, and forks.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>

#include "device/opencl_fixture.hpp"

namespace tessera::device {
namespace {

class OpenClFaults : public OpenCl {
 protected:
  // A device of its own, so that losing it leaves the suite's alone.
  void SetUp() override {
    OpenCl::SetUp();
    if (!device_) return;
    mine_ = found_->open();
    my_stream_ = mine_->create_stream();
    x_ = mine_->create_buffer(64);
    program_ = mine_->build(scale_request(1), shared_store());
  }
  void TearDown() override {
    cl_faults.clear();
    my_stream_.reset();
    program_.reset();
    x_.reset();
    mine_.reset();
    OpenCl::TearDown();
  }
  static MemoryStore& shared_store() {
    static MemoryStore store;
    return store;
  }
  void launch() { launch_scale(*my_stream_, *program_, x_, nullptr, 1); }

  void expect_lost_for_good() {
    cl_faults.clear();
    std::array<std::byte, 8> bytes{};
    EXPECT_THROW((void)mine_->create_buffer(8), DeviceLost);
    EXPECT_THROW((void)mine_->create_stream(), DeviceLost);
    EXPECT_THROW((void)mine_->build(scale_request(1), shared_store()), DeviceLost);
    EXPECT_THROW(my_stream_->upload(*x_, 0, bytes), DeviceLost);
    EXPECT_THROW(my_stream_->download(*x_, 0, bytes), DeviceLost);
    EXPECT_THROW(my_stream_->copy(*x_, 0, *x_, 8, 8), DeviceLost);
    EXPECT_THROW(my_stream_->fill(*x_, 0, 8, 0), DeviceLost);
    EXPECT_THROW(launch(), DeviceLost);
    EXPECT_THROW(my_stream_->flush(), DeviceLost);
    EXPECT_THROW(my_stream_->synchronize(), DeviceLost);
    EXPECT_THROW((void)my_stream_->time([] {}), DeviceLost);
    EXPECT_NO_THROW(device_->create_stream()->synchronize());   // others go on
    EXPECT_NO_THROW(found_->open()->create_stream()->flush());  // and it can be opened anew
  }

  DevicePtr mine_;
  std::unique_ptr<Stream> my_stream_;
  BufferPtr x_;
  ProgramPtr program_;
};

TEST_F(OpenClFaults, FaultSeenAtSynchronizeLosesTheDevice) {
  launch();
  cl_faults.finish = kOutOfResources;
  const std::string text = message_of<DeviceLost>([&] { my_stream_->synchronize(); });
  EXPECT_TRUE(contains(text, "clFinish: CL_OUT_OF_RESOURCES (-5)")) << text;
  expect_lost_for_good();
}

TEST_F(OpenClFaults, InvalidQueueAtALaunchLosesTheDevice) {
  cl_faults.launch = kInvalidQueue;
  EXPECT_THROW(launch(), DeviceLost);
  expect_lost_for_good();
}

TEST_F(OpenClFaults, TooFewResourcesForALaunchDoNot) {
  cl_faults.launch = kOutOfResources;
  const std::string text = message_of<DeviceError>([&] { launch(); });
  EXPECT_TRUE(text.starts_with("clEnqueueNDRangeKernel: CL_OUT_OF_RESOURCES (-5)")) << text;
  cl_faults.clear();
  EXPECT_NO_THROW(launch());
  EXPECT_NO_THROW(my_stream_->synchronize());
}

TEST_F(OpenClFaults, ALaunchThatFailsWithABrokenQueueLosesTheDevice) {
  cl_faults.launch = kOutOfResources;
  cl_faults.finish = kInvalidQueue;
  EXPECT_THROW(launch(), DeviceLost);
  expect_lost_for_good();
}

TEST_F(OpenClFaults, FaultSeenAtADownloadLosesTheDevice) {
  std::array<std::byte, 8> bytes{};
  cl_faults.read = kOutOfResources;
  EXPECT_THROW(my_stream_->download(*x_, 0, bytes), DeviceError);  // the queue still works
  EXPECT_NO_THROW(my_stream_->synchronize());
  cl_faults.finish = kInvalidQueue;
  EXPECT_THROW(my_stream_->download(*x_, 0, bytes), DeviceLost);
  expect_lost_for_good();
}

TEST_F(OpenClFaults, LateAllocationFailureIsOutOfMemory) {
  cl_faults.launch = kAllocationFailure;
  try {
    launch();
    ADD_FAILURE() << "was not refused";
  } catch (const OutOfDeviceMemory& error) {
    EXPECT_EQ(error.asked(), x_->size());
  }
  cl_faults.clear();
  EXPECT_NO_THROW(launch());
}

TEST_F(OpenClFaults, BuffersThatTheDriverRefuses) {
  for (const std::int32_t code : {kAllocationFailure, kOutOfResources, -6, -61}) {
    cl_faults.buffer = code;
    try {
      (void)mine_->create_buffer(4096);
      ADD_FAILURE() << "was not refused";
    } catch (const OutOfDeviceMemory& error) {
      EXPECT_EQ(error.asked(), 4096U);
      EXPECT_GT(error.limit(), 0U);
      EXPECT_TRUE(contains(error.what(), "clCreateBuffer: CL_")) << error.what();
    }
  }
  cl_faults.clear();
  EXPECT_NO_THROW((void)mine_->create_buffer(4096));
}

// PoCL's locks stay locked then: the next call of the same kind would wait for ever.
TEST_F(OpenClFaults, ExceptionsOutOfTheDriverLoseTheDevice) {
  MemoryStore store;
  cl_faults.build_throws = true;
  const std::string text =
      message_of<DeviceLost>([&] { (void)mine_->build(scale_request(3), store); });
  EXPECT_TRUE(contains(text, "clBuildProgram threw std::bad_alloc")) << text;
  expect_lost_for_good();
}

TEST_F(OpenClFaults, ExceptionsOutOfALaunchLoseTheDevice) {
  cl_faults.launch_throws = true;
  EXPECT_THROW(launch(), DeviceLost);
  expect_lost_for_good();
}

TEST_F(OpenClFaults, AChildAfterForkIsRefusedAndDoesNotHang) {
  launch();
  my_stream_->synchronize();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    int refused = 0;
    const auto expect = [&](auto&& work) {
      try {
        work();
      } catch (const DeviceLost&) {
        ++refused;
      }
    };
    expect([&] { launch(); });
    expect([&] { my_stream_->synchronize(); });
    expect([&] { (void)mine_->create_buffer(8); });
    expect([&] { (void)found_->open(); });
    my_stream_.reset();
    program_.reset();
    x_.reset();
    mine_.reset();
    _exit(refused == 4 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  launch();  // the parent goes on
  my_stream_->synchronize();
}

}  // namespace
}  // namespace tessera::device
