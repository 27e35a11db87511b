// SPDX-License-Identifier: Apache-2.0
// The autotuner: right first, then fast. It knows nothing of devices; a Trial runs one candidate.
//
// All candidates are checked before any is timed: while the host checks, a device falls asleep.
// Then the device is warmed up, and the candidates are timed in turns, so that all of them meet the
// same clock.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/system/timing.hpp"
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
      1.5;  // a candidate this much slower than the best after two rounds is not timed further
  WarmUp warm_up{};
  WallClock now = wall_seconds;
  std::function<double()> clock_mhz{};  // of the device, while it is timed; empty = unknown
};

using MakeTrial = std::function<std::unique_ptr<Trial>(const Candidate&)>;

// How the failures of candidates begin that the tuner did not come to.
inline constexpr std::string_view kNotTried = "not tried: ";

// Never throws for a failing candidate: failures are measurements with their reason. `best` is
// empty if none passed.
TuneReport tune(const Problem& problem, const std::vector<Candidate>& candidates,
                const MakeTrial& make, const TuneOptions& options, const EventSink& progress);

}  // namespace tessera::selection
