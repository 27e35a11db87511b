// SPDX-License-Identifier: Apache-2.0
#include "runtime/context_state.hpp"

#include <algorithm>
#include <map>
#include <type_traits>
#include <variant>

#include "base/environment.hpp"
#include "base/log.hpp"
#include "device/clock.hpp"
#include "kernel/precision.hpp"
#include "selection/overlay.hpp"
#include "tessera/error.hpp"

namespace tessera::runtime {
namespace {

// More distinct calls than this and the cache starts over: plans are small, but an application with
// ever-changing lengths must not grow without end.
constexpr std::size_t kMaxPlans = 4096;

class NoBlobStore final : public device::BlobStore {
 public:
  std::vector<std::byte> get(std::string_view /*key*/) override { return {}; }
  void put(std::string_view /*key*/, std::span<const std::byte> /*blob*/) override {}
  bool keeps() const override { return false; }
};

// Opening tries what probing only expects of a device.
device::DevicePtr open_as(const device::Route& route, DeviceProfile& profile) {
  device::DevicePtr device = device::Platforms::of_this_process().at(route).open();
  profile.features = profile.features & device->profile().features;
  return device;
}

// Appends to a string of bytes; everything of unknown length goes with its length, so that no two
// lists of values give one string.
class Bytes {
 public:
  explicit Bytes(std::string& bytes) : bytes_(bytes) { bytes_.clear(); }

  template <class T>
  void add(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  template <class T>
  void add_all(std::span<const T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    add(values.size());
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  }
  void add_text(std::string_view text) { add_all(std::span<const char>(text)); }
  void add_option(const OptionValue& value) {
    add(value.index());
    std::visit(
        [this](const auto& held) {
          using Held = std::remove_cvref_t<decltype(held)>;
          if constexpr (std::is_same_v<Held, std::string>) {
            add_text(held);
          } else if constexpr (std::is_same_v<Held, std::vector<std::int64_t>>) {
            add_all(std::span<const std::int64_t>(held));
          } else if constexpr (!std::is_same_v<Held, std::monostate>) {
            add(held);
          }
        },
        value);
  }

 private:
  std::string& bytes_;
};

// Everything that a plan depends on, exactly: no bucketing here. In memory that the thread reuses,
// so it is good until the next call on this thread.
std::string_view plan_key(const Operation& operation, std::span<const TensorSpec* const> operands,
                          const Options& options, const std::vector<bool>& requested,
                          const CallOptions& call, const Policy& policy) {
  thread_local std::string key;
  Bytes bytes(key);
  bytes.add(reinterpret_cast<std::uintptr_t>(&operation));
  bytes.add(operands.size());
  for (const TensorSpec* spec : operands) {
    bytes.add(spec != nullptr);
    if (spec == nullptr) continue;
    bytes.add(spec->dtype);
    bytes.add(spec->offset);
    bytes.add_all(std::span<const std::int64_t>(spec->shape));
    bytes.add_all(std::span<const std::int64_t>(spec->strides));
  }
  bytes.add(requested.size());
  for (const bool wanted : requested) bytes.add(wanted);
  bytes.add(options.size());
  for (const auto& [name, value] : options) {
    bytes.add_text(name);
    bytes.add_option(value);
  }
  bytes.add_text(call.override_choice.variant);
  bytes.add(call.override_choice.config.has_value());
  if (call.override_choice.config) bytes.add_text(call.override_choice.config->to_string());
  bytes.add(policy.autotune);
  bytes.add(policy.heuristics);
  bytes.add(call.tiers.has_value());
  if (call.tiers) bytes.add_all(std::span<const Tier>(*call.tiers));
  return key;
}

// By context, for the calling thread.
std::map<const ContextState*, std::shared_ptr<const Execution>>& last_executions() {
  thread_local std::map<const ContextState*, std::shared_ptr<const Execution>> executions;
  return executions;
}

}  // namespace

void StreamState::launch(const Plan& plan, std::span<const device::BufferPtr> buffers) {
  const std::lock_guard lock(mutex_);
  if (plan.scratch_bytes > 0 && (!scratch_ || scratch_->size() < plan.scratch_bytes)) {
    scratch_ = device_.create_buffer(plan.scratch_bytes);
  }
  runtime::launch(plan, *stream_, buffers, scratch_);
  stream_->flush();
}

ContextState::ContextState(const device::Route& route, const ContextOptions& options)
    : route_(route),
      profile_(device::Platforms::of_this_process().at(route).profile),
      device_(open_as(route, profile_)),
      fingerprint_(selection::fingerprint(profile_)),
      default_policy_{.autotune = options.use_environment && environment().autotune},
      default_precision_(options.precision.value_or(
          options.use_environment ? environment().precision : Precision::kDefault)),
      blobs_(open_caches(options)),
      default_stream_(std::make_shared<StreamState>(*device_)),
      programs_(*device_, *blobs_),
      shipped_(selection::shipped_database(profile_)) {
  selector_ = std::make_unique<selection::Selector>(
      selection::Tiers{.memory = &memory_,
                       .persistent = persistent_.get(),
                       .shipped = shipped_.get(),
                       .tune =
                           [this](const Problem& problem, const Policy& policy) {
                             Case shape{.name = "autotune",
                                        .operands = problem.operands,
                                        .options = problem.options};
                             return tune(problem, shape, policy, {});
                           }},
      [this](const Event& event) { emit(event); });
}

ContextState::~ContextState() { last_executions().erase(this); }

device::BufferPtr ContextState::create_buffer(std::uint64_t bytes) {
  device::BufferPtr buffer = device_->create_buffer(bytes);
  buffer->set_owner(this);
  return buffer;
}

Tensor ContextState::create_tensor(const TensorSpec& spec) {
  const auto elements = static_cast<std::uint64_t>(spec.last_element() + 1);
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(elements, size_of(spec.dtype), &bytes)) {
    throw InvalidArgument("tensor " + spec.to_string() + " has more bytes than 64 bits can count");
  }
  return {spec, create_buffer(bytes)};
}

// Opens persistent_ and returns the program store, or one that forgets.
std::unique_ptr<device::BlobStore> ContextState::open_caches(const ContextOptions& options) {
  const auto directory =
      selection::open_cache_directory(options.cache_directory, options.use_environment);
  if (directory.path.empty()) {
    log(LogLevel::kInfo, "no persistent cache: " + directory.why_not);
    return std::make_unique<NoBlobStore>();
  }
  persistent_ =
      std::make_unique<selection::PersistentCache>(directory.path, fingerprint_, profile_);
  return std::make_unique<selection::FileBlobStore>(directory.path);
}

Policy ContextState::policy_of(const CallOptions& call) const {
  if (call.policy) return *call.policy;
  return selection::scoped_policy().value_or(default_policy_);
}

selection::Request ContextState::request(const Problem& problem, const CallOptions& call) const {
  return {.problem = &problem,
          .profile = &profile_,
          .override_choice = call.override_choice,
          .policy = policy_of(call),
          .allowed = call.tiers};
}

Options ContextState::with_precision(Options options, const CallOptions& call) const {
  const Precision asked =
      call.precision.value_or(selection::scoped_precision().value_or(default_precision_));
  if (asked != Precision::kDefault && !kernel::asked_precision(options)) {
    options.insert_or_assign(std::string(kernel::kPrecision), std::string(to_string(asked)));
  }
  return options;
}

std::vector<std::optional<TensorSpec>> copies_of(std::span<const TensorSpec* const> specs) {
  std::vector<std::optional<TensorSpec>> copies;
  copies.reserve(specs.size());
  for (const TensorSpec* spec : specs)
    copies.push_back(spec == nullptr ? std::nullopt : std::optional(*spec));
  return copies;
}

std::shared_ptr<const Plan> ContextState::plan(const Operation& operation,
                                               std::span<const TensorSpec* const> operands,
                                               Options options, const std::vector<bool>& requested,
                                               const CallOptions& call) {
  // An overlay belongs to a scope of one thread, so what it decides must not outlive it.
  const bool cacheable = !selection::overlays_active();
  options = with_precision(std::move(options), call);
  std::string key;
  if (cacheable) {
    const std::string_view found_by =
        plan_key(operation, operands, options, requested, call, policy_of(call));
    const std::lock_guard lock(plans_mutex_);
    const auto found = plans_.find(found_by);
    if (found != plans_.end()) return found->second;
    key = found_by;
  }
  Problem problem = make_problem(operation, copies_of(operands), std::move(options), requested);
  const Choice choice = selector_->choose(request(problem, call));
  std::shared_ptr<const Plan> plan = make_plan(std::move(problem), choice, profile_, programs_);
  if (cacheable) {
    const std::lock_guard lock(plans_mutex_);
    if (plans_.size() >= kMaxPlans) plans_.clear();
    plans_.insert_or_assign(std::move(key), plan);
  }
  return plan;
}

Explanation ContextState::explain(const Problem& problem, const CallOptions& call) {
  auto [choice, refused] = selector_->explain(request(problem, call));
  const Variant* variant = problem.operation->find_variant(choice.variant);
  Explanation explanation;
  explanation.refused = std::move(refused);
  explanation.execution = {
      .operation = problem.operation->name,
      .key = problem.key,
      .device = profile_.name,
      .name = full_name(*problem.operation, *variant, choice.config, problem.dtype, profile_),
      .precision = problem.precision,
      .choice = std::move(choice)};
  return explanation;
}

TuneReport ContextState::tune(const Problem& problem, const Case& shape, const Policy& policy,
                              const EventSink& progress) {
  const EventSink both = [&](const Event& event) {
    emit(event);
    if (progress) progress(event);
  };
  TuneReport report = selection::tune(problem, selection::candidates(problem, profile_),
                                      trial_factory(*this, problem, shape),
                                      {.budget_seconds = policy.tune_seconds,
                                       .warm_up = device::warm_up_of(profile_),
                                       .clock_mhz = device::clock_reader(profile_)},
                                      both);
  if (!report.best) return report;
  const auto measured =
      std::ranges::find_if(report.measurements, [&](const Measurement& measurement) {
        return measurement.variant == report.best->variant &&
               measurement.config == report.best->config;
      });
  const selection::Entry entry = selection::new_entry(*report.best, *measured);
  const std::string key = selection::entry_key(problem);
  memory_.put(key, entry);
  if (policy.persist && persistent_) persistent_->put(key, entry);
  // Plans made from an older choice of this key are stale now.
  const std::lock_guard lock(plans_mutex_);
  plans_.clear();
  return report;
}

void ContextState::set_last_execution(std::shared_ptr<const Execution> execution) const {
  last_executions()[this] = std::move(execution);
}

Execution ContextState::last_execution() const {
  const auto found = last_executions().find(this);
  if (found == last_executions().end())
    throw InvalidArgument("this thread has not run anything on this context yet");
  return *found->second;
}

void ContextState::set_event_sink(EventSink sink) {
  const std::lock_guard lock(sink_mutex_);
  sink_ = std::move(sink);
}

void ContextState::emit(const Event& event) {
  EventSink sink;
  {
    const std::lock_guard lock(sink_mutex_);
    sink = sink_;
  }
  if (sink) sink(event);
  if (log_enabled(LogLevel::kDebug)) {
    log(LogLevel::kDebug, event.name + " " + event.operation + " " + event.key + " " +
                              event.variant + " {" + event.config + "} " + event.detail);
  }
}

}  // namespace tessera::runtime
