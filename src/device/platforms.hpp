// SPDX-License-Identifier: Apache-2.0
// Which platforms are asked for their devices. Starting a driver takes tens of milliseconds, and a
// broken one may take the process with it, so a driver is started when a selector leaves its
// devices in the running, and not before.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.hpp"

namespace tessera::device {

// In the order of device indices.
inline constexpr std::array kPlatforms{Backend::kOpenCL, Backend::kVulkan, Backend::kHost};

// A device as one of those of its platform.
struct Route {
  Backend platform = Backend::kHost;
  std::size_t position = 0;
  friend bool operator==(const Route&, const Route&) = default;
};

// What some of the platforms said. The indices of `probe` count its own devices; they are those of
// probe_devices() if `global_indices`.
struct PartialProbe {
  Probe probe;
  std::vector<Route> routes;  // by index in `probe`
  std::vector<Backend> not_asked;
  bool global_indices = true;
};

// What the library goes by, of what a driver says: without the features that are withheld, and as
// text that can be printed.
void settle(DeviceProfile& profile);

// Asks each platform once, when it is first needed. Thread-safe.
class Platforms {
 public:
  using Ask = std::function<PlatformProbe(Backend)>;
  explicit Platforms(Ask ask) : ask_(std::move(ask)) {}
  static Platforms& of_this_process();

  // Every platform that may have a device that `selector` names: the one that it names, as many as
  // it takes to count to an index, or all. select_devices() finds the same in the result as in
  // all().
  PartialProbe probe(std::string_view selector);
  const Probe& all();
  // As in all(). Asks the platforms that come before.
  int index_of(const Route& route);
  const Found& at(const Route& route) { return answer(route.platform).found.at(route.position); }

 private:
  const PlatformProbe& answer(Backend platform);

  struct Answer {
    std::mutex mutex;
    std::optional<PlatformProbe> probe;
  };
  Ask ask_;
  std::array<Answer, kPlatforms.size()> answers_;
  std::once_flag all_once_;
  Probe all_;
};

}  // namespace tessera::device
