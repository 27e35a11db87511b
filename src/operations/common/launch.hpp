// SPDX-License-Identifier: Apache-2.0
// What variants of every family ask of a device and hand to their kernels.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "tessera/record.hpp"

namespace tessera::operations {

// Of counts whose quotient fits 32 bits: work-groups, tiles, steps.
inline std::uint32_t ceil_div(std::int64_t a, std::int64_t b) {
  return static_cast<std::uint32_t>((a + b - 1) / b);
}

std::uint32_t dtype_axis(DType dtype);  // the value of the build-time axis DTYPE
std::vector<Define> dtype_axes(const Problem& problem, const DeviceProfile& profile);

// Of kernels that know types as values: the build-time axis STORAGE16 says whether an operand has
// 16 bits, and such operands are refused where the device can't store them. Processors take seconds
// to compile a shader and have one for all types.
std::vector<Define> storage_axes(const Problem& problem, const DeviceProfile& profile);
std::vector<Define> shader_storage_axes(const Problem& problem,
                                        const DeviceProfile& profile);  // no OpenCL C has it
Refusal rejects_storage16(const Problem& problem, const DeviceProfile& profile);

// The tunables SM80 and SM90 of kernels that convert elements by NVIDIA's instructions: 1 where a
// device has them, and why it can't take those of a configuration.
void set_conversions(Config& config, const DeviceProfile& profile);
Refusal rejects_conversions(const Config& config, const DeviceProfile& profile);

// Work-groups that share a sum; 1 where a variant has no such tunable.
inline std::uint32_t splits_of(const Config& config) {
  return std::max(config.get("SPLITS", 1), 1U);
}

// Why kernels can't count the elements of the operands. OpenCL's form the addresses of `wide`
// operands in 64 bits, from offsets and strides of 32; Vulkan's, and those of other operands, are
// numbers of 32 bits.
Refusal rejects_long_operands(const Problem& problem, const DeviceProfile& profile,
                              std::span<const std::size_t> wide);
// The same where every operand is wide.
Refusal rejects_long_operands(const Problem& problem, const DeviceProfile& profile);

// lavapipe ends the loops of an item after 65535 rounds in all: those that a variant counts, with
// room for what it does not.
inline constexpr std::int64_t kMostRounds = 60000;
bool loses_rounds(const DeviceProfile& profile);
Refusal rejects_rounds(std::int64_t rounds, const DeviceProfile& profile);

// What kernels for CPUs through OpenCL share. Their private memory lies on the stack of PoCL's
// worker threads; near 8 MiB the process crashes.
Requirements opencl_cpu();
bool is_opencl_cpu(const DeviceProfile& profile);
std::uint32_t vector_width(const DeviceProfile& profile);  // floats of a vector
Refusal rejects_vector_width(const Config& config);        // VECTOR_WIDTH is none of 4, 8 and 16
Refusal rejects_private_bytes(std::uint64_t bytes);        // of one work-item

}  // namespace tessera::operations
