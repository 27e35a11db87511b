// SPDX-License-Identifier: Apache-2.0
#include "runtime/program_cache.hpp"

#include <algorithm>
#include <chrono>
#include <optional>

#include "abi/processors.h"
#include "base/hash.hpp"
#include "base/large_registers.hpp"
#include "kernel/sources.hpp"
#include "runtime/glsl.hpp"
#include "tessera/error.hpp"

namespace tessera::runtime {
namespace {

std::vector<Define> call(
    const std::function<std::vector<Define>(const Problem&, const Config&)>& function,
    const Problem& problem, const Config& config) {
  return function ? function(problem, config) : std::vector<Define>{};
}

// Values of the tunables and constants that the pass's kernel is specialised on, by name.
std::vector<Define> values_of(const Problem& problem, const Variant& variant, const Pass& pass,
                              const Config& config) {
  const std::vector<Define> constants = call(pass.constants, problem, config);
  std::vector<Define> values;
  for (const Tunable& tunable : variant.tunables) {
    if (tunable.launch_only) continue;
    if (pass.specialized_on &&
        std::ranges::find(*pass.specialized_on, tunable.name) == pass.specialized_on->end())
      continue;
    const auto constant = std::ranges::find(constants, tunable.name, &Define::name);
    values.push_back({tunable.name, constant != constants.end()
                                        ? constant->value
                                        : config.get(tunable.name, tunable.fallback)});
  }
  return values;
}

// The first of its defines are those of `axes`.
ProgramName name_of(const device::ProgramRequest& request, const Source& source, std::size_t axes) {
  ProgramName name;
  name.kernel = (source.file.empty() ? request.name : source.file) + "|" + request.entry;
  for (std::size_t n = 0; n < request.defines.size(); ++n) {
    const Define& define = request.defines[n];
    (n < axes ? name.kernel : name.values) +=
        "|" + define.name + "=" + std::to_string(define.value);
  }
  if (!request.ptx_target.empty()) name.kernel += "|" + request.ptx_target;
  return name;
}

// A request without its source, and the values that it is specialised on.
struct Specialised {
  device::ProgramRequest request{};
  std::vector<Define> axes{}, values{};
};

Specialised specialise(const Problem& problem, const Variant& variant, const Pass& pass,
                       const Config& config, const DeviceProfile& profile) {
  Specialised result;
  device::ProgramRequest& request = result.request;
  request.name =
      problem.operation->name + "." + variant.name + (pass.name.empty() ? "" : "." + pass.name);
  request.group = pass.group_size ? pass.group_size(config) : config.group();
  request.bindings = static_cast<std::uint32_t>(pass.bindings.size());
  request.argument_bytes =
      pass.args ? static_cast<std::uint32_t>(pass.args(problem, config).size()) : 0;
  if (pass.axes) result.axes = pass.axes(problem, profile);
  result.values = values_of(problem, variant, pass, config);
  request.defines = result.axes;
  request.defines.insert(request.defines.end(), result.values.begin(), result.values.end());
  request.defines.insert(
      request.defines.end(),
      {{"WG_X", request.group.x}, {"WG_Y", request.group.y}, {"WG_Z", request.group.z}});
  // What is the same program in all configurations needs few registers.
  const bool varies = !pass.specialized_on || !pass.specialized_on->empty();
  const std::string large(kLargeRegisters);
  if (varies && config.get(large, 0) != 0) request.defines.push_back({large, 1});
  if (profile.backend == Backend::kOpenCL) {
    request.entry = pass.opencl.entry;
    request.ptx_target = pass.opencl.ptx_target;
  } else if (profile.backend == Backend::kVulkan) {
    request.entry = pass.vulkan.entry.empty() ? "main" : pass.vulkan.entry;
  }
  return result;
}

std::string with_source(const std::string& key, const device::ProgramRequest& request) {
  return key + "|" + hash128(request.source) + hash128(std::as_bytes(request.spirv));
}

std::string text_of(const Dim3& grid) {
  return " of " + std::to_string(grid.x) + "x" + std::to_string(grid.y) + "x" +
         std::to_string(grid.z);
}

const Source& source_of(const Pass& pass, Backend backend) {
  return backend == Backend::kVulkan ? pass.vulkan : pass.opencl;
}

}  // namespace

ProgramName ProgramCache::name(const Problem& problem, const Variant& variant, const Pass& pass,
                               const Config& config, const DeviceProfile& profile) {
  const Specialised specialised = specialise(problem, variant, pass, config, profile);
  return name_of(specialised.request, source_of(pass, profile.backend), specialised.axes.size());
}

device::ProgramPtr ProgramCache::get(const Problem& problem, const Variant& variant,
                                     const Pass& pass, const Config& config,
                                     const DeviceProfile& profile,
                                     const std::optional<Dim3>& grid) {
  Specialised specialised = specialise(problem, variant, pass, config, profile);
  device::ProgramRequest& request = specialised.request;
  request.grid = grid;
  switch (profile.backend) {
    case Backend::kHost: {
      request.host = pass.host;
      return device_.build(request, store_);
    }
    case Backend::kOpenCL: {
      const std::string key = name_of(request, pass.opencl, specialised.axes.size()).key();
      request.source =
          pass.opencl.text.empty() ? kernel::flatten(pass.opencl.file) : pass.opencl.text;
      return build_once(grid ? key + "|parts" : key, request);
    }
    case Backend::kVulkan: {
      for (const Define& value : specialised.values) {
        const auto tunable = std::ranges::find(variant.tunables, value.name, &Tunable::name);
        request.specialization.emplace_back(tunable->id, value.value);
      }
      if (profile.kind == DeviceKind::kCpu)
        request.specialization.emplace_back(ON_PROCESSOR_ID, 1U);
      std::vector<std::uint32_t> compiled;
      if (!pass.vulkan.spirv.empty()) {
        request.spirv = pass.vulkan.spirv;
      } else if (!pass.vulkan.text.empty()) {
        compiled = compile_glsl(request.name, pass.vulkan.text, specialised.axes);
        request.spirv = compiled;
      } else {
        const kernel::ModuleLookup module =
            kernel::find_module(kernel::module_name(pass.vulkan.file, specialised.axes));
        if (module.words.empty()) throw BuildError(request.name + ": " + module.why_not);
        request.spirv = module.words;
      }
      const std::string key = name_of(request, pass.vulkan, specialised.axes.size()).key();
      return build_once(grid ? key + "|parts" + text_of(*grid) : key, request);
    }
  }
  throw Unsupported(request.name + ": unknown backend");
}

void ProgramCache::forget(const std::string& key, std::promise<device::ProgramPtr>& promise) {
  promise.set_exception(std::current_exception());
  const std::lock_guard lock(mutex_);
  programs_.erase(key);
}

device::ProgramPtr ProgramCache::build_once(const std::string& key,
                                            const device::ProgramRequest& request) {
  std::promise<device::ProgramPtr> promise;
  std::shared_future<device::ProgramPtr> ours;
  {
    const std::lock_guard lock(mutex_);
    const auto failure =
        failures_.empty() ? failures_.end() : failures_.find(with_source(key, request));
    if (failure != failures_.end()) throw BuildError(failure->second);
    const auto [entry, inserted] = programs_.try_emplace(key);
    if (!inserted) {
      ours = entry->second;
    } else {
      entry->second = promise.get_future().share();
    }
  }
  if (ours.valid()) return ours.get();
  try {
    const auto start = std::chrono::steady_clock::now();
    device::ProgramPtr program = device_.build(request, store_);
    build_seconds_ +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    promise.set_value(program);
    return program;
  } catch (const BuildError& error) {
    forget(key, promise);
    const std::lock_guard lock(mutex_);
    failures_.emplace(with_source(key, request), error);
    throw;
  } catch (...) {  // a later attempt may fare better, with more memory
    forget(key, promise);
    throw;
  }
}

}  // namespace tessera::runtime
