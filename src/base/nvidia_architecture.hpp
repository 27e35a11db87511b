// SPDX-License-Identifier: Apache-2.0
// Which generation of NVIDIA's GPUs a device is, from what its platform says of its compiler.
#pragma once

#include <charconv>
#include <string_view>

#include "tessera/device.hpp"

namespace tessera {

// 80 of "... sm_80"; 0 where the compiler does not say.
inline unsigned nvidia_architecture(const DeviceProfile& profile) {
  constexpr std::string_view kTarget = " sm_";
  const std::string_view compiler = profile.compiler;
  const std::size_t at = compiler.rfind(kTarget);
  unsigned architecture = 0;
  if (at != std::string_view::npos) {
    const std::string_view digits = compiler.substr(at + kTarget.size());
    std::from_chars(digits.data(), digits.data() + digits.size(), architecture);
  }
  return architecture;
}

// A GPU of NVIDIA's through its OpenCL, older than Ampere.
inline bool lacks_matrix_instructions(const DeviceProfile& profile) {
  return has(profile.features, Feature::kNvidiaPtx) && !has(profile.features, Feature::kMmaSync);
}

}  // namespace tessera
