// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include "base/large_registers.hpp"
#include "base/tensors/byte_range.hpp"
#include "base/tensors/checked.hpp"
#include "kernel/sources.hpp"
#include "kernel/steps.hpp"
#include "selection/heuristics.hpp"
#include "selection/selector.hpp"

namespace tessera::selection {
namespace {

// Larger tunables are nonsense, and their products would wrap around in a record's 32-bit
// arithmetic.
constexpr std::uint32_t kMaxTunable = 1U << 20;

constexpr std::array<std::string_view, 3> kGroupNames{"WG_X", "WG_Y", "WG_Z"};

template <class Range, class Name>
std::string join(const Range& items, Name name) {
  std::string text;
  for (const auto& item : items) {
    if (!text.empty()) text += ", ";
    text += name(item);
  }
  return text;
}

std::string in_quotes(std::string_view text) { return "'" + std::string(text) + "'"; }

Refusal unmet_requirement(const Problem& problem, const Variant& variant,
                          const DeviceProfile& profile) {
  const Requirements& needs = variant.needs;
  const auto text = [](auto value) { return std::string(to_string(value)); };
  if (!needs.backends.empty() && std::ranges::count(needs.backends, profile.backend) == 0) {
    return "runs through " + join(needs.backends, text) +
           " only, and this device is reached through " + text(profile.backend);
  }
  if (!needs.kinds.empty() && std::ranges::count(needs.kinds, profile.kind) == 0) {
    return "is made for devices of kind " + join(needs.kinds, text) + ", and this one is of kind " +
           text(profile.kind);
  }
  if (needs.vendor_id != 0 && needs.vendor_id != profile.vendor_id) {
    return "is made for devices of vendor id " + std::to_string(needs.vendor_id) +
           ", and this one has " + std::to_string(profile.vendor_id);
  }
  if (!has(profile.features, needs.features)) {
    std::vector<FeatureName> missing;
    for (const FeatureName& known : feature_names()) {
      if (has(needs.features, known.feature) && !has(profile.features, known.feature))
        missing.push_back(known);
    }
    return "needs " +
           join(missing, [](const FeatureName& known) { return std::string(known.name); }) +
           ", which this device lacks";
  }
  if (!takes(variant, problem.types)) {
    const auto name = [](const std::string& types) { return types; };
    return "takes " +
           (variant.types.empty() ? join(variant.dtypes, text) : join(variant.types, name)) +
           ", not " + problem.types.name();
  }
  return std::nullopt;
}

Refusal missing_vulkan_source(const Problem& problem, const Pass& pass,
                              const DeviceProfile& profile) {
  const Source& source = pass.vulkan;
  if (!source.spirv.empty()) return std::nullopt;
  if (!source.text.empty()) {
#if TESSERA_HAVE_SHADERC
    return std::nullopt;
#else
    return "brings GLSL, and this build of Tessera has no libshaderc to compile it";
#endif
  }
  if (source.file.empty()) return "has no Vulkan kernel for its pass " + in_quotes(pass.name);
  const std::vector<Define> axes = pass.axes ? pass.axes(problem, profile) : std::vector<Define>{};
  const kernel::ModuleLookup found = kernel::find_module(kernel::module_name(source.file, axes));
  if (found.words.empty()) return "lacks its SPIR-V: " + found.why_not;
  return std::nullopt;
}

Refusal missing_source(const Problem& problem, const Pass& pass, const DeviceProfile& profile) {
  switch (profile.backend) {
    case Backend::kHost:
      if (!pass.host) return "has no host kernel for its pass " + in_quotes(pass.name);
      return std::nullopt;
    case Backend::kOpenCL:
      if (pass.opencl.file.empty() && pass.opencl.text.empty()) {
        return "has no OpenCL kernel for its pass " + in_quotes(pass.name);
      }
      return std::nullopt;
    case Backend::kVulkan:
      return missing_vulkan_source(problem, pass, profile);
  }
  return "knows no backend of this device";
}

Refusal refuse_precision(const Problem& problem, const Variant& variant) {
  const Precision kept = precision_of(variant, problem.dtype);
  if (kept >= problem.precision) return std::nullopt;
  const std::string what = kept != Precision::kHigh ? "rounds operands or sums to less than float"
                           : variant.rounds_factors ? "rounds factors between two products to " +
                                                          std::string(to_string(problem.dtype))
                                                    : "takes subnormal operands for 0";
  return what + ", and precision=" + std::string(to_string(problem.precision)) + " forbids that";
}

std::string more_than(std::uint64_t asked, const std::string& what, std::uint64_t limit) {
  return "needs " + std::to_string(asked) + " bytes of " + what + ", and the device has " +
         std::to_string(limit);
}

Refusal refuse_bytes(std::uint64_t asked, const std::string& what, const DeviceProfile& profile) {
  for (const std::uint64_t limit : {profile.max_allocation, profile.max_binding}) {
    if (limit != 0 && asked > limit) return more_than(asked, what + " in one buffer", limit);
  }
  return std::nullopt;
}

// Operands that no buffer of the device can hold.
Refusal refuse_operands(const Problem& problem, const DeviceProfile& profile) {
  for (std::size_t slot = 0; slot < problem.operands.size(); ++slot) {
    if (!problem.has(slot)) continue;
    const std::string& name = problem.operation->operands[slot].name;
    const ByteRange range = byte_range(problem.spec(slot), {problem.operation->name, name});
    if (Refusal no = refuse_bytes(range.end, name, profile)) return no;
  }
  return std::nullopt;
}

// All that does not depend on a configuration.
Refusal refuse_variant(const Problem& problem, const Variant& variant,
                       const DeviceProfile& profile) {
  if (Refusal no = unmet_requirement(problem, variant, profile)) return no;
  if (Refusal no = refuse_precision(problem, variant)) return no;
  for (const Pass& pass : variant.passes) {
    if (Refusal no = missing_source(problem, pass, profile)) return no;
  }
  return refuse_operands(problem, profile);
}

// Of a complete configuration.
Refusal refuse_values(const Variant& variant, const Config& config, const DeviceProfile& profile) {
  for (const auto& [name, value] : config.values()) {
    if (name == kLargeRegisters) {
      if (value > 1) return "has " + std::to_string(value) + " for " + name + ", which is 0 or 1";
      if (value == 1 && !has_large_registers(profile))
        return "asks for 256 registers of a thread (" + name +
               "), which Intel's OpenCL gives on Xe-HP and later, and nothing else does";
      continue;
    }
    const auto tunable = std::ranges::find(variant.tunables, name, &Tunable::name);
    const bool known = tunable != variant.tunables.end() && !tunable->is_constant;
    if (!known && std::ranges::find(kGroupNames, name) == kGroupNames.end()) {
      return "has no tunable " + in_quotes(name);
    }
    const bool is_switch = known && tunable->fallback == 0;
    if (value == 0 && !is_switch) return "has 0 for " + name;
    if (value > kMaxTunable) {
      return "has " + std::to_string(value) + " for " + name + ", more than " +
             std::to_string(kMaxTunable);
    }
  }
  return std::nullopt;
}

Refusal refuse_group(Dim3 group, const DeviceProfile& profile) {
  const auto items = checked_product<std::uint64_t>({group.x, group.y, group.z});
  if (items == std::uint64_t{0}) return "has a work-group without work-items";
  if (profile.max_group_size != 0 && (!items || *items > profile.max_group_size)) {
    return "has " + (items ? std::to_string(*items) : std::string("too many")) +
           " work-items in a work-group, and the device takes " +
           std::to_string(profile.max_group_size);
  }
  return std::nullopt;
}

// A call of another operation: somebody must be able to do it. Which one is for the selector to
// say.
Refusal refuse_call(const CallStep& call, const Problem& caller, const DeviceProfile& profile) {
  const Problem problem = kernel::problem_of(call, caller);
  Refusal last;
  for (const Variant* variant : by_preference(problem, profile)) {
    if (!call.variant.empty() && call.variant != variant->name) continue;
    last = refusal(problem, *variant, profile);
    if (!last) return std::nullopt;
    last = problem.operation->name + "." + variant->name + " " + *last;
  }
  return "calls " + call.operation + ", which nothing here can do: " +
         last.value_or("it has no variant " + in_quotes(call.variant));
}

Refusal refuse_step(const Problem& problem, const kernel::ResolvedStep& step, const Config& config,
                    const DeviceProfile& profile) {
  if (step.call) return refuse_call(*step.call, problem, profile);
  const Pass& pass = *step.pass;
  if (pass.group_size) {
    if (Refusal no = refuse_group(pass.group_size(config), profile)) return no;
  }
  if (!pass.groups)
    return "does not say how many work-groups its pass " + in_quotes(pass.name) + " takes";
  const Dim3 groups = step.groups(problem, config);
  const std::array<std::uint32_t, 3> counts{groups.x, groups.y, groups.z};
  for (std::size_t axis = 0; axis < counts.size(); ++axis) {
    if (profile.max_groups[axis] != 0 && counts[axis] > profile.max_groups[axis]) {
      return "launches " + std::to_string(counts[axis]) + " work-groups along axis " +
             std::to_string(axis) + ", and the device takes " +
             std::to_string(profile.max_groups[axis]);
    }
  }
  return std::nullopt;
}

Refusal refuse_memory(const Problem& problem, const Variant& variant, const Config& config,
                      const DeviceProfile& profile) {
  if (variant.local_bytes && profile.backend != Backend::kHost) {
    const std::uint64_t bytes = variant.local_bytes(problem, config);
    if (bytes > profile.local_memory)
      return more_than(bytes, "work-group memory", profile.local_memory);
  }
  if (variant.scratch_bytes) {
    const std::uint64_t bytes = variant.scratch_bytes(problem, config);
    if (Refusal no = refuse_bytes(bytes, "scratch", profile)) return no;
  }
  return std::nullopt;
}

Refusal refuse_config(const Problem& problem, const Variant& variant, const Config& config,
                      const DeviceProfile& profile) {
  if (Refusal no = refuse_values(variant, config, profile)) return no;
  const bool on_device = profile.backend != Backend::kHost;
  if (on_device) {
    const auto own_group = [](const Pass& pass) { return static_cast<bool>(pass.group_size); };
    if (!std::ranges::all_of(variant.passes, own_group)) {
      if (Refusal no = refuse_group(config.group(), profile)) return no;
    }
  }
  if (variant.rejects) {
    if (Refusal no = variant.rejects(problem, config, profile)) return no;
  }
  if (on_device) {
    for (const kernel::ResolvedStep& step : kernel::steps_of(variant, problem, config)) {
      if (Refusal no = refuse_step(problem, step, config, profile)) return no;
    }
  }
  return refuse_memory(problem, variant, config, profile);
}

// The functions of a record may be an application's own; one that throws has said no.
template <class Ask>
Refusal guarded(Ask ask) {
  try {
    return ask();
  } catch (const std::exception& error) {
    return std::string("can't be judged: ") + error.what();
  } catch (...) {
    return "can't be judged: a function of the record threw";
  }
}

// Each configuration with the other kind of registers, too, behind those that the variant lists.
void add_other_registers(std::vector<Config>& space) {
  const std::string name(kLargeRegisters);
  const std::size_t listed = space.size();
  for (std::size_t n = 0; n < listed; ++n) {
    Config other = space[n];
    other.set(name, other.get(name, 0) != 0 ? 0 : 1);
    space.push_back(std::move(other));
  }
}

std::vector<Config> space_of(const Problem& problem, const Variant& variant,
                             const DeviceProfile& profile) {
  if (!variant.space) return {};
  std::vector<Config> space = variant.space(problem, profile);
  for (Config& config : space) config = complete(variant, std::move(config));
  if (has_large_registers(profile)) add_other_registers(space);
  return space;
}

}  // namespace

Config complete(const Variant& variant, Config config) {
  for (const Tunable& tunable : variant.tunables) {
    if (tunable.is_constant || config.values().contains(tunable.name)) continue;
    config.set(tunable.name, tunable.fallback);
  }
  return config;
}

Refusal refusal(const Problem& problem, const Variant& variant, const Config& config,
                const DeviceProfile& profile) {
  return guarded([&]() -> Refusal {
    if (Refusal no = refuse_variant(problem, variant, profile)) return no;
    return refuse_config(problem, variant, complete(variant, config), profile);
  });
}

Refusal refusal(const Problem& problem, const Variant& variant, const DeviceProfile& profile) {
  return guarded([&]() -> Refusal {
    if (Refusal no = refuse_variant(problem, variant, profile)) return no;
    const std::vector<Config> space = space_of(problem, variant, profile);
    if (space.empty()) return "has no configuration for this problem on this device";
    Refusal first;
    for (const Config& config : space) {
      const Refusal no = guarded([&] { return refuse_config(problem, variant, config, profile); });
      if (!no) return std::nullopt;
      if (!first) first = no;
    }
    if (space.size() == 1) return first;
    return "fits with none of its " + std::to_string(space.size()) + " configurations; {" +
           space.front().to_string() + "}: " + *first;
  });
}

std::vector<Config> fitting(const Problem& problem, const Variant& variant,
                            const DeviceProfile& profile, std::size_t at_most) {
  std::vector<Config> found;
  guarded([&]() -> Refusal {
    if (Refusal no = refuse_variant(problem, variant, profile)) return no;
    for (Config& config : space_of(problem, variant, profile)) {
      if (found.size() == at_most) break;
      if (guarded([&] { return refuse_config(problem, variant, config, profile); })) continue;
      found.push_back(std::move(config));
    }
    return std::nullopt;
  });
  return found;
}

std::optional<Config> first_fitting(const Problem& problem, const Variant& variant,
                                    const DeviceProfile& profile) {
  std::vector<Config> found = fitting(problem, variant, profile, 1);
  if (found.empty()) return std::nullopt;
  return std::move(found.front());
}

}  // namespace tessera::selection
