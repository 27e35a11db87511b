// SPDX-License-Identifier: Apache-2.0
// A device that saves power, with a clock of its own: nobody has to wait for it.
#pragma once

namespace tessera::testing {

class WakingDevice {
 public:
  // What a run takes that takes `seconds` at full speed.
  double run(double seconds) {
    if (now_ - idle_since_ > kAsleepAfter) load_since_ = now_;
    const double took = awake() ? seconds : kSlower * seconds;
    now_ += took;
    idle_since_ = now_;
    return took;
  }
  void idle(double seconds) { now_ += seconds; }
  double now() const { return now_; }
  double megahertz() const { return awake() ? 1980 : 345; }

 private:
  static constexpr double kSlower = 1980.0 / 345;
  static constexpr double kAwakeAfter = 0.6;  // of load
  static constexpr double kAsleepAfter = 0.1;

  bool awake() const { return now_ - load_since_ >= kAwakeAfter; }

  double now_ = 100, load_since_ = 100, idle_since_ = 0;
};

}  // namespace tessera::testing
