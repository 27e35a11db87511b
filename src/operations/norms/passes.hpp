// SPDX-License-Identifier: Apache-2.0
// The passes that both variants of the norms have, before a variant says where its kernels are.
#pragma once

#include <functional>

#include "operations/norms/launch.hpp"

namespace tessera::operations::norms {

using Deal = std::function<Dealing(const Problem&, const Config&)>;

Pass forward_pass();
Pass backward_pass(const Deal& deal);
// Those that add up scratch for the gradients of weight, bias and residual.
std::vector<Pass> combine_passes(const Deal& deal);

// Storage types, scratch and what all configurations refuse.
Variant norm_variant(bool backward, const Deal& deal);

}  // namespace tessera::operations::norms
