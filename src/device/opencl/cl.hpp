// SPDX-License-Identifier: Apache-2.0
// The only place that includes the vendor headers of OpenCL. clhpp's wrappers own what we create;
// calls that can fail go to the C functions, so that an error names its call and its code however
// the application configured clhpp for its own sources (with or without CL_HPP_ENABLE_EXCEPTIONS).
// Nothing newer than OpenCL 1.2 is called; and Debian 12's clhpp does not compile with a minimum of
// 120 and a target of 200 or more.
#pragma once

#define CL_HPP_TARGET_OPENCL_VERSION 120
#define CL_HPP_MINIMUM_OPENCL_VERSION 120
#define CL_TARGET_OPENCL_VERSION 120
#include "device/opencl/functions.hpp"  // before clhpp, which calls them
// clang-format off
#include <CL/opencl.hpp>
// clang-format on

namespace tessera::device::opencl {

// Forgets a handle without releasing it: see fork.hpp.
template <class Handle>
void abandon(Handle& handle) noexcept {
  handle() = nullptr;
}

}  // namespace tessera::device::opencl
