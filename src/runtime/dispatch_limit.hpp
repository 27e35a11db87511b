// SPDX-License-Identifier: Apache-2.0
// Launches in parts that take no longer than a caller allows.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "device/device.hpp"

namespace tessera::runtime {

// Of a context, shared by its streams. Thread-safe.
class DispatchLimit {
 public:
  // 0: launches are whole. A part has as many work-groups as the device has units, or more: fewer
  // take as long and leave units idle.
  void set(double seconds, std::uint32_t units) {
    units_ = std::max(units, 1U);
    seconds_ = seconds;
  }
  bool is_set() const { return seconds_ > 0; }
  // Launches all of it. The first launch of a program with these arguments on this grid is measured
  // on the way, if it may be: it is made in growing parts that are waited for. Later ones go by
  // what that found. Where nothing is known and nothing may be measured it is whole. `arguments`:
  // of the plan, as those of the launch also say where the call's errors go.
  void launch(device::Stream& stream, const device::Launch& launch,
              std::span<const std::byte> arguments, bool may_measure);

 private:
  std::optional<double> known(const std::string& key);
  void note(const std::string& key, double seconds);

  std::atomic<double> seconds_{0};
  std::atomic<std::uint32_t> units_{1};
  std::mutex mutex_;
  std::map<std::string, double> slab_seconds_;  // the longest of one work-group along the axis
};

}  // namespace tessera::runtime
