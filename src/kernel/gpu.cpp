// SPDX-License-Identifier: Apache-2.0
#include "kernel/gpu.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <string>

#include "base/vendor_ids.hpp"

namespace tessera::kernel {
namespace {

// RDNA 4 is the first generation of AMD's that multiplies bfloat16 through Vulkan, and the first
// that holds matrices once.
bool is_rdna3(const DeviceProfile& profile) {
  return profile.vendor_id == kVendorAmd && !profile.matrix_shapes.empty() &&
         !has(profile.features, Feature::kBf16Matrix);
}

}  // namespace

std::uint32_t compute_units_of(const DeviceProfile& profile) {
  constexpr std::uint32_t kGuessDiscrete = 32, kGuessIntegrated = 8;
  // Intel's OpenCL counts execution units, 8 of which (16 before Xe-HPG's successors) make a core.
  constexpr std::uint32_t kUnitsOfACore = 8;
  if (!is_gpu(profile)) return std::max(profile.compute_units, 1U);
  if (profile.compute_units == 0)
    return profile.kind == DeviceKind::kIntegratedGpu ? kGuessIntegrated : kGuessDiscrete;
  const bool counts_units =
      profile.vendor_id == kVendorIntel && profile.backend == Backend::kOpenCL;
  return counts_units ? std::max(profile.compute_units / kUnitsOfACore, 1U) : profile.compute_units;
}

std::uint32_t nvidia_local_bytes(const DeviceProfile& profile) {
  return has(profile.features, Feature::kWgmma) ? kHopperLocalBytes : kAmpereLocalBytes;
}

Refusal rejects_nvidia_bytes(std::uint64_t bytes, const DeviceProfile& profile) {
  const std::uint32_t held = nvidia_local_bytes(profile);
  if (bytes <= held) return std::nullopt;
  return "needs " + std::to_string(bytes) + " bytes of work-group memory, and has " +
         std::to_string(held);
}

Core core_of(const DeviceProfile& profile) {
  constexpr std::uint64_t kKiB = 1024;
  // A compute unit; RDNA has half as many SIMDs of twice as many registers.
  if (profile.vendor_id == kVendorAmd)
    return {.lanes = 64,
            .items = 2048,
            .registers = is_rdna3(profile) ? 98304U : 65536U,
            .local_bytes = 64 * kKiB};
  // 16 engines of 8 threads, each of which has its 128 registers whatever it needs.
  if (profile.vendor_id == kVendorIntel)
    return {.lanes = 128,
            .items = 128 * std::max(profile.subgroup_size, 8U),
            .registers = 0,
            .local_bytes = std::max<std::uint64_t>(profile.local_memory, 64 * kKiB)};
  // NVIDIA's, and a guess for all others. Local memory: of Hopper; what limits these kernels are
  // registers.
  return {.lanes = 128, .items = 2048, .registers = 65536, .local_bytes = 228 * kKiB};
}

GroupBudget group_budget(const DeviceProfile& profile) {
  constexpr std::uint32_t kNoLimit = std::numeric_limits<std::uint32_t>::max();
  // RDNA: 1536 registers of 32 lanes per SIMD, so 192 leave room for four waves of 64; 1024 before
  // RDNA 3, which is the first to multiply matrices, and in processors with graphics. GCN: 256 of
  // 64 lanes, for two waves. A wave can have 256, some of which the compiler needs to copy.
  if (profile.vendor_id == kVendorAmd) {
    const bool many = profile.kind != DeviceKind::kIntegratedGpu && !profile.matrix_shapes.empty();
    return {.registers = many ? 192U : 128U, .spills_from = 248, .local_bytes = 16 << 10};
  }
  // 128 registers of the native width to a thread, whatever its sub-group's size; a quarter goes to
  // addresses of 64 bits and to loads under way. Of cooperative matrices on Xe2, 76 by the estimate
  // compiled without a spill, and 84, 92 and 96 with 22 to 128.
  if (profile.vendor_id == kVendorIntel)
    return {.registers = 96, .spills_from = 80, .local_bytes = kNoLimit};
  return {.registers = kNoLimit, .spills_from = kNoLimit, .local_bytes = kNoLimit};
}

std::uint32_t fewest_items_of_64_sums(const DeviceProfile& profile) {
  constexpr std::uint32_t kRegisters = 137;
  if (profile.vendor_id != kVendorAmd) return 1;
  const bool few = group_budget(profile).registers < kRegisters;
  return profile.backend == Backend::kVulkan && few ? 256 : 128;
}

std::uint32_t most_items(const DeviceProfile& profile, std::uint32_t wanted) {
  const std::uint32_t most = profile.max_group_size;
  return most == 0 ? wanted : std::min(wanted, std::bit_floor(most));
}

std::uint32_t lanes_of_a_matrix(const DeviceProfile& profile) {
  constexpr std::uint32_t kRdna3Lanes = 16;
  return is_rdna3(profile) ? kRdna3Lanes : profile.subgroup_size;
}

}  // namespace tessera::kernel
