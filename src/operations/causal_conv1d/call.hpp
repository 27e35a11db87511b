// SPDX-License-Identifier: Apache-2.0
// A call of causal_conv1d or of its gradients after validation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "operations/common/ways.hpp"
#include "operations/state_space_core/layout.hpp"

namespace tessera::operations::state_space {

// Forward and backward have the first five in common.
enum ConvSlot : std::size_t {
  kConvInput,
  kConvWeight,
  kConvBias,
  kConvInitial,
  kConvOffsets,
  kConvOutput,
  kConvFinal,
  kConvGradOutput = kConvOutput,
  kConvGradFinal = kConvFinal,
  kConvGradInput,
  kConvGradWeight,
  kConvGradBias,
  kConvGradInitial
};

// Gradients, and what they are the gradients of.
inline constexpr std::pair<std::size_t, std::size_t> kConvGradients[] = {
    {kConvGradInput, kConvInput},
    {kConvGradWeight, kConvWeight},
    {kConvGradBias, kConvBias},
    {kConvGradInitial, kConvInitial}};

struct ConvCall {
  Layout layout{};
  std::int64_t width = 0;
  bool silu = false, backward = false;
};

void validate_conv(Problem& problem, bool backward);
void reference_conv(const Problem& problem, std::span<HostTensor> tensors);
std::vector<Raised> raises_conv(const Problem& problem, std::span<HostTensor> tensors);
Workload conv_workload(bool backward);
Way conv_cpu_way(bool backward);
Way conv_vectors_way();  // forward
Way conv_columns_way(bool backward);

}  // namespace tessera::operations::state_space
