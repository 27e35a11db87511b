// SPDX-License-Identifier: Apache-2.0
// Intel's threads have 128 registers of their native width, and from Xe-HP on a program may be
// built for 256 of them, of which half as many threads share a core. Through OpenCL that is an
// option of a build; Vulkan's drivers choose by themselves and take no wish.
#pragma once

#include <charconv>
#include <string_view>
#include <utility>

#include "base/vendor_ids.hpp"
#include "tessera/device.hpp"

namespace tessera {

// The value of a configuration that asks for it, of any variant: no kernel reads it.
inline constexpr std::string_view kLargeRegisters = "LARGE_GRF";

// {12, 55} of "... ip_12.55", what Intel's OpenCL says of the generation; zeros where it does not.
inline std::pair<unsigned, unsigned> intel_ip_version(const DeviceProfile& profile) {
  constexpr std::string_view kTarget = " ip_";
  const std::string_view compiler = profile.compiler;
  const std::size_t at = compiler.rfind(kTarget);
  std::pair<unsigned, unsigned> version{};
  if (at == std::string_view::npos || profile.vendor_id != kVendorIntel) return version;
  const std::string_view digits = compiler.substr(at + kTarget.size());
  const char* const end = digits.data() + digits.size();
  const char* const dot = std::from_chars(digits.data(), end, version.first).ptr;
  if (dot != end) std::from_chars(dot + 1, end, version.second);
  return version;
}

// By ocloc 26.27: 12.55, 12.60, 12.70, 20.1 and 20.4 have both kinds, 12.0 ignores the option.
inline bool has_large_registers(const DeviceProfile& profile) {
  constexpr std::pair kXeHp{12U, 50U};
  return profile.backend == Backend::kOpenCL && intel_ip_version(profile) >= kXeHp;
}

}  // namespace tessera
