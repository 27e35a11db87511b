// SPDX-License-Identifier: Apache-2.0
// What a call of causal_conv1d, or of its gradients, must give.
#pragma once

#include <span>

#include "operations/causal_conv1d/call.hpp"
#include "operations/state_space_core/bounded.hpp"

namespace tessera::operations::state_space {

Outputs conv_outputs(const Problem& problem, std::span<HostTensor> tensors);

}  // namespace tessera::operations::state_space
