// SPDX-License-Identifier: Apache-2.0
// PCI vendor ids, as DeviceProfile::vendor_id.
#pragma once

#include <cstdint>

namespace tessera {

inline constexpr std::uint32_t kVendorAmd = 0x1002;
inline constexpr std::uint32_t kVendorIntel = 0x8086;
inline constexpr std::uint32_t kVendorNvidia = 0x10de;

}  // namespace tessera
