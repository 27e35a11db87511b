// SPDX-License-Identifier: Apache-2.0
#include "device/clock.hpp"

#include <dlfcn.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/system/timing.hpp"

namespace tessera::device {
namespace {

constexpr std::uint32_t kNvidia = 0x10DE;

// What is needed of NVIDIA's management library (NVML), as its documentation describes it.
class Nvml {
 public:
  using Device = void*;

  static const Nvml& of_this_process() {
    static const Nvml nvml;
    return nvml;
  }

  // Null = not found.
  Device find(const DeviceProfile& profile) const {
    Device device = nullptr;
    if (clock_ == nullptr) return nullptr;
    if (by_address_ != nullptr && !profile.pci_address.empty() &&
        by_address_(profile.pci_address.c_str(), &device) == kSuccess) {
      return device;
    }
    const std::string uuid = uuid_text(profile.uuid);
    if (by_uuid_ != nullptr && !uuid.empty() && by_uuid_(uuid.c_str(), &device) == kSuccess)
      return device;
    return nullptr;
  }

  double megahertz(Device device) const {
    unsigned int clock = 0;
    return clock_(device, kProcessorClock, &clock) == kSuccess ? clock : 0;
  }

 private:
  static constexpr int kSuccess = 0;
  static constexpr int kProcessorClock = 1;  // of the streaming multiprocessors

  // The library stays loaded and initialised: it has threads of its own.
  Nvml() {
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    const auto start = reinterpret_cast<int (*)()>(dlsym(library, "nvmlInit_v2"));
    if (start == nullptr || start() != kSuccess) return;
    by_address_ = reinterpret_cast<Find>(dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2"));
    by_uuid_ = reinterpret_cast<Find>(dlsym(library, "nvmlDeviceGetHandleByUUID"));
    clock_ = reinterpret_cast<Clock>(dlsym(library, "nvmlDeviceGetClockInfo"));
  }

  // "GPU-01234567-89ab-cdef-0123-456789abcdef" of 32 digits.
  static std::string uuid_text(const std::string& digits) {
    if (digits.size() != 32) return {};
    std::string text = "GPU";
    std::size_t at = 0;
    for (const std::size_t length : {8, 4, 4, 4, 12}) {
      text += '-' + digits.substr(at, length);
      at += length;
    }
    return text;
  }

  using Find = int (*)(const char*, Device*);
  using Clock = int (*)(Device, int, unsigned int*);
  Find by_address_ = nullptr;
  Find by_uuid_ = nullptr;
  Clock clock_ = nullptr;
};

double number(std::string_view text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value > 0 ? value : 0;
}

}  // namespace

double cpu_megahertz(const std::string& system, const std::string& cpuinfo) {
  namespace fs = std::filesystem;
  std::vector<double> clocks;
  std::error_code ignored;
  for (fs::directory_iterator at(system, ignored), end; !ignored && at != end;
       at.increment(ignored)) {
    std::string kilohertz;
    std::getline(std::ifstream(at->path() / "cpufreq" / "scaling_cur_freq"), kilohertz);
    if (const double clock = number(kilohertz) / 1000; clock > 0) clocks.push_back(clock);
  }
  if (clocks.empty()) {
    std::ifstream file(cpuinfo);
    for (std::string line; std::getline(file, line);) {
      if (!line.starts_with("cpu MHz")) continue;
      const std::size_t digits = line.find_first_of("0123456789");
      if (digits == std::string::npos) continue;
      if (const double clock = number(std::string_view(line).substr(digits)); clock > 0)
        clocks.push_back(clock);
    }
  }
  return clocks.empty() ? 0 : median_of(std::move(clocks));
}

// Processors answer to load within milliseconds. An NVIDIA H200 reached through Vulkan left its
// 345 MHz after 0.2 s of full load; half busy it climbed in steps of 0.2 s, for 2 s.
WarmUp warm_up_of(const DeviceProfile& profile) {
  if (is_cpu(profile)) return {.window_seconds = 0.02, .least_seconds = 0, .most_seconds = 0.5};
  return {.window_seconds = 0.25, .least_seconds = 0.75, .most_seconds = 4};
}

std::function<double()> clock_reader(const DeviceProfile& profile) {
  if (is_cpu(profile)) {
    return [] { return cpu_megahertz("/sys/devices/system/cpu", "/proc/cpuinfo"); };
  }
  if (profile.vendor_id == kNvidia) {
    const Nvml& nvml = Nvml::of_this_process();
    if (Nvml::Device device = nvml.find(profile)) {
      return [&nvml, device] { return nvml.megahertz(device); };
    }
  }
  return [] { return 0.0; };
}

}  // namespace tessera::device
