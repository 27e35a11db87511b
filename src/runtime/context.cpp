// SPDX-License-Identifier: Apache-2.0
#include "tessera/context.hpp"

#include <cstring>

#include "base/environment.hpp"
#include "base/log.hpp"
#include "device/platforms.hpp"
#include "runtime/context_state.hpp"

namespace tessera {
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

}  // namespace

Context Context::open() { return open(ContextOptions{}); }

Context Context::open(std::string_view device) {
  return open(ContextOptions{.device = std::string(device)});
}

Context Context::open(const ContextOptions& options) {
  std::string selector = options.device;
  if (selector.empty() && options.use_environment) selector = environment().device;
  Context context;
  context.state_ = std::make_shared<runtime::ContextState>(choose_device(selector), options);
  return context;
}

const DeviceProfile& Context::device() const { return state_->profile(); }
int Context::device_index() const {
  return device::Platforms::of_this_process().index_of(state_->route());
}
std::string Context::fingerprint() const { return state_->fingerprint(); }

Tensor Context::empty(DType dtype, Shape shape) const {
  return state_->create_tensor(TensorSpec::contiguous(dtype, std::move(shape)));
}

Tensor Context::upload_bytes(std::span<const std::byte> bytes, DType dtype, Shape shape) const {
  const TensorSpec spec = TensorSpec::contiguous(dtype, std::move(shape));
  const auto wanted = static_cast<std::uint64_t>(spec.elements()) * size_of(dtype);
  if (bytes.size() != wanted) {
    throw InvalidArgument("upload: " + spec.to_string() + " takes " + std::to_string(wanted) +
                          " bytes, not " + std::to_string(bytes.size()));
  }
  Tensor tensor = state_->create_tensor(spec);
  state_->default_stream()->use(
      [&](device::Stream& stream) { stream.upload(*tensor.buffer(), 0, bytes); });
  return tensor;
}

std::vector<std::byte> Context::download_bytes(const Tensor& tensor) const {
  if (!tensor) throw InvalidArgument("download: the tensor is empty");
  if (tensor.buffer()->owner() != state_.get()) {
    throw InvalidArgument("download: the tensor belongs to another context");
  }
  const TensorSpec& spec = tensor.spec();
  const std::size_t size = size_of(spec.dtype);
  const auto count = static_cast<std::size_t>(spec.elements());
  std::vector<std::byte> result(count * size);
  if (count == 0) return result;
  const auto fetch = [&](std::uint64_t offset, std::span<std::byte> into) {
    state_->default_stream()->use(
        [&](device::Stream& stream) { stream.download(*tensor.buffer(), offset, into); });
  };
  if (spec.is_contiguous()) {
    fetch(static_cast<std::uint64_t>(spec.offset) * size, result);
    return result;
  }
  std::vector<std::byte> raw((static_cast<std::size_t>(spec.last_element() - spec.offset) + 1) *
                             size);
  fetch(static_cast<std::uint64_t>(spec.offset) * size, raw);
  std::vector<std::int64_t> index(spec.shape.size(), 0);
  for (std::size_t flat = 0; flat < count; ++flat) {
    std::int64_t element = 0;
    for (std::size_t axis = 0; axis < index.size(); ++axis)
      element += index[axis] * spec.strides[axis];
    std::memcpy(result.data() + flat * size, raw.data() + static_cast<std::size_t>(element) * size,
                size);
    for (std::size_t axis = index.size(); axis-- > 0;) {
      if (++index[axis] < spec.shape[axis]) break;
      index[axis] = 0;
    }
  }
  return result;
}

Stream Context::create_stream() const {
  Stream stream;
  stream.state_ = std::make_shared<runtime::StreamState>(state_->device());
  return stream;
}

void Context::synchronize() const {
  state_->default_stream()->use([](device::Stream& stream) { stream.synchronize(); });
}

void Stream::synchronize() {
  state_->use([](device::Stream& stream) { stream.synchronize(); });
}

Execution Context::last_execution() const { return state_->last_execution(); }
void Context::on_event(EventSink sink) const { state_->set_event_sink(std::move(sink)); }

void Context::check_element(const Tensor& tensor, DType dtype) {
  if (tensor.dtype() == dtype) return;
  throw InvalidArgument("download: the tensor holds " + std::string(to_string(tensor.dtype())) +
                        ", not " + std::string(to_string(dtype)));
}

}  // namespace tessera
