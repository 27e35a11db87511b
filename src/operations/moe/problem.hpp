// SPDX-License-Identifier: Apache-2.0
// Calls of the operations of mixtures of experts after validation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "operations/common/ways.hpp"
#include "tessera/record.hpp"

namespace tessera::operations::moe {

enum RouteSlot : std::size_t {
  kLogits,
  kBias,
  kIds,
  kSlots,
  kWeights,
  kCounts,
  kOffsets,
  kBalanceLoss,
  kZLoss,
};
enum RouteBackwardSlot : std::size_t {
  kOfLogits,
  kOfIds,
  kOfSlots,
  kGradWeights,
  kGradBalance,
  kGradZ,
  kGradLogits,
};

struct RouteProblem {
  bool backward = false;
  std::int64_t tokens = 0, experts = 0, top_k = 0;
  std::int64_t groups = 1, top_groups = 1;
  bool sigmoid = false, renormalise = true;
  std::optional<std::int64_t> capacity{};  // nothing: dropless
  double scale = 1, noise = 0, balance = 0, z = 0;
  std::uint64_t seed = 0;
};

void validate_route(Problem& problem, bool backward);
void reference_route(const Problem& problem, std::span<HostTensor> tensors);
void reference_route_backward(const Problem& problem, std::span<HostTensor> tensors);
Workload route_workload(bool backward);
Way route_way();
Way route_backward_way();

}  // namespace tessera::operations::moe
