// SPDX-License-Identifier: Apache-2.0
#include "conformance/probe.hpp"

#include <algorithm>
#include <cmath>

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

bool ReadProbe::possible(const Context& context) { return Prober(context).cpu_style(); }

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

double ReadProbe::bytes_per_second() const {
  std::vector<double> sorted = seconds_;
  std::ranges::sort(sorted);
  return blocks_ * kBlock / sorted.at(sorted.size() / 2);
}

}  // namespace tessera::conformance
