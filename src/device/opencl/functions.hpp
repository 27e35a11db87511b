// SPDX-License-Identifier: Apache-2.0
// The functions of OpenCL, by their names, as those of a library that is opened when one is first
// called. Nothing links against a loader; a function that is missing below does not link.
#pragma once

#include <CL/cl.h>

#include <algorithm>
#include <cstddef>
#include <type_traits>

namespace tessera::device::opencl {

// Throws DeviceError where there is no libOpenCL.so.1, or no such function in it.
void* find_function(const char* name);

// A function's name as a template's argument.
template <std::size_t kSize>
struct FunctionName {
  consteval FunctionName(const char (&text)[kSize]) { std::copy_n(text, kSize, characters); }
  char characters[kSize];
};

template <class Function, FunctionName kName>
struct Forward;
template <class Result, class... Arguments, FunctionName kName>
struct Forward<Result CL_API_CALL(Arguments...), kName> {
  static Result CL_API_CALL call(Arguments... arguments) {
    using Pointer = Result(CL_API_CALL*)(Arguments...);
    static const auto function = reinterpret_cast<Pointer>(find_function(kName.characters));
    return function(arguments...);
  }
};

}  // namespace tessera::device::opencl

// In the global namespace, where clhpp looks.
template <class Function, tessera::device::opencl::FunctionName kName>
inline constexpr auto& tessera_opencl_function =
    tessera::device::opencl::Forward<Function, kName>::call;
#define TESSERA_FOUND(name) tessera_opencl_function<decltype(name), #name>

#define clBuildProgram TESSERA_FOUND(clBuildProgram)
#define clCreateBuffer TESSERA_FOUND(clCreateBuffer)
#define clCreateCommandQueue TESSERA_FOUND(clCreateCommandQueue)
#define clCreateContext TESSERA_FOUND(clCreateContext)
#define clCreateKernel TESSERA_FOUND(clCreateKernel)
#define clCreateProgramWithBinary TESSERA_FOUND(clCreateProgramWithBinary)
#define clCreateProgramWithSource TESSERA_FOUND(clCreateProgramWithSource)
#define clCreateUserEvent TESSERA_FOUND(clCreateUserEvent)
#define clEnqueueBarrierWithWaitList TESSERA_FOUND(clEnqueueBarrierWithWaitList)
#define clEnqueueCopyBuffer TESSERA_FOUND(clEnqueueCopyBuffer)
#define clEnqueueFillBuffer TESSERA_FOUND(clEnqueueFillBuffer)
#define clEnqueueMarkerWithWaitList TESSERA_FOUND(clEnqueueMarkerWithWaitList)
#define clEnqueueNDRangeKernel TESSERA_FOUND(clEnqueueNDRangeKernel)
#define clEnqueueReadBuffer TESSERA_FOUND(clEnqueueReadBuffer)
#define clEnqueueWriteBuffer TESSERA_FOUND(clEnqueueWriteBuffer)
#define clFinish TESSERA_FOUND(clFinish)
#define clFlush TESSERA_FOUND(clFlush)
#define clGetCommandQueueInfo TESSERA_FOUND(clGetCommandQueueInfo)
#define clGetContextInfo TESSERA_FOUND(clGetContextInfo)
#define clGetDeviceIDs TESSERA_FOUND(clGetDeviceIDs)
#define clGetDeviceInfo TESSERA_FOUND(clGetDeviceInfo)
#define clGetEventInfo TESSERA_FOUND(clGetEventInfo)
#define clGetEventProfilingInfo TESSERA_FOUND(clGetEventProfilingInfo)
#define clGetKernelInfo TESSERA_FOUND(clGetKernelInfo)
#define clGetKernelWorkGroupInfo TESSERA_FOUND(clGetKernelWorkGroupInfo)
#define clGetMemObjectInfo TESSERA_FOUND(clGetMemObjectInfo)
#define clGetPlatformIDs TESSERA_FOUND(clGetPlatformIDs)
#define clGetPlatformInfo TESSERA_FOUND(clGetPlatformInfo)
#define clGetProgramBuildInfo TESSERA_FOUND(clGetProgramBuildInfo)
#define clGetProgramInfo TESSERA_FOUND(clGetProgramInfo)
#define clReleaseCommandQueue TESSERA_FOUND(clReleaseCommandQueue)
#define clReleaseContext TESSERA_FOUND(clReleaseContext)
#define clReleaseDevice TESSERA_FOUND(clReleaseDevice)
#define clReleaseEvent TESSERA_FOUND(clReleaseEvent)
#define clReleaseKernel TESSERA_FOUND(clReleaseKernel)
#define clReleaseMemObject TESSERA_FOUND(clReleaseMemObject)
#define clReleaseProgram TESSERA_FOUND(clReleaseProgram)
#define clRetainCommandQueue TESSERA_FOUND(clRetainCommandQueue)
#define clRetainContext TESSERA_FOUND(clRetainContext)
#define clRetainDevice TESSERA_FOUND(clRetainDevice)
#define clRetainEvent TESSERA_FOUND(clRetainEvent)
#define clRetainKernel TESSERA_FOUND(clRetainKernel)
#define clRetainMemObject TESSERA_FOUND(clRetainMemObject)
#define clRetainProgram TESSERA_FOUND(clRetainProgram)
#define clSetKernelArg TESSERA_FOUND(clSetKernelArg)
#define clSetMemObjectDestructorCallback TESSERA_FOUND(clSetMemObjectDestructorCallback)
#define clSetUserEventStatus TESSERA_FOUND(clSetUserEventStatus)
#define clWaitForEvents TESSERA_FOUND(clWaitForEvents)
