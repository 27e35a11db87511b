// SPDX-License-Identifier: Apache-2.0
// The calling thread's overlays and policy, as the RAII classes of tessera/selection.hpp set them.
#pragma once

#include <optional>

#include "selection/selector.hpp"

namespace tessera::selection {

bool overlays_active();
// The innermost entry for the operation and key.
std::optional<OverlayEntry> find_overlay(const Problem& problem);
std::optional<Policy> scoped_policy();
std::optional<Precision> scoped_precision();

}  // namespace tessera::selection
