// SPDX-License-Identifier: Apache-2.0
#include "operations/common/launch.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "abi/storage.h"

namespace tessera::operations {

std::uint32_t dtype_axis(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return DTYPE_F16;
    case DType::kBF16:
      return DTYPE_BF16;
    case DType::kI8:
      return DTYPE_I8;
    case DType::kU8:
      return DTYPE_U8;
    case DType::kI4:
      return DTYPE_I4;
    case DType::kU4:
      return DTYPE_U4;
    case DType::kE4M3FN:
      return DTYPE_E4M3FN;
    case DType::kE5M2:
      return DTYPE_E5M2;
    default:
      return DTYPE_F32;
  }
}

std::vector<Define> dtype_axes(const Problem& problem, const DeviceProfile& /*profile*/) {
  return {{"DTYPE", dtype_axis(problem.dtype)}};
}

namespace {

bool has_16_bits(const Problem& problem) {
  return std::ranges::any_of(problem.operands,
                             [](const auto& spec) { return spec && bits_of(spec->dtype) == 16; });
}

// An axis, or the offset, that is no number of 32 bits.
Refusal rejects_long_strides(const std::string& name, const TensorSpec& spec) {
  constexpr std::int64_t kMost = std::int64_t{1} << 32;
  if (spec.offset >= kMost)
    return name + " starts at element " + std::to_string(spec.offset) + "; offsets count to 2^32";
  for (std::size_t axis = 0; axis < spec.shape.size(); ++axis) {
    if (spec.shape[axis] <= 1 || spec.strides[axis] < kMost) continue;
    return name + " has stride " + std::to_string(spec.strides[axis]) + " along axis " +
           std::to_string(axis) + "; strides count to 2^32";
  }
  return std::nullopt;
}

}  // namespace

std::vector<Define> storage_axes(const Problem& problem, const DeviceProfile& profile) {
  const bool one_for_all = profile.backend == Backend::kVulkan && is_cpu(profile) &&
                           has(profile.features, Feature::kStorage16);
  return {{"STORAGE16", one_for_all || has_16_bits(problem) ? 1U : 0U}};
}

std::vector<Define> shader_storage_axes(const Problem& problem, const DeviceProfile& profile) {
  if (profile.backend != Backend::kVulkan) return {};
  return storage_axes(problem, profile);
}

Refusal rejects_storage16(const Problem& problem, const DeviceProfile& profile) {
  if (!has_16_bits(problem) || has(profile.features, Feature::kStorage16)) return std::nullopt;
  return "needs storage16 for operands of 16 bits, which this device lacks";
}

void set_conversions(Config& config, const DeviceProfile& profile) {
  config.set("SM80", has(profile.features, Feature::kMmaSync) ? 1U : 0U);
  config.set("SM90", has(profile.features, Feature::kWgmma) ? 1U : 0U);
}

Refusal rejects_conversions(const Config& config, const DeviceProfile& profile) {
  const bool bytes = config.get("SM80", 0) != 0, floats = config.get("SM90", 0) != 0;
  if (bytes && !has(profile.features, Feature::kMmaSync))
    return "converts elements by instructions of sm_80, which this device lacks";
  if (floats && !has(profile.features, Feature::kWgmma))
    return "converts 8-bit floats by instructions of sm_90, which this device lacks";
  if (floats && !bytes) return "takes the instructions of sm_90 with those of sm_80, and SM80 is 0";
  return std::nullopt;
}

bool loses_rounds(const DeviceProfile& profile) {
  return profile.backend == Backend::kVulkan && is_cpu(profile);
}

Refusal rejects_rounds(std::int64_t rounds, const DeviceProfile& profile) {
  if (rounds <= kMostRounds || !loses_rounds(profile)) return std::nullopt;
  return "takes up to " + std::to_string(kMostRounds) +
         " rounds of an item's loops on processors, and the call has " + std::to_string(rounds);
}

Refusal rejects_long_operands(const Problem& problem, const DeviceProfile& profile,
                              std::span<const std::size_t> wide) {
  constexpr std::int64_t kMostElements = std::int64_t{1} << 31;
  for (std::size_t slot = 0; slot < problem.operands.size(); ++slot) {
    if (!problem.has(slot)) continue;
    const TensorSpec& spec = problem.spec(slot);
    const std::string name = problem.operation->operands[slot].name + " " + spec.to_string();
    const bool is_wide = profile.backend == Backend::kOpenCL && std::ranges::count(wide, slot) != 0;
    if (is_wide) {
      if (Refusal no = rejects_long_strides(name, spec)) return no;
    } else if (spec.last_element() >= kMostElements) {
      return name + " reaches element " + std::to_string(spec.last_element()) +
             "; its kernels count to 2^31";
    }
  }
  return std::nullopt;
}

Refusal rejects_long_operands(const Problem& problem, const DeviceProfile& profile) {
  std::vector<std::size_t> all(problem.operands.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return rejects_long_operands(problem, profile, all);
}

Requirements opencl_cpu() { return {.backends = {Backend::kOpenCL}, .kinds = {DeviceKind::kCpu}}; }

bool is_opencl_cpu(const DeviceProfile& profile) {
  return profile.backend == Backend::kOpenCL && is_cpu(profile);
}

std::uint32_t vector_width(const DeviceProfile& profile) {
  return profile.native_float_width >= 16 ? 16 : profile.native_float_width >= 8 ? 8 : 4;
}

Refusal rejects_vector_width(const Config& config) {
  const std::uint32_t width = config.at("VECTOR_WIDTH");
  if (width == 4 || width == 8 || width == 16) return std::nullopt;
  return "takes vectors of 4, 8 or 16 floats, and VECTOR_WIDTH is " + std::to_string(width);
}

Refusal rejects_private_bytes(std::uint64_t bytes) {
  constexpr std::uint64_t kMostPrivateBytes = std::uint64_t{4} << 20;
  if (bytes <= kMostPrivateBytes) return std::nullopt;
  return "needs " + std::to_string(bytes) + " bytes of private memory, and " +
         std::to_string(kMostPrivateBytes) + " are safe";
}

}  // namespace tessera::operations
