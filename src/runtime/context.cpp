// SPDX-License-Identifier: Apache-2.0
#include "tessera/context.hpp"

#include <cstring>
#include <new>

#include "base/system/environment.hpp"
#include "base/system/log.hpp"
#include "base/system/out_of_memory.hpp"
#include "base/tensors/byte_range.hpp"
#include "device/platforms.hpp"
#include "kernel/elements.hpp"
#include "runtime/context_state.hpp"

namespace tessera {

using runtime::state_of;

namespace {

[[noreturn]] void no_device(const device::PartialProbe& asked, const std::string& selector) {
  std::string text =
      selector.empty() ? "no device was found" : "no device matches '" + selector + "'";
  text += "; probed:";
  for (const DeviceInfo& device : asked.probe.devices) {
    const std::string index = asked.global_indices ? std::to_string(device.index) + " " : "";
    text += "\n  " + index + summary(device.profile);
  }
  for (const ProbeFailure& failure : asked.probe.failures)
    text += "\n  " + failure.where + ": " + failure.why;
  if (!asked.not_asked.empty()) {
    text += "\nnot probed, as the selector rules it out:";
    for (const Backend platform : asked.not_asked) text += " " + std::string(to_string(platform));
  }
  throw NoDevice(text);
}

device::Route choose_device(const std::string& selector) {
  device::Platforms& platforms = device::Platforms::of_this_process();
  const auto best = [](const device::PartialProbe& asked, std::string_view words) {
    const auto chosen = select_devices(asked.probe, words);
    return chosen.empty()
               ? std::nullopt
               : std::optional(asked.routes.at(static_cast<std::size_t>(chosen.front().index)));
  };
  const device::PartialProbe asked = platforms.probe(selector);
  if (const auto route = best(asked, selector)) return *route;
  const auto host = selector.empty() ? best(asked, "host") : std::nullopt;
  if (!host) no_device(asked, selector);
  log(LogLevel::kWarning,
      "no OpenCL or Vulkan device was found; running on the host's reference, which is slow");
  return *host;
}

// The elements of a tensor, whose first lies at the beginning of `raw`, as those of a contiguous
// one.
void gather(TensorSpec spec, std::span<const std::byte> raw, std::span<std::byte> result) {
  spec.offset = 0;
  const auto row = static_cast<std::size_t>(spec.shape.empty() ? 1 : spec.shape.back());
  const std::size_t gap = is_packed(spec.dtype) ? row % 2 : 0;  // elements between packed rows
  kernel::for_each_element(spec, [&](std::size_t flat, std::size_t element) {
    kernel::copy_element(spec.dtype, raw.data(), element, result.data(), flat + flat / row * gap);
  });
}

}  // namespace

runtime::ContextState& runtime::state_of(const Context& context) {
  if (!context.state()) throw InvalidArgument("the context is empty: Context::open() makes one");
  return *context.state();
}

Context Context::open() { return open(ContextOptions{}); }

Context Context::open(std::string_view device) try {
  return open(ContextOptions{.device = std::string(device)});
} catch (...) {
  rethrow_as_error();
}

Context Context::open(const ContextOptions& options) try {
  std::string selector = options.device;
  if (selector.empty() && options.use_environment) selector = environment().device;
  const device::Route route = choose_device(selector);
  return Context(std::make_shared<runtime::ContextState>(
      device::Platforms::of_this_process().at(route), route, options));
} catch (...) {
  rethrow_as_error();
}

const DeviceProfile& Context::device() const try { return state_of(*this).profile(); } catch (...) {
  rethrow_as_error();
}
int Context::device_index() const try {
  const std::optional<device::Route>& route = state_of(*this).route();
  return route ? device::Platforms::of_this_process().index_of(*route) : -1;
} catch (...) {
  rethrow_as_error();
}
std::string Context::fingerprint() const try { return state_of(*this).fingerprint(); } catch (...) {
  rethrow_as_error();
}

Tensor Context::empty(DType dtype, Shape shape) const try {
  return state_of(*this).create_tensor(TensorSpec::contiguous(dtype, std::move(shape)));
} catch (...) {
  rethrow_as_error();
}

Tensor Context::upload_bytes(std::span<const std::byte> bytes, DType dtype, Shape shape) const try {
  runtime::ContextState& state = state_of(*this);
  const TensorSpec spec = TensorSpec::contiguous(dtype, std::move(shape));
  const std::uint64_t wanted = byte_range(spec, {.call = "upload"}).end;
  if (bytes.size() != wanted) {
    throw InvalidArgument("upload: " + spec.to_string() + " takes " + std::to_string(wanted) +
                          " bytes, not " + std::to_string(bytes.size()));
  }
  Tensor tensor = state.create_tensor(spec);
  state.default_stream()->use(
      [&](device::Stream& stream) { stream.upload(*tensor.buffer(), 0, bytes); });
  return tensor;
} catch (...) {
  rethrow_as_error();
}

void Context::download_to(const Tensor& tensor, DType dtype,
                          const std::function<std::span<std::byte>(std::size_t)>& allocate) const
    try {
  runtime::ContextState& state = state_of(*this);
  if (!tensor) throw InvalidArgument("download: the tensor is empty");
  if (tensor.buffer()->owner() != state.number()) {
    throw InvalidArgument("download: the tensor belongs to another context");
  }
  const TensorSpec& spec = tensor.spec();
  if (spec.dtype != dtype) {
    throw InvalidArgument("download: the tensor holds " + std::string(to_string(spec.dtype)) +
                          ", not " + std::string(to_string(dtype)));
  }
  const ByteRange range = byte_range(spec, {.call = "download"}, tensor.buffer()->size());
  const std::uint64_t bytes =
      byte_range(TensorSpec::contiguous(dtype, spec.shape), {.call = "download"}).end;
  std::span<std::byte> result;
  std::vector<std::byte> raw;
  try {
    result = allocate(static_cast<std::size_t>(is_packed(dtype) ? bytes : bytes / size_of(dtype)));
    if (!spec.is_contiguous() && !result.empty()) raw.resize(range.end - range.begin);
  } catch (const std::bad_alloc&) {
    throw OutOfHostMemory("download: the host has no memory for the elements of " +
                          spec.to_string());
  }
  if (result.empty()) return;
  const auto fetch = [&](std::span<std::byte> into) {
    state.default_stream()->download(*tensor.buffer(), range.begin, into);
  };
  if (spec.is_contiguous()) {
    fetch(result);
  } else {
    fetch(raw);
    gather(spec, raw, result);
  }
} catch (...) {
  rethrow_as_error();
}

std::vector<std::byte> Context::download_bytes(const Tensor& tensor) const try {
  std::vector<std::byte> result;
  const bool counts_bytes = is_packed(tensor.dtype());
  download_to(tensor, tensor.dtype(), [&](std::size_t count) {
    result.resize(counts_bytes ? count : count * size_of(tensor.dtype()));
    return std::span(result);
  });
  return result;
} catch (...) {
  rethrow_as_error();
}

Stream Context::create_stream() const try {
  return Stream(state_of(*this).create_stream());
} catch (...) {
  rethrow_as_error();
}

std::uint64_t Context::release_memory() const try { return state_of(*this).trim(); } catch (...) {
  rethrow_as_error();
}
void Context::synchronize() const try {
  state_of(*this).default_stream()->synchronize();
} catch (...) {
  rethrow_as_error();
}

void Stream::synchronize() try {
  if (!state_) throw InvalidArgument("the stream is empty: Context::create_stream() makes one");
  state_->synchronize();
} catch (...) {
  rethrow_as_error();
}

Execution Context::last_execution() const try {
  return state_of(*this).last_execution();
} catch (...) {
  rethrow_as_error();
}

void Context::on_event(EventSink sink) const try {
  state_of(*this).set_event_sink(std::move(sink));
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
