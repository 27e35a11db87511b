// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/log.hpp"
#include "conformance/conformance.hpp"
#include "conformance/probe.hpp"
#include "operations/probe/args.h"
#include "runtime/context_state.hpp"
#include "tessera/error.hpp"

namespace tessera::conformance {
namespace {

constexpr int kRounds = 5;
constexpr double kEnoughSeconds = 0.02;  // a launch this long hides what starting it costs

class PeakMeter {
 public:
  explicit PeakMeter(const Context& context)
      : state_(*context.state()), profile_(context.device()), prober_(context) {}

  double fma_flops() {
    return flops(prober_.build("probe/fma_peak", prober_.cpu_style() ? "fma_peak_cpu" : "fma_peak",
                               1, sizeof(abi::FmaPeakArgs)),
                 prober_.cpu_style() ? 192.0 * prober_.vector_width() : 1024.0);
  }

  double bf16_dot_flops() {
    if (!has(profile_.features, Feature::kCpuBf16Dot)) return 0;
    return flops(prober_.build("probe/bf16_dot", "bf16_dot", 1, sizeof(abi::FmaPeakArgs)), 6144);
  }

  double copy_bytes_per_second() {
    const Probe probe = prober_.build("probe/copy", prober_.cpu_style() ? "copy_cpu" : "copy", 2,
                                      sizeof(abi::CopyArgs));
    std::uint64_t bytes = is_gpu(profile_) ? std::uint64_t{1} << 30 : std::uint64_t{64} << 20;
    for (const std::uint64_t limit : {profile_.max_allocation, profile_.max_binding}) {
      if (limit != 0) bytes = std::min(bytes, limit / 2);
    }
    const auto blocks = static_cast<std::uint32_t>(bytes / 64);
    bytes = std::uint64_t{blocks} * 64;
    const std::vector<device::BufferPtr> buffers{state_.create_buffer(bytes),
                                                 state_.create_buffer(bytes)};
    state_.default_stream()->use(
        [&](device::Stream& stream) { stream.fill(*buffers[0], 0, bytes, 1); });
    const auto args = argument_bytes(abi::CopyArgs{.blocks = blocks});
    best(probe, buffers, args, 1);
    return 2.0 * static_cast<double>(bytes) / best(probe, buffers, args, kRounds);
  }

 private:
  double flops(const Probe& probe, double per_item_and_iteration) {
    const std::uint64_t items = std::uint64_t{probe.groups.x} * probe.group.x;
    const std::vector<device::BufferPtr> sink{state_.create_buffer(items * sizeof(float))};
    const double flops_per_iteration = static_cast<double>(items) * per_item_and_iteration;
    // Grow the loop until one launch takes long enough to be timed.
    for (std::uint32_t iterations = 64;; iterations *= 4) {
      const auto args = argument_bytes(abi::FmaPeakArgs{.iterations = iterations});
      if (const double seconds = best(probe, sink, args, 1);
          seconds < kEnoughSeconds && iterations < (1U << 24))
        continue;
      return flops_per_iteration * iterations / best(probe, sink, args, kRounds);
    }
  }

  // Shortest of several launches, in seconds: the limit is what the device can do, not what it does
  // on average.
  double best(const Probe& probe, const std::vector<device::BufferPtr>& buffers,
              const std::vector<std::byte>& args, int rounds) {
    double shortest = 1e300;
    for (int round = 0; round < rounds; ++round)
      shortest = std::min(shortest, prober_.seconds(probe, buffers, args));
    return shortest;
  }

  runtime::ContextState& state_;
  const DeviceProfile& profile_;
  Prober prober_;
};

}  // namespace

Peaks measure_peaks(const Context& context) {
  if (context.device().backend == Backend::kHost) return {};
  try {
    PeakMeter meter(context);
    return {.fma_flops = meter.fma_flops(),
            .copy_bytes_per_second = meter.copy_bytes_per_second(),
            .bf16_dot_flops = meter.bf16_dot_flops()};
  } catch (const BuildError& error) {
    log(LogLevel::kWarning, "the device's peaks can't be measured: " + std::string(error.what()));
    return {};
  }
}

}  // namespace tessera::conformance
