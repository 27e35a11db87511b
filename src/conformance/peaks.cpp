// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/log.hpp"
#include "conformance/conformance.hpp"
#include "kernel/sources.hpp"
#include "operations/probe/args.h"
#include "runtime/context_state.hpp"
#include "tessera/error.hpp"

namespace tessera::conformance {
namespace {

constexpr int kRounds = 5;
constexpr double kEnoughSeconds = 0.02;  // a launch this long hides what starting it costs

// One probe kernel, as this device runs it best.
struct Probe {
  device::ProgramPtr program;
  Dim3 groups, group;
};

class PeakMeter {
 public:
  explicit PeakMeter(const Context& context)
      : state_(*context.state()), profile_(context.device()) {
    cpu_style_ = profile_.backend == Backend::kOpenCL && is_cpu(profile_);
    const std::uint32_t units = std::max(profile_.compute_units, 1U);
    group_.x = cpu_style_
                   ? 1
                   : std::min(std::max(profile_.max_group_size, 1U), is_cpu(profile_) ? 32U : 256U);
    // Enough work-groups to fill any device; a CPU wants a few for each of its cores.
    groups_.x = is_cpu(profile_) ? 8 * units : 4096;
  }

  double fma_flops() {
    return flops(build("probe/fma_peak", cpu_style_ ? "fma_peak_cpu" : "fma_peak", 1,
                       sizeof(abi::FmaPeakArgs)),
                 cpu_style_ ? 192.0 * vector_width() : 1024.0);
  }

  double bf16_dot_flops() {
    if (!has(profile_.features, Feature::kCpuBf16Dot)) return 0;
    return flops(build("probe/bf16_dot", "bf16_dot", 1, sizeof(abi::FmaPeakArgs)), 6144);
  }

  double copy_bytes_per_second() {
    const Probe probe =
        build("probe/copy", cpu_style_ ? "copy_cpu" : "copy", 2, sizeof(abi::CopyArgs));
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

  std::uint32_t vector_width() const {
    const std::uint32_t width = profile_.native_float_width;
    return width >= 16 ? 16 : width >= 8 ? 8 : 4;
  }

  Probe build(const std::string& file, const std::string& entry, std::uint32_t bindings,
              std::uint32_t argument_bytes) {
    device::ProgramRequest request;
    request.name = entry;
    request.group = group_;
    request.bindings = bindings;
    request.argument_bytes = argument_bytes;
    if (profile_.backend == Backend::kOpenCL) {
      request.entry = entry;
      request.source = kernel::flatten(file + ".cl");
      request.defines = {
          {"WG_X", group_.x}, {"WG_Y", 1}, {"WG_Z", 1}, {"VECTOR_WIDTH", vector_width()}};
    } else {
      const kernel::ModuleLookup module =
          kernel::find_module(kernel::module_name(file + ".comp", {}));
      if (module.words.empty()) throw BuildError(module.why_not);
      request.entry = "main";
      request.spirv = module.words;
    }
    return {.program = state_.programs().build(request), .groups = groups_, .group = group_};
  }

  // Shortest of several launches, in seconds: the limit is what the device can do, not what it does
  // on average.
  double best(const Probe& probe, const std::vector<device::BufferPtr>& buffers,
              const std::vector<std::byte>& args, int rounds) {
    double shortest = 1e300;
    for (int round = 0; round < rounds; ++round) {
      shortest = std::min(shortest, state_.default_stream()->use([&](device::Stream& stream) {
        return stream.time([&] {
          stream.launch({.program = probe.program.get(),
                         .buffers = buffers,
                         .arguments = args,
                         .groups = probe.groups,
                         .group = probe.group});
        });
      }));
    }
    return shortest;
  }

  runtime::ContextState& state_;
  const DeviceProfile& profile_;
  bool cpu_style_ = false;
  Dim3 group_, groups_;
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
