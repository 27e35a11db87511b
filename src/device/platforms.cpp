// SPDX-License-Identifier: Apache-2.0
#include "device/platforms.hpp"

#include <algorithm>
#include <iterator>

#include "base/printable.hpp"
#include "base/system/out_of_memory.hpp"
#include "device/quirks.hpp"
#include "device/selector_words.hpp"

namespace tessera {
namespace device {
namespace {

PlatformProbe not_built(std::string_view name) {
  return {.found = {}, .failures = {{std::string(name), "this build of Tessera lacks it"}}};
}

PlatformProbe ask_driver(Backend platform) {
  switch (platform) {
#if TESSERA_HAVE_OPENCL
    case Backend::kOpenCL:
      return probe_opencl();
#endif
#if TESSERA_HAVE_VULKAN
    case Backend::kVulkan:
      return probe_vulkan();
#endif
    case Backend::kHost:
      return probe_host();
    default:
      return not_built(to_string(platform));
  }
}

bool same_physical_device(const DeviceProfile& a, const DeviceProfile& b) {
  if (a.backend == Backend::kHost || b.backend == Backend::kHost) return false;
  if (!a.pci_address.empty() && a.pci_address == b.pci_address) return true;
  return !a.uuid.empty() && a.uuid == b.uuid;
}

void note_same_devices(Probe& probe) {
  for (DeviceInfo& a : probe.devices) {
    for (const DeviceInfo& b : probe.devices) {
      if (a.index != b.index && same_physical_device(a.profile, b.profile))
        a.same_as.push_back(b.index);
    }
  }
}

}  // namespace

void settle(DeviceProfile& profile) {
  profile.features = without(profile.features, withheld_features(profile));
  for (std::string* text :
       {&profile.name, &profile.vendor, &profile.driver, &profile.api_version, &profile.compiler}) {
    *text = printable(*text);
  }
}

Platforms& Platforms::of_this_process() {
  static auto* const platforms = new Platforms(ask_driver);  // never destroyed: calls come at exit
  return *platforms;
}

const PlatformProbe& Platforms::answer(Backend platform) {
  const auto at = std::ranges::find(kPlatforms, platform) - kPlatforms.begin();
  Answer& answer = answers_.at(static_cast<std::size_t>(at));
  const std::lock_guard lock(answer.mutex);
  if (!answer.probe) {
    PlatformProbe probe = ask_(platform);
    for (Found& found : probe.found) settle(found.profile);
    for (ProbeFailure& failure : probe.failures) {
      failure.where = printable(failure.where);
      failure.why = printable(failure.why);
    }
    answer.probe = std::move(probe);
  }
  return *answer.probe;
}

PartialProbe Platforms::probe(std::string_view selector) try {
  std::optional<Backend> named;
  std::optional<int> counted;
  for (const std::string& word : selector_words(selector)) {
    if (!named) named = as_platform(word);
    if (!counted) counted = as_index(word);
  }
  PartialProbe result;
  for (const Backend platform : kPlatforms) {
    // An index needs all platforms before the device, and none after it.
    const bool counted_far_enough =
        counted && *counted >= 0 && *counted < static_cast<int>(result.probe.devices.size());
    const bool wanted = counted ? !counted_far_enough : !named || *named == platform;
    if (!wanted) {
      result.not_asked.push_back(platform);
      continue;
    }
    result.global_indices = result.global_indices && result.not_asked.empty();
    const PlatformProbe& answered = answer(platform);
    for (std::size_t position = 0; position < answered.found.size(); ++position) {
      result.probe.devices.push_back({.index = static_cast<int>(result.probe.devices.size()),
                                      .profile = answered.found[position].profile});
      result.routes.push_back({platform, position});
    }
    std::ranges::copy(answered.failures, std::back_inserter(result.probe.failures));
  }
  note_same_devices(result.probe);
  return result;
} catch (...) {
  rethrow_as_error();
}

const Probe& Platforms::all() try {
  std::call_once(all_once_, [&] { all_ = probe({}).probe; });
  return all_;
} catch (...) {
  rethrow_as_error();
}

int Platforms::index_of(const Route& route) {
  std::size_t index = route.position;
  for (const Backend platform : kPlatforms) {
    if (platform == route.platform) break;
    index += answer(platform).found.size();
  }
  return static_cast<int>(index);
}

}  // namespace device

const Probe& probe_devices() try {
  return device::Platforms::of_this_process().all();
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
