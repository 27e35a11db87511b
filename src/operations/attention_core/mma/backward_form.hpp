// SPDX-License-Identifier: Apache-2.0
// What the backward variants of matrix instructions share: a kernel for dk and dv, and one for dq.
#pragma once

#include <functional>
#include <string>

#include "operations/attention_core/backward_launch.hpp"

namespace tessera::operations::attention {

struct MmaBackwardGeometry {
  bool valid = false;
  std::uint32_t own_keys = 0, own_rows = 0;  // of a group
  std::uint32_t local_bytes = 0;             // of the kernel that takes more
  std::uint32_t registers = 0;               // of one item, for matrices; the same
};

struct MmaBackwardForm {
  std::string name;     // of the variant
  std::string kernels;  // attention/mma/<kernels>_keys.cl and _queries.cl
  std::function<MmaBackwardGeometry(const Problem&, const Config&)> geometry;
  std::function<std::uint32_t(const DeviceProfile&)> most_local_bytes;
};

// All but its idea, tunables and space.
Variant mma_backward_form(const AttentionSlots& slots, const MmaBackwardForm& form);
// Whether matrix instructions are worth it.
bool prefers_mma_backward(const Problem& problem, const DeviceProfile& profile);

}  // namespace tessera::operations::attention
