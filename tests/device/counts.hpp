// SPDX-License-Identifier: Apache-2.0
// What the process has asked its drivers for so far: the fixtures, which stand in front of the
// loaders, count it.
#pragma once

namespace tessera::testing {

int vulkan_allocations();
// Launches of parts of a grid.
int opencl_parts();
int vulkan_parts();

}  // namespace tessera::testing
