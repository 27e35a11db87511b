// SPDX-License-Identifier: Apache-2.0
// The definition of routing in double precision, and how far from it float arithmetic may end.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "operations/moe/problem.hpp"

namespace tessera::operations::moe {

// All logits with their noise; the log-sum-exp of each token's, and the scores.
struct Scores {
  std::vector<double> logits{}, errors{};  // errors: of the noise, absolute
  std::vector<double> log_sums{}, scores{};
};
Scores scores_of(const RouteProblem& call, const HostTensor& logits);

struct Bounded {
  double value = 0, bound = 0;
};

struct Routing {
  std::vector<double> ids{}, slots{};       // [tokens, top_k]
  std::vector<Bounded> weights{};           // [tokens, top_k]
  std::vector<double> counts{}, offsets{};  // [experts], [experts + 1]
  std::vector<double> totals{};             // [experts]: before any choice is dropped
  Bounded balance{}, z{};
};
Routing route(const RouteProblem& call, const Scores& scores, const std::vector<double>& bias);

// The gradient of the logits, [tokens, experts].
std::vector<Bounded> route_gradient(const Problem& problem, std::span<const HostTensor> tensors);

}  // namespace tessera::operations::moe
