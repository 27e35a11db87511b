// SPDX-License-Identifier: Apache-2.0
#include "device/opencl_fixture.hpp"

#include <dlfcn.h>

#include <new>

#include "device/counts.hpp"

namespace tessera::device {

ClFaults cl_faults;

}  // namespace tessera::device

namespace tessera::testing {

int opencl_parts() { return device::cl_faults.parts; }

}  // namespace tessera::testing

using tessera::device::cl_faults;

namespace {

template <class Function>
Function* driver(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// These are found before the loader's. Types as in CL/cl.h, which only src/device/opencl includes.
#pragma GCC visibility push(default)  // or the library does not find them
extern "C" {

std::int32_t clFinish(void* queue) {
  if (cl_faults.finish != 0) return cl_faults.finish;
  static auto* const real = driver<std::int32_t(void*)>("clFinish");
  return real(queue);
}

std::int32_t clEnqueueNDRangeKernel(void* queue, void* kernel, std::uint32_t dimensions,
                                    const std::size_t* offset, const std::size_t* global,
                                    const std::size_t* local, std::uint32_t waits,
                                    void* const* wait_list, void** event) {
  if (cl_faults.launch != 0 && cl_faults.launches != 0) {
    if (cl_faults.launches > 0) --cl_faults.launches;
    return cl_faults.launch;
  }
  if (cl_faults.launch_throws) throw std::bad_alloc();
  if (offset != nullptr && offset[1] != 0) ++cl_faults.parts;
  static auto* const real = driver<decltype(clEnqueueNDRangeKernel)>("clEnqueueNDRangeKernel");
  return real(queue, kernel, dimensions, offset, global, local, waits, wait_list, event);
}

std::int32_t clEnqueueReadBuffer(void* queue, void* memory, std::uint32_t blocking,
                                 std::size_t offset, std::size_t size, void* host,
                                 std::uint32_t waits, void* const* wait_list, void** event) {
  if (cl_faults.read != 0) return cl_faults.read;
  static auto* const real = driver<decltype(clEnqueueReadBuffer)>("clEnqueueReadBuffer");
  return real(queue, memory, blocking, offset, size, host, waits, wait_list, event);
}

std::int32_t clBuildProgram(void* program, std::uint32_t count, void* const* devices,
                            const char* options, void (*notify)(void*, void*), void* data) {
  if (cl_faults.build_throws) throw std::bad_alloc();
  static auto* const real = driver<decltype(clBuildProgram)>("clBuildProgram");
  return real(program, count, devices, options, notify, data);
}

void* clCreateBuffer(void* context, std::uint64_t flags, std::size_t size, void* host,
                     std::int32_t* code) {
  if (cl_faults.buffer != 0) {
    *code = cl_faults.buffer;
    return nullptr;
  }
  static auto* const real = driver<decltype(clCreateBuffer)>("clCreateBuffer");
  return real(context, flags, size, host, code);
}

void* clCreateProgramWithBinary(void* context, std::uint32_t count, void* const* devices,
                                const std::size_t* sizes, const unsigned char** binaries,
                                std::int32_t* accepted, std::int32_t* code) {
  if (cl_faults.binary != 0) {
    *code = cl_faults.binary;
    return nullptr;
  }
  static auto* const real =
      driver<decltype(clCreateProgramWithBinary)>("clCreateProgramWithBinary");
  return real(context, count, devices, sizes, binaries, accepted, code);
}

}  // extern "C"
#pragma GCC visibility pop
