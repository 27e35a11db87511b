// SPDX-License-Identifier: Apache-2.0
// Tessera on an application's own OpenCL objects.
#define CL_TARGET_OPENCL_VERSION 120
#include "tessera/interop/opencl.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "device/opencl_fixture.hpp"
#include "support/messages.hpp"
#include "tessera/tessera.hpp"

namespace tessera {
namespace {

using testing::message_of;

constexpr cl_command_queue_properties kOutOfOrder = CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;

// What an application has: a context, and queues.
class OpenClInterop : public ::testing::Test {
 protected:
  void SetUp() override {
    if (clGetPlatformIDs(1, &platform_, nullptr) != CL_SUCCESS ||
        clGetDeviceIDs(platform_, CL_DEVICE_TYPE_ALL, 1, &device_, nullptr) != CL_SUCCESS)
      GTEST_SKIP() << "no OpenCL device here";
    context_ = clCreateContext(nullptr, 1, &device_, nullptr, nullptr, nullptr);
    queue_ = make_queue(0);
  }
  void TearDown() override {
    for (cl_command_queue queue : queues_) clReleaseCommandQueue(queue);
    if (context_ != nullptr) clReleaseContext(context_);
  }

  cl_command_queue make_queue(cl_command_queue_properties properties) {
    queues_.push_back(clCreateCommandQueue(context_, device_, properties, nullptr));
    return queues_.back();
  }
  cl_mem make_buffer(std::size_t floats, cl_mem_flags flags = CL_MEM_READ_WRITE) const {
    return clCreateBuffer(context_, flags, floats * sizeof(float), nullptr, nullptr);
  }
  Context open(cl_command_queue queue) const {
    return opencl::open(context_, device_, queue, {.cache_directory = ""});
  }
  static cl_uint references(cl_context context) {
    cl_uint count = 0;
    clGetContextInfo(context, CL_CONTEXT_REFERENCE_COUNT, sizeof count, &count, nullptr);
    return count;
  }
  static cl_uint references(cl_command_queue queue) {
    cl_uint count = 0;
    clGetCommandQueueInfo(queue, CL_QUEUE_REFERENCE_COUNT, sizeof count, &count, nullptr);
    return count;
  }
  static cl_uint references(cl_mem memory) {
    cl_uint count = 0;
    clGetMemObjectInfo(memory, CL_MEM_REFERENCE_COUNT, sizeof count, &count, nullptr);
    return count;
  }
  static cl_uint references(cl_event event) {
    cl_uint count = 0;
    clGetEventInfo(event, CL_EVENT_REFERENCE_COUNT, sizeof count, &count, nullptr);
    return count;
  }
  static cl_int status(cl_event event) {
    cl_int status = CL_QUEUED;
    clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
    return status;
  }
  void write(cl_mem memory, const std::vector<float>& values, std::size_t first = 0) const {
    clEnqueueWriteBuffer(queue_, memory, CL_TRUE, first * sizeof(float),
                         values.size() * sizeof(float), values.data(), 0, nullptr, nullptr);
  }
  std::vector<float> read(cl_mem memory, std::size_t count, std::size_t first = 0) const {
    std::vector<float> values(count);
    clEnqueueReadBuffer(queue_, memory, CL_TRUE, first * sizeof(float), count * sizeof(float),
                        values.data(), 0, nullptr, nullptr);
    return values;
  }

  cl_platform_id platform_ = nullptr;
  cl_device_id device_ = nullptr;
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
  std::vector<cl_command_queue> queues_;
};

// Two tokens of dim 3 at an element that no base address is aligned to.
TensorSpec tokens_at(std::int64_t offset) {
  TensorSpec spec = TensorSpec::contiguous(DType::kF32, {1, 2, 3});
  spec.offset = offset;
  return spec;
}
TensorSpec mean_at(std::int64_t offset) {
  TensorSpec spec = TensorSpec::contiguous(DType::kF32, {1, 3});
  spec.offset = offset;
  return spec;
}

TEST_F(OpenClInterop, WorksInTheApplicationsMemoryAndLeavesItsHandlesAlone) {
  const cl_mem memory = make_buffer(32);
  write(memory, std::vector<float>(32, -1));
  write(memory, {1, 2, 3, 5, 6, 7}, 5);
  const auto before = std::array{references(context_), references(queue_), references(memory)};
  {
    const Context context = open(queue_);
    EXPECT_EQ(context.device_index(), -1);
    EXPECT_EQ(context.device().backend, Backend::kOpenCL);
    const Tensor output = opencl::tensor(context, memory, mean_at(17));
    EXPECT_EQ(opencl::memory(output), memory);
    Executor(context).run(
        "sequence_mean",
        {{"input", opencl::tensor(context, memory, tokens_at(5))}, {"output", output}});
    // The application's own read, behind it in the same queue.
    EXPECT_EQ(read(memory, 5, 16), (std::vector<float>{-1, 3, 4, 5, -1}));
    // What Tessera allocates is the application's to use, too.
    const Tensor made = sequence_mean(context, opencl::tensor(context, memory, tokens_at(5)));
    EXPECT_EQ(read(opencl::memory(made), 3), (std::vector<float>{3, 4, 5}));
    EXPECT_EQ(context.download<float>(output), (std::vector<float>{3, 4, 5}));
  }
  EXPECT_EQ(before, (std::array{references(context_), references(queue_), references(memory)}));
  clReleaseMemObject(memory);
}

TEST_F(OpenClInterop, WaitsForEventsAndSignalsOne) {
  for (const cl_command_queue_properties properties :
       {cl_command_queue_properties{0}, kOutOfOrder}) {
    const cl_command_queue queue = make_queue(properties);
    const cl_mem memory = make_buffer(16);
    write(memory, {1, 2, 3, 5, 6, 7});
    cl_event go = clCreateUserEvent(context_, nullptr);
    cl_event done = nullptr;
    {
      const Context context = open(queue_);
      const Stream stream = opencl::stream(context, queue);
      opencl::wait_for(stream, std::array{go});
      Executor(context).on(stream).run("sequence_mean",
                                       {{"input", opencl::tensor(context, memory, tokens_at(0))},
                                        {"output", opencl::tensor(context, memory, mean_at(8))}});
      done = opencl::event_after(stream);
      clFlush(queue);
      EXPECT_GT(status(done), CL_COMPLETE) << "it did not wait";
      clSetUserEventStatus(go, CL_COMPLETE);
      EXPECT_EQ(clWaitForEvents(1, &done), CL_SUCCESS);
      EXPECT_EQ(read(memory, 3, 8), (std::vector<float>{3, 4, 5}));
    }
    EXPECT_EQ(references(done), 1U);
    EXPECT_EQ(references(go), 1U);
    clReleaseEvent(done);
    clReleaseEvent(go);
    clReleaseMemObject(memory);
  }
}

TEST_F(OpenClInterop, AStreamKeepsItsOrderOnAQueueThatHasNone) {
  std::vector<std::vector<float>> results;
  for (const cl_command_queue_properties properties :
       {cl_command_queue_properties{0}, kOutOfOrder}) {
    const Context context = open(make_queue(properties));
    std::vector<float> values(6 * 257);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 31) - 7;
    Tensor x = context.upload(values, {6, 257}), sum = context.upload(values, {6, 257});
    // Each call reads what the one before wrote.
    for (int i = 0; i < 50; ++i) {
      x = rms_norm(context, x, {.residual = sum});
    }
    results.push_back(context.download<float>(x));
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST_F(OpenClInterop, ThreadsShareAContextOnQueuesOfTheirOwn) {
  const Context context = open(queue_);
  const std::array queues{make_queue(0), make_queue(kOutOfOrder)};
  const std::array buffers{make_buffer(16), make_buffer(16)};
  write(buffers[0], {1, 2, 3, 5, 6, 7});
  write(buffers[1], {2, 4, 6, 10, 12, 14});
  std::array<std::vector<float>, 2> results;
  {
    std::vector<std::jthread> threads;
    for (std::size_t n = 0; n < queues.size(); ++n) {
      threads.emplace_back([&, n] {
        Stream stream = opencl::stream(context, queues[n]);
        const Tensor x = opencl::tensor(context, buffers[n], tokens_at(0));
        for (int i = 0; i < 20; ++i)
          Executor(context).on(stream).run(
              "sequence_mean",
              {{"input", x}, {"output", opencl::tensor(context, buffers[n], mean_at(8))}});
        stream.synchronize();
        results[n] = read(buffers[n], 3, 8);
      });
    }
  }
  EXPECT_EQ(results[0], (std::vector<float>{3, 4, 5}));
  EXPECT_EQ(results[1], (std::vector<float>{6, 8, 10}));
  for (cl_mem buffer : buffers) clReleaseMemObject(buffer);
}

TEST_F(OpenClInterop, AFailedLaunchLeavesTheOrderAsItWas) {
  const Context context = open(make_queue(kOutOfOrder));
  const Tensor x = context.upload(std::vector<float>{1, 2, 3, 5, 6, 7}, {1, 2, 3});
  const Tensor mean = sequence_mean(context, x);
  device::cl_faults.launch = CL_OUT_OF_HOST_MEMORY;
  EXPECT_THAT(message_of<DeviceError>([&] { sequence_mean(context, x); }),
              ::testing::HasSubstr("CL_OUT_OF_HOST_MEMORY"));
  device::cl_faults.clear();
  const Tensor again = sequence_mean(context, x);
  EXPECT_EQ(context.download<float>(again), context.download<float>(mean));
}

TEST_F(OpenClInterop, ALaunchWithoutMemoryGetsWhatWaitsForOutputs) {
  const Context context = open(queue_);
  const Tensor x = context.upload(std::vector<float>{1, 2, 3, 5, 6, 7}, {1, 2, 3});
  const Tensor mean = sequence_mean(context, x);
  sequence_mean(context, x);  // whose output waits for the next
  device::cl_faults.launch = CL_MEM_OBJECT_ALLOCATION_FAILURE;
  device::cl_faults.launches = 1;
  const Tensor other = context.upload(std::vector<float>{2, 4}, {1, 1, 2});
  EXPECT_EQ(context.download<float>(sequence_mean(context, other)), (std::vector<float>{2, 4}));
  EXPECT_EQ(device::cl_faults.launches, 0);
  EXPECT_EQ(context.release_memory(), 2 * sizeof(float));  // the last output's alone
  device::cl_faults.launches = 1;
  EXPECT_THROW(sequence_mean(context, other), OutOfDeviceMemory);  // nothing waits
  device::cl_faults.clear();
  EXPECT_EQ(context.download<float>(mean), (std::vector<float>{3, 4, 5}));
}

TEST_F(OpenClInterop, RefusesWhatIsNotTheContexts) {
  const Context context = open(queue_);
  const cl_mem memory = make_buffer(8);
  cl_context other = clCreateContext(nullptr, 1, &device_, nullptr, nullptr, nullptr);
  cl_command_queue other_queue = clCreateCommandQueue(other, device_, 0, nullptr);
  cl_mem other_memory = clCreateBuffer(other, CL_MEM_READ_WRITE, 64, nullptr, nullptr);
  cl_event other_event = clCreateUserEvent(other, nullptr);
  const auto refused = [](auto call) { return message_of<InvalidArgument>(call); };
  const TensorSpec spec = TensorSpec::contiguous(DType::kF32, {8});
  const std::array<cl_event, 1> null_event{nullptr};

  EXPECT_EQ(refused([&] { opencl::open(nullptr, device_, queue_); }), "the cl_context is null");
  EXPECT_EQ(refused([&] { opencl::open(context_, nullptr, queue_); }), "the cl_device_id is null");
  // As one of another platform, or one that is gone.
  EXPECT_EQ(
      refused([&] { opencl::open(context_, reinterpret_cast<cl_device_id>(&other), queue_); }),
      "the cl_device_id is not one of the cl_context");
  EXPECT_EQ(refused([&] { open(nullptr); }), "the cl_command_queue is null");
  EXPECT_EQ(refused([&] { open(other_queue); }),
            "the cl_command_queue belongs to another cl_context");
  EXPECT_EQ(refused([&] { opencl::stream(context, other_queue); }),
            "the cl_command_queue belongs to another cl_context");
  EXPECT_EQ(refused([&] { opencl::tensor(context, nullptr, spec); }), "the cl_mem is null");
  EXPECT_EQ(refused([&] { opencl::tensor(context, other_memory, spec); }),
            "the cl_mem belongs to another cl_context");
  EXPECT_THAT(
      refused([&] { opencl::tensor(context, memory, TensorSpec::contiguous(DType::kF32, {9})); }),
      ::testing::HasSubstr("32"));
  const cl_image_format format{CL_R, CL_FLOAT};
  cl_image_desc shape{};
  shape.image_type = CL_MEM_OBJECT_IMAGE2D;
  shape.image_width = shape.image_height = 4;
  if (cl_mem image =
          clCreateImage(context_, CL_MEM_READ_WRITE, &format, &shape, nullptr, nullptr)) {
    EXPECT_EQ(refused([&] { opencl::tensor(context, image, spec); }), "the cl_mem is no buffer");
    clReleaseMemObject(image);
  }
  EXPECT_EQ(refused([&] { opencl::wait_for(context, null_event); }),
            "a cl_event to wait for is null");
  EXPECT_EQ(refused([&] { opencl::wait_for(context, std::array{other_event}); }),
            "a cl_event to wait for belongs to another cl_context");

  const Context host = Context::open({.device = "host", .cache_directory = ""});
  EXPECT_EQ(refused([&] { opencl::stream(host, queue_); }), "the context is on no OpenCL device");
  EXPECT_EQ(refused([&] { opencl::tensor(host, memory, spec); }),
            "the context is on no OpenCL device");
  EXPECT_EQ(refused([&] { static_cast<void>(opencl::event_after(host)); }),
            "the stream is on no OpenCL device");
  EXPECT_EQ(refused([&] { opencl::memory(host.empty(DType::kF32, {1})); }),
            "the tensor is on no OpenCL device");
  EXPECT_EQ(refused([&] { opencl::memory({}); }), "the tensor is empty");
  EXPECT_EQ(refused([&] { static_cast<void>(opencl::event_after(Stream())); }),
            "the stream is empty: opencl::stream() makes one");

  // Nothing was lost.
  EXPECT_NO_THROW(opencl::tensor(context, memory, spec));
  EXPECT_NO_THROW(context.synchronize());
  clSetUserEventStatus(other_event, CL_COMPLETE);  // or a driver may wait for it
  clReleaseEvent(other_event);
  clReleaseMemObject(other_memory);
  clReleaseCommandQueue(other_queue);
  clReleaseContext(other);
  clReleaseMemObject(memory);
}

TEST_F(OpenClInterop, SeesThroughSubBuffersAndFlags) {
  const Context context = open(queue_);
  const cl_mem memory = make_buffer(1024);
  const cl_buffer_region region{128, 512};  // PoCL's base addresses are aligned to 128 bytes
  cl_int code = CL_SUCCESS;
  cl_mem part =
      clCreateSubBuffer(memory, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
  ASSERT_EQ(code, CL_SUCCESS);
  write(memory, {1, 2, 3, 5, 6, 7}, 40);
  const Tensor input = opencl::tensor(context, memory, tokens_at(40));
  const Executor executor(context);
  // Element 8 of the part is element 40 of the whole.
  EXPECT_EQ(message_of<InvalidArgument>([&] {
              executor.run(
                  "sequence_mean",
                  {{"input", input}, {"output", opencl::tensor(context, part, mean_at(8))}});
            }),
            "sequence_mean: output 'output' overlaps 'input'");
  executor.run("sequence_mean",
               {{"input", input}, {"output", opencl::tensor(context, part, mean_at(14))}});
  EXPECT_EQ(read(memory, 3, 46), (std::vector<float>{3, 4, 5}));
  EXPECT_EQ(
      context.download<float>(sequence_mean(context, opencl::tensor(context, part, tokens_at(8)))),
      (std::vector<float>{3, 4, 5}));

  const cl_mem constant = make_buffer(8, CL_MEM_READ_ONLY),
               sink = make_buffer(8, CL_MEM_WRITE_ONLY);
  EXPECT_EQ(
      message_of<InvalidArgument>([&] {
        executor.run("sequence_mean",
                     {{"input", input}, {"output", opencl::tensor(context, constant, mean_at(0))}});
      }),
      "sequence_mean: the buffer of output was made by the application as one that kernels may "
      "not have written");
  EXPECT_EQ(
      message_of<InvalidArgument>(
          [&] { sequence_mean(context, opencl::tensor(context, sink, tokens_at(0))); }),
      "sequence_mean: the buffer of input was made by the application as one that kernels may "
      "not have read");
  for (cl_mem each : {part, memory, constant, sink}) clReleaseMemObject(each);
}

}  // namespace
}  // namespace tessera
