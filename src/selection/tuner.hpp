// SPDX-License-Identifier: Apache-2.0
// The autotuner: right first, then fast. It knows nothing of devices; a Trial runs one candidate.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "selection/selector.hpp"

namespace tessera::selection {

// One candidate, built and bound to private, made-up operands.
class Trial {
 public:
  virtual ~Trial() = default;
  // Runs twice and compares: outputs against the reference within bounds, guard bands around every
  // buffer, equal bits of the two runs. Returns the worst error over its bound; throws an Error
  // with the reason otherwise.
  virtual double verify() = 0;
  virtual double time() = 0;  // seconds of one run by the device's clock
};

struct TuneOptions {
  double budget_seconds = 10;
  int rounds = 7;  // timed runs of a candidate; the median counts
  double give_up_factor =
      1.5;  // a candidate this much slower than the best after two runs is not timed further
};

using MakeTrial = std::function<std::unique_ptr<Trial>(const Candidate&)>;

// Never throws for a failing candidate: failures are measurements with their reason. `best` is
// empty if none passed.
TuneReport tune(const Problem& problem, const std::vector<Candidate>& candidates,
                const MakeTrial& make, const TuneOptions& options, const EventSink& progress);

}  // namespace tessera::selection
