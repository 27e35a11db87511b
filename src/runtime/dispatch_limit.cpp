// SPDX-License-Identifier: Apache-2.0
#include "runtime/dispatch_limit.hpp"

#include <algorithm>
#include <array>

namespace tessera::runtime {
namespace {

// As many launches are known at most: more, and their times are measured again.
constexpr std::size_t kMostKnown = 4096;
// How much longer than the one before a measured part may be expected to take.
constexpr double kGrowth = 8;

// Launches are cut along their longest axis.
struct Axis {
  std::uint32_t number = 0, length = 0;
};
Axis longest(const Dim3& grid) {
  const std::array lengths{grid.x, grid.y, grid.z};
  const auto at = std::ranges::max_element(lengths);
  return {static_cast<std::uint32_t>(at - lengths.begin()), *at};
}

std::uint32_t clamped(double slabs, std::uint32_t least, std::uint32_t most) {
  return static_cast<std::uint32_t>(std::clamp<double>(slabs, std::min(least, most), most));
}

std::string key_of(const device::Launch& launch, std::span<const std::byte> arguments) {
  std::string key;
  const auto add = [&](const auto& value) {
    key.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  add(launch.program);
  add(launch.groups);
  key.append(reinterpret_cast<const char*>(arguments.data()), arguments.size());
  return key;
}

}  // namespace

std::optional<double> DispatchLimit::known(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = slab_seconds_.find(key);
  return found == slab_seconds_.end() ? std::nullopt : std::optional(found->second);
}

void DispatchLimit::note(const std::string& key, double seconds) {
  const std::lock_guard lock(mutex_);
  if (slab_seconds_.size() >= kMostKnown) slab_seconds_.clear();
  slab_seconds_.insert_or_assign(key, seconds);
}

void DispatchLimit::launch(device::Stream& stream, const device::Launch& launch,
                           std::span<const std::byte> arguments, bool may_measure) {
  const double limit = seconds_;
  if (!(limit > 0)) return stream.launch(launch);  // a plan that was made when there was one
  const Axis axis = longest(launch.groups);
  const std::uint64_t in_slab =
      std::uint64_t{launch.groups.x} * launch.groups.y * launch.groups.z / axis.length;
  const auto least = static_cast<std::uint32_t>((units_ + in_slab - 1) / in_slab);
  const std::string key = key_of(launch, arguments);
  device::Launch part = launch;
  if (const auto slab = known(key)) {
    const std::uint32_t each = *slab > 0 ? clamped(limit / *slab, least, axis.length) : axis.length;
    if (each >= axis.length) return stream.launch(launch);
    for (std::uint32_t first = 0; first < axis.length; first += part.part.count) {
      part.part = {axis.number, first, std::min(each, axis.length - first)};
      stream.launch(part);
      stream.flush();
    }
    return;
  }
  if (!may_measure) return stream.launch(launch);
  double worst = 0;
  std::uint32_t largest = 0;
  for (std::uint32_t first = 0, count = std::min(least, axis.length); first < axis.length;) {
    part.part = {axis.number, first, count};
    const double slab = stream.time([&] { stream.launch(part); }) / count;
    // Few work-groups leave most of a device idle: the largest parts tell.
    if (count >= largest) worst = count > largest ? slab : std::max(worst, slab);
    largest = std::max(largest, count);
    first += count;
    const double fitting = slab > 0 ? limit / slab : axis.length;
    if (first < axis.length)
      count = clamped(std::min(fitting, kGrowth * count), least, axis.length - first);
  }
  note(key, worst);
}

}  // namespace tessera::runtime
