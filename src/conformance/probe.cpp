// SPDX-License-Identifier: Apache-2.0
#include "conformance/probe.hpp"

#include <algorithm>
#include <cmath>

#include "base/system/timing.hpp"
#include "kernel/sources.hpp"
#include "operations/probe/args.h"
#include "tessera/error.hpp"

namespace tessera::conformance {
namespace {

constexpr double kBlock = 64;  // bytes
// What is read between two calls. Last caches keep what was used twice before what was used once:
// after 64 MiB one of 32 MiB still held a good part of a call's operands.
constexpr double kCaches = 256 << 20;
constexpr double kBuffer = 2 * kCaches;
constexpr std::uint32_t kMostWindows = 256;  // between two calls
constexpr std::uint32_t kMostIterations = 1U << 24;

}  // namespace

Prober::Prober(const Context& context)
    : state_(*context.state()),
      profile_(context.device()),
      cpu_style_(profile_.backend == Backend::kOpenCL && is_cpu(profile_)) {
  const std::uint32_t units = std::max(profile_.compute_units, 1U);
  group_.x = cpu_style_
                 ? 1
                 : std::min(std::max(profile_.max_group_size, 1U), is_cpu(profile_) ? 32U : 256U);
  // Enough work-groups to fill any device; a CPU wants a few for each of its cores.
  groups_.x = is_cpu(profile_) ? 8 * units : 4096;
}

std::uint32_t Prober::vector_width() const {
  const std::uint32_t width = profile_.native_float_width;
  return width >= 16 ? 16 : width >= 8 ? 8 : 4;
}

Probe Prober::build(const std::string& file, const std::string& entry, std::uint32_t bindings,
                    std::uint32_t argument_bytes) const {
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

double Prober::seconds(const Probe& probe, const std::vector<device::BufferPtr>& buffers,
                       const std::vector<std::byte>& args) const {
  return state_.default_stream()->use([&](device::Stream& stream) {
    return stream.time([&] {
      stream.launch({.program = probe.program.get(),
                     .buffers = buffers,
                     .arguments = args,
                     .groups = probe.groups,
                     .group = probe.group});
    });
  });
}

bool measured_in_turns(const Context& context) { return Prober(context).cpu_style(); }

ArithmeticProbe::ArithmeticProbe(const Context& context, Arithmetic arithmetic,
                                 double least_seconds)
    : prober_(context) {
  double flops = 0;  // of an item and iteration
  if (arithmetic == Arithmetic::kBf16Dot) {
    probe_ = prober_.build("probe/bf16_dot", "bf16_dot", 1, sizeof(abi::FmaPeakArgs));
    flops = 6144;
  } else if (prober_.cpu_style()) {
    probe_ = prober_.build("probe/fma_peak", "fma_peak_cpu", 1, sizeof(abi::FmaPeakArgs));
    flops = 192.0 * prober_.vector_width();
  } else {
    probe_ = prober_.build("probe/fma_peak", "fma_peak", 1, sizeof(abi::FmaPeakArgs));
    flops = 1024;
  }
  const std::uint64_t items = std::uint64_t{probe_.groups.x} * probe_.group.x;
  sink_ = {context.state()->create_buffer(items * sizeof(float))};
  flops_per_iteration_ = static_cast<double>(items) * flops;
  while (measure() < least_seconds && iterations_ < kMostIterations) iterations_ *= 4;
  seconds_.clear();  // the shorter ones, and the first
}

double ArithmeticProbe::measure() {
  const auto args = argument_bytes(abi::FmaPeakArgs{.iterations = iterations_});
  return seconds_.emplace_back(prober_.seconds(probe_, sink_, args));
}

double ArithmeticProbe::best() const {
  return flops_per_iteration_ * iterations_ / std::ranges::min(seconds_);
}

double ArithmeticProbe::median() const {
  return flops_per_iteration_ * iterations_ / median_of(seconds_);
}

ReadProbe::ReadProbe(const Context& context, double bytes) : prober_(context) {
  probe_ = prober_.build("probe/read", "read_cpu", 2, sizeof(abi::ReadArgs));
  double held = std::max(kBuffer, 4 * bytes);
  if (const auto most = static_cast<double>(context.device().max_allocation); most > 0)
    held = std::min(held, most / 2);
  bytes = std::clamp(bytes, kBlock, held);
  blocks_ = static_cast<std::uint32_t>(bytes / kBlock);
  windows_ = static_cast<std::uint32_t>(held / (blocks_ * kBlock));
  const std::uint64_t size = std::uint64_t{windows_} * blocks_ * static_cast<std::uint64_t>(kBlock);
  runtime::ContextState& state = *context.state();
  buffers_ = {state.create_buffer(size), state.create_buffer(probe_.groups.x * sizeof(abi::u32))};
  state.default_stream()->use(
      [&](device::Stream& stream) { stream.fill(*buffers_[0], 0, size, 1); });
}

void ReadProbe::measure() {
  const double window = blocks_ * kBlock;
  const auto windows = static_cast<std::uint32_t>(std::ceil(kCaches / window));
  for (std::uint32_t n = 0; n < std::min(windows, kMostWindows); ++n) {
    const abi::ReadArgs args{.first = next_ * blocks_, .blocks = blocks_};
    seconds_.push_back(prober_.seconds(probe_, buffers_, argument_bytes(args)));
    next_ = (next_ + 1) % windows_;
  }
}

double ReadProbe::bytes_per_second() const { return blocks_ * kBlock / median_of(seconds_); }

}  // namespace tessera::conformance
