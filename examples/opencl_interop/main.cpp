// SPDX-License-Identifier: Apache-2.0
// An OpenCL program that has Tessera compute attention between its own kernels. Two threads share
// one context; each has a queue, the second one out of order.
#include <CL/cl.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <tessera/interop/opencl.hpp>
#include <tessera/tessera.hpp>
#include <thread>
#include <vector>

namespace ts = tessera;

namespace {

constexpr std::int64_t kTokens = 64, kHeads = 2, kDim = 32;
constexpr std::size_t kElements = kTokens * kHeads * kDim;

const char* const kSource = R"(
kernel void fill(global float* x, float step) { x[get_global_id(0)] = sin(step * get_global_id(0)); }
kernel void halve(global float* x) { x[get_global_id(0)] *= 0.5f; }
)";

void check(cl_int code, const char* call) {
  if (code != CL_SUCCESS) throw std::runtime_error(call + (": code " + std::to_string(code)));
}

// Elements of the program's one buffer: q, then the output.
ts::TensorSpec part(std::int64_t number) {
  ts::TensorSpec spec = ts::TensorSpec::contiguous(ts::DType::kF32, {1, kTokens, kHeads, kDim});
  spec.offset = number * static_cast<std::int64_t>(kElements);
  return spec;
}

// The events order what the queue does not.
cl_event run(cl_command_queue queue, cl_program program, const char* name, cl_mem memory,
             const float* step, cl_event before) {
  cl_int code = CL_SUCCESS;
  cl_kernel kernel = clCreateKernel(program, name, &code);
  check(code, "clCreateKernel");
  check(clSetKernelArg(kernel, 0, sizeof memory, &memory), "clSetKernelArg");
  if (step != nullptr) check(clSetKernelArg(kernel, 1, sizeof *step, step), "clSetKernelArg");
  const std::size_t items = kElements;
  cl_event done = nullptr;
  check(
      clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &items, nullptr, before != nullptr ? 1 : 0,
                             before != nullptr ? &before : nullptr, &done),
      "clEnqueueNDRangeKernel");
  clReleaseKernel(kernel);
  return done;
}

// fill, attention, halve: the second element of the result.
float work(const ts::Context& context, cl_context cl, cl_command_queue queue, cl_program program,
           float step) {
  cl_int code = CL_SUCCESS;
  cl_mem memory =
      clCreateBuffer(cl, CL_MEM_READ_WRITE, 2 * kElements * sizeof(float), nullptr, &code);
  check(code, "clCreateBuffer");
  cl_event filled = run(queue, program, "fill", memory, &step, nullptr);

  const ts::Stream stream = ts::opencl::stream(context, queue);
  const ts::Tensor q = ts::opencl::tensor(context, memory, part(0));
  ts::opencl::wait_for(stream, std::array{filled});
  ts::FlashAttentionOptions options;
  options.causal = true;
  const ts::Tensor output = ts::flash_attention(ts::Executor(context).on(stream), q, q, q, options);
  cl_event attended = ts::opencl::event_after(stream);

  // Tessera's output is a cl_mem like any other.
  cl_mem result = ts::opencl::memory(output);
  cl_event halved = run(queue, program, "halve", result, nullptr, attended);
  float second = 0;
  check(clEnqueueReadBuffer(queue, result, CL_TRUE, sizeof(float), sizeof second, &second, 1,
                            &halved, nullptr),
        "clEnqueueReadBuffer");
  for (cl_event event : {filled, attended, halved}) clReleaseEvent(event);
  clReleaseMemObject(memory);
  return second;
}

void run_all() {
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  check(clGetPlatformIDs(1, &platform, nullptr), "clGetPlatformIDs");
  check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr), "clGetDeviceIDs");
  cl_int code = CL_SUCCESS;
  cl_context cl = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code);
  check(code, "clCreateContext");
  const std::array<cl_command_queue, 2> queues{
      clCreateCommandQueue(cl, device, 0, nullptr),
      clCreateCommandQueue(cl, device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, nullptr)};
  cl_program program =
      clCreateProgramWithSource(cl, 1, const_cast<const char**>(&kSource), nullptr, &code);
  check(code, "clCreateProgramWithSource");
  check(clBuildProgram(program, 1, &device, "", nullptr, nullptr), "clBuildProgram");

  std::array<float, 2> results{};
  std::array<std::exception_ptr, 2> failures{};
  {
    const ts::Context context = ts::opencl::open(cl, device, queues[0]);
    std::printf("%s\n", ts::summary(context.device()).c_str());
    const ts::Problem problem = ts::problem_of(
        "flash_attention", {{"query", part(0)}, {"key", part(0)}, {"value", part(0)}},
        {{"causal", true}});
    if (const auto why_not = ts::query_support(context, problem))
      throw std::runtime_error("no attention here: " + *why_not);
    ts::prewarm(context, std::array{problem});
    std::vector<std::thread> threads;
    for (std::size_t n = 0; n < queues.size(); ++n) {
      threads.emplace_back([&, n] {
        try {
          results[n] = work(context, cl, queues[n], program, 0.001F * static_cast<float>(n + 1));
        } catch (...) {
          failures[n] = std::current_exception();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);

  // The first row sees only itself: its output is v, whose second element is sin(step).
  std::printf("queue in order %f, out of order %f\n", results[0], results[1]);
  for (std::size_t n = 0; n < results.size(); ++n) {
    const float expected = 0.5F * std::sin(0.001F * static_cast<float>(n + 1));
    if (std::abs(results[n] - expected) > 1e-6F) throw std::runtime_error("that is wrong");
  }
  clReleaseProgram(program);
  for (cl_command_queue queue : queues) clReleaseCommandQueue(queue);
  clReleaseContext(cl);
}

}  // namespace

int main() {
  try {
    run_all();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
