// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <charconv>
#include <iterator>

#include "base/environment.hpp"
#include "device/device.hpp"
#include "tessera/error.hpp"

namespace tessera {
namespace {

struct Probed {
  Probe probe;
  std::vector<std::function<device::DevicePtr()>> openers;  // by device index
};

bool same_physical_device(const DeviceProfile& a, const DeviceProfile& b) {
  if (a.backend == Backend::kHost || b.backend == Backend::kHost) return false;
  if (!a.pci_address.empty() && a.pci_address == b.pci_address) return true;
  return !a.uuid.empty() && a.uuid == b.uuid;
}

// GPUs before CPUs, and a driver that runs native code for the device before one that emulates it.
int rank(const DeviceProfile& profile) {
  const bool software_vulkan = profile.backend == Backend::kVulkan && is_cpu(profile);
  switch (profile.kind) {
    case DeviceKind::kDiscreteGpu:
      return 0;
    case DeviceKind::kIntegratedGpu:
      return 1;
    case DeviceKind::kAccelerator:
      return 2;
    case DeviceKind::kCpu:
      return profile.backend == Backend::kHost ? 9 : software_vulkan ? 4 : 3;
    case DeviceKind::kOther:
      return 5;
  }
  return 8;
}

Probed probe_all() {
  Probed result;
  std::vector<device::PlatformProbe> platforms;
#if TESSERA_HAVE_OPENCL
  platforms.push_back(device::probe_opencl());
#endif
#if TESSERA_HAVE_VULKAN
  platforms.push_back(device::probe_vulkan());
#endif
  platforms.push_back(device::probe_host());
  for (device::PlatformProbe& platform : platforms) {
    for (device::Found& found : platform.found) {
      DeviceInfo info{.index = static_cast<int>(result.probe.devices.size()),
                      .profile = std::move(found.profile)};
      info.profile.features = without(info.profile.features, environment().disabled);
      result.probe.devices.push_back(std::move(info));
      result.openers.push_back(std::move(found.open));
    }
    std::ranges::move(platform.failures, std::back_inserter(result.probe.failures));
  }
  for (DeviceInfo& a : result.probe.devices) {
    for (const DeviceInfo& b : result.probe.devices) {
      if (a.index != b.index && same_physical_device(a.profile, b.profile))
        a.same_as.push_back(b.index);
    }
  }
  return result;
}

const Probed& probed() {
  static const Probed result = probe_all();
  return result;
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

bool matches(const DeviceInfo& device, const std::string& word) {
  int index = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), index);
  const bool number = error == std::errc() && end == word.data() + word.size();
  if (number && word.size() < 6) return index == device.index;
  const DeviceProfile& profile = device.profile;
  if (word == to_string(profile.backend) || word == to_string(profile.kind) || word == profile.uuid)
    return true;
  for (const Backend backend : {Backend::kOpenCL, Backend::kVulkan, Backend::kHost}) {
    if (word == to_string(backend)) return false;
  }
  for (const DeviceKind kind : {DeviceKind::kDiscreteGpu, DeviceKind::kIntegratedGpu,
                                DeviceKind::kCpu, DeviceKind::kAccelerator, DeviceKind::kOther}) {
    if (word == to_string(kind)) return false;
  }
  return lower(profile.name).find(word) != std::string::npos;
}

}  // namespace

const Probe& probe_devices() { return probed().probe; }

std::vector<DeviceInfo> select_devices(const Probe& probe, std::string_view selector) {
  std::vector<DeviceInfo> chosen = probe.devices;
  if (selector.empty()) {
    std::erase_if(
        chosen, [](const DeviceInfo& device) { return device.profile.backend == Backend::kHost; });
  }
  std::string rest = lower(selector);
  while (!rest.empty()) {
    const std::size_t colon = rest.find(':');
    const std::string word = rest.substr(0, colon);
    rest = colon == std::string::npos ? "" : rest.substr(colon + 1);
    if (!word.empty())
      std::erase_if(chosen, [&](const DeviceInfo& device) { return !matches(device, word); });
  }
  // The reference answers to a kind or a name only when nothing else does.
  const auto is_host = [](const DeviceInfo& device) {
    return device.profile.backend == Backend::kHost;
  };
  if (!std::ranges::all_of(chosen, is_host) && lower(selector).find("host") == std::string::npos) {
    std::erase_if(chosen, is_host);
  }
  std::ranges::stable_sort(chosen, {},
                           [](const DeviceInfo& device) { return rank(device.profile); });
  return chosen;
}

namespace device {

DevicePtr open_device(int index) { return probed().openers.at(static_cast<std::size_t>(index))(); }

}  // namespace device
}  // namespace tessera
