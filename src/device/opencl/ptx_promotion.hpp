// SPDX-License-Identifier: Apache-2.0
// Hopper's matrix unit from OpenCL C. NVIDIA's OpenCL compiles for plain sm_90, where wgmma,
// setmaxnreg and tensormap.replace do not exist: they belong to sm_90a. But the program binary that
// the driver hands out is PTX text, and PTX that is handed back is assembled for the target that it
// names. So kernels write such instructions as inline assembly behind "//@", which the first
// compilation takes for a comment, registers and all; then the text is promoted and built again.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace tessera::device::opencl {

class ClDevice;

// `binary` for `target` ("sm_90a"): every "//@" uncovered, and the target line changed. Empty if
// it is no PTX for the target's family ("sm_90").
std::string promote_ptx(std::string_view binary, std::string_view target);

// Multiplies one tile by wgmma and compares. Asked once per process and device; "no" is logged.
bool wgmma_works(const std::shared_ptr<ClDevice>& device);

}  // namespace tessera::device::opencl
