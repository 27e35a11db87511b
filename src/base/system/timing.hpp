// SPDX-License-Identifier: Apache-2.0
// Times of devices whose speed changes: clocks rise only under load, of some devices for seconds,
// and fall again when there is little to do.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

namespace tessera {

// Of at least one value.
inline double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// (90th - 10th percentile) / median, of at least one value.
inline double spread_of(std::vector<double> values) {
  std::ranges::sort(values);
  const auto quantile = [&](double q) {
    return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
  };
  const double median = median_of(values);
  return median > 0 ? (quantile(0.9) - quantile(0.1)) / median : 0;
}

// A time that varies by more says little, and is marked where it is shown.
inline constexpr double kWideSpread = 0.1;

// Seconds since some moment, by the wall.
using WallClock = std::function<double()>;
inline double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// How many runs that take `seconds` each are worth a millisecond: next to it, the moment in which a
// device waits for what comes next is short. GPUs choose their clock by how busy they are. An H200
// that ran 37 us and waited 70 settled at 1425 of 1980 MHz, one that waited 5 ms at 500.
inline int busy_runs(double seconds) {
  constexpr double kEnough = 1e-3, kMost = 64;
  return seconds > 0 ? static_cast<int>(std::min(kEnough / seconds, kMost)) : 0;
}

// How long a device works before it is timed.
struct WarmUp {
  double window_seconds = 0.02;  // by the wall, like all of them
  double least_seconds = 0;
  double most_seconds = 1;
};

// Calls `run`, which returns the seconds that it took, for one window after the other, until the
// medians of two in a row agree within 3 %; false when the longest time was over before. One run
// that takes the longest time is enough.
inline bool warm_up(const WarmUp& limits, const std::function<double()>& run,
                    const WallClock& now) {
  constexpr double kAgreement = 0.03;
  const double start = now();
  for (std::optional<double> before;;) {
    const double window = now();
    std::vector<double> runs;
    do {
      runs.push_back(run());
    } while (now() - window < limits.window_seconds);
    const double median = median_of(std::move(runs));
    const double passed = now() - start;
    const bool agree =
        before && std::max(median, *before) <= (1 + kAgreement) * std::min(median, *before);
    if (agree && passed >= limits.least_seconds) return true;
    if (!(passed < limits.most_seconds)) return !before;
    before = median;
  }
}

}  // namespace tessera
