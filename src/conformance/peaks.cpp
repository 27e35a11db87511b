// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/system/log.hpp"
#include "conformance/conformance.hpp"
#include "conformance/probe.hpp"
#include "device/clock.hpp"
#include "operations/probe/args.h"
#include "runtime/context_state.hpp"
#include "tessera/error.hpp"

namespace tessera::conformance {
namespace {

// The shortest of these counts: the limit is what the device can do, not what it does on average.
constexpr int kRounds = 5;
constexpr double kEnoughSeconds = 0.02;  // a launch this long hides what starting it costs

void wake_up(const Context& context) {
  ArithmeticProbe probe(context, Arithmetic::kFma, kEnoughSeconds);
  warm_up(
      device::warm_up_of(context.device()), [&] { return probe.measure(); }, wall_seconds);
}

double arithmetic_peak(const Context& context, Arithmetic arithmetic) {
  ArithmeticProbe probe(context, arithmetic, kEnoughSeconds);
  for (int round = 0; round < kRounds; ++round) probe.measure();
  return probe.best();
}

double copy_peak(const Context& context) {
  const Prober prober(context);
  const Probe probe = prober.build("probe/copy", prober.cpu_style() ? "copy_cpu" : "copy", 2,
                                   sizeof(abi::CopyArgs));
  const DeviceProfile& profile = context.device();
  std::uint64_t bytes = is_gpu(profile) ? std::uint64_t{1} << 30 : std::uint64_t{64} << 20;
  for (const std::uint64_t limit : {profile.max_allocation, profile.max_binding}) {
    if (limit != 0) bytes = std::min(bytes, limit / 2);
  }
  const auto blocks = static_cast<std::uint32_t>(bytes / 64);
  bytes = std::uint64_t{blocks} * 64;
  runtime::ContextState& state = *context.state();
  const std::vector<device::BufferPtr> buffers{state.create_buffer(bytes),
                                               state.create_buffer(bytes)};
  state.default_stream()->use(
      [&](device::Stream& stream) { stream.fill(*buffers[0], 0, bytes, 1); });
  const auto args = argument_bytes(abi::CopyArgs{.blocks = blocks});
  prober.seconds(probe, buffers, args);
  double shortest = 1e300;
  for (int round = 0; round < kRounds; ++round)
    shortest = std::min(shortest, prober.seconds(probe, buffers, args));
  return 2.0 * static_cast<double>(bytes) / shortest;
}

}  // namespace

Peaks measure_peaks(const Context& context) {
  if (context.device().backend == Backend::kHost) return {};
  try {
    wake_up(context);
    return {.fma_flops = arithmetic_peak(context, Arithmetic::kFma),
            .copy_bytes_per_second = copy_peak(context),
            .bf16_dot_flops = has(context.device().features, Feature::kCpuBf16Dot)
                                  ? arithmetic_peak(context, Arithmetic::kBf16Dot)
                                  : 0};
  } catch (const BuildError& error) {
    log(LogLevel::kWarning, "the device's peaks can't be measured: " + std::string(error.what()));
    return {};
  }
}

}  // namespace tessera::conformance
