// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/system/out_of_memory.hpp"
#include "device/selector_words.hpp"
#include "tessera/device.hpp"

namespace tessera {
namespace device {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
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

bool names_a_kind(std::string_view word) {
  for (const DeviceKind kind : {DeviceKind::kDiscreteGpu, DeviceKind::kIntegratedGpu,
                                DeviceKind::kCpu, DeviceKind::kAccelerator, DeviceKind::kOther}) {
    if (word == to_string(kind)) return true;
  }
  return false;
}

bool matches(const DeviceInfo& device, const std::string& word) {
  if (const auto index = as_index(word)) return *index == device.index;
  const DeviceProfile& profile = device.profile;
  if (word == to_string(profile.backend) || word == to_string(profile.kind) || word == profile.uuid)
    return true;
  if (as_platform(word) || names_a_kind(word)) return false;
  return lower(profile.name).find(word) != std::string::npos;
}

}  // namespace

std::vector<std::string> selector_words(std::string_view selector) {
  std::vector<std::string> words;
  std::string rest = lower(selector);
  while (!rest.empty()) {
    const std::size_t colon = rest.find(':');
    if (colon != 0) words.push_back(rest.substr(0, colon));
    rest = colon == std::string::npos ? "" : rest.substr(colon + 1);
  }
  return words;
}

std::optional<int> as_index(std::string_view word) {
  int index = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), index);
  const bool number = error == std::errc() && end == word.data() + word.size();
  // Longer numbers are parts of names and UUIDs.
  if (!number || word.size() >= 6) return std::nullopt;
  return index;
}

std::optional<Backend> as_platform(std::string_view word) {
  for (const Backend platform : {Backend::kOpenCL, Backend::kVulkan, Backend::kHost}) {
    if (word == to_string(platform)) return platform;
  }
  return std::nullopt;
}

}  // namespace device

std::vector<DeviceInfo> select_devices(const Probe& probe, std::string_view selector) try {
  const std::vector<std::string> words = device::selector_words(selector);
  const auto is_host = [](const DeviceInfo& info) {
    return info.profile.backend == Backend::kHost;
  };
  std::vector<DeviceInfo> chosen = probe.devices;
  if (selector.empty()) std::erase_if(chosen, is_host);
  for (const std::string& word : words)
    std::erase_if(chosen, [&](const DeviceInfo& info) { return !device::matches(info, word); });
  // The reference answers to a kind or a name only when nothing else does.
  if (!std::ranges::all_of(chosen, is_host) &&
      device::lower(selector).find("host") == std::string::npos) {
    std::erase_if(chosen, is_host);
  }
  std::ranges::stable_sort(chosen, {},
                           [](const DeviceInfo& info) { return device::rank(info.profile); });
  return chosen;
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
