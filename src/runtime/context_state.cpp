// SPDX-License-Identifier: Apache-2.0
#include "runtime/context_state.hpp"

#include <algorithm>
#include <map>
#include <type_traits>
#include <variant>

#include "base/system/environment.hpp"
#include "base/system/log.hpp"
#include "base/system/thread_state.hpp"
#include "base/tensors/byte_range.hpp"
#include "device/clock.hpp"
#include "device/no_store.hpp"
#include "kernel/precision.hpp"
#include "selection/asked.hpp"
#include "selection/cache/overlay.hpp"
#include "selection/heuristics.hpp"
#include "tessera/error.hpp"

namespace tessera::runtime {
namespace {

// More distinct calls than this and the cache starts over: plans are small, but an application with
// ever-changing lengths must not grow without end.
constexpr std::size_t kMaxPlans = 4096;

// Of outputs that nobody holds any more: at most this, and a share of the device's memory.
constexpr std::uint64_t kMostIdleBytes = 1ULL << 30, kIdleShare = 64;

// Opening tries what probing only expects of a device.
device::DevicePtr open_as(const device::Found& found, DeviceProfile& profile) {
  device::DevicePtr device = found.open();
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

// What a thread keeps between its calls. It knows contexts by their numbers and not by their
// addresses, which are used again, and owns nothing of them: either may end first.
struct ThreadState {
  struct LastExecution {
    std::weak_ptr<const std::uint64_t> context;
    std::shared_ptr<const Execution> execution;
  };
  std::string key;                                    // memory of plan_key()
  std::map<std::uint64_t, LastExecution> executions;  // by the context's number
};

// Everything that a plan depends on, exactly: no bucketing here. Written to `key`.
void plan_key(std::string& key, const Operation& operation,
              std::span<const TensorSpec* const> operands, const Options& options,
              const std::vector<bool>& requested, const CallOptions& call, const Policy& policy) {
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
}

// A case that is this call, on made-up data.
Case as_case(const Problem& problem) {
  return {.name = "autotune", .operands = problem.operands, .options = problem.options};
}

std::shared_ptr<const std::uint64_t> next_number() {
  static std::atomic<std::uint64_t> last{0};
  return std::make_shared<const std::uint64_t>(++last);
}

}  // namespace

ContextState::ContextState(const device::Found& found, std::optional<device::Route> route,
                           const ContextOptions& options, const MakeStream& default_stream)
    : number_(next_number()),
      route_(route),
      profile_(found.profile),
      device_(open_as(found, profile_)),
      fingerprint_(selection::fingerprint(profile_)),
      pool_(std::make_shared<BufferPool>(
          std::min(kMostIdleBytes, profile_.global_memory / kIdleShare))),
      default_policy_{.autotune = options.use_environment && environment().autotune},
      default_precision_(options.precision.value_or(
          options.use_environment ? environment().precision : Precision::kDefault)),
      blobs_(open_caches(options)),
      default_stream_(default_stream ? adopt(default_stream(*device_)) : create_stream()),
      programs_(*device_, *blobs_),
      shipped_(selection::shipped_database(profile_)) {
  selector_ = std::make_unique<selection::Selector>(
      selection::Tiers{
          .memory = &memory_,
          .persistent = persistent_.get(),
          .shipped = shipped_.get(),
          .tune = [this](
                      const Problem& problem,
                      const Policy& policy) { return tune(problem, as_case(problem), policy, {}); },
          .tune_variant =
              [this](const Problem& problem, const Policy& policy, const std::string& variant) {
                return tune(problem, as_case(problem), policy, {}, variant);
              }},
      [this](const Event& event) { emit(event); });
}

device::BufferPtr ContextState::create_buffer(std::uint64_t bytes) {
  device::BufferPtr buffer = pool_->create(*device_, bytes);
  buffer->set_owner(number());
  return buffer;
}

Tensor ContextState::create_tensor(const TensorSpec& spec) {
  return {spec, create_buffer(byte_range(spec, {}).end)};
}

Tensor ContextState::create_output(const TensorSpec& spec, const StreamState& stream) {
  // What is only recorded may run whenever the application wants.
  if (stream.only_records()) return create_tensor(spec);
  const std::uint64_t bytes = byte_range(spec, {}).end;
  device::BufferPtr buffer = pool_->take(&stream, bytes);
  if (buffer == nullptr) buffer = pool_->lend(&stream, create_buffer(bytes));
  return {spec, std::move(buffer)};
}

// Opens persistent_ and returns the program store, or one that forgets.
std::unique_ptr<device::BlobStore> ContextState::open_caches(const ContextOptions& options) {
  const auto directory =
      selection::open_cache_directory(options.cache_directory, options.use_environment);
  if (directory.path.empty()) {
    why_no_cache_ = "no persistent cache: " + directory.why_not;
    log(LogLevel::kInfo, why_no_cache_);
    return std::make_unique<device::NoStore>();
  }
  persistent_ =
      std::make_unique<selection::PersistentCache>(directory.path, fingerprint_, profile_);
  return std::make_unique<selection::FileBlobStore>(
      directory.path, options.use_environment ? environment().cache_limit : kDefaultCacheLimit);
}

Policy ContextState::policy_of(const CallOptions& call) const {
  Policy policy = call.policy ? *call.policy : selection::scoped_policy().value_or(default_policy_);
  policy.autotune = policy.autotune && call.may_submit;
  return policy;
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

// A driver that lacks what one kernel needs takes others: where nobody asked for this variant and
// the rules may choose, the next ones are tried, in the order of the rules.
std::shared_ptr<const Plan> ContextState::plan_that_builds(const Problem& problem,
                                                           const Choice& choice,
                                                           const CallOptions& call) {
  const ChooseCall choose = choose_call(call);
  try {
    return make_plan(problem, choice, profile_, programs_, choose, in_parts());
  } catch (const BuildError& error) {
    const bool may_guess = policy_of(call).heuristics &&
                           (!call.tiers || std::ranges::count(*call.tiers, Tier::kHeuristics) != 0);
    if (choice.tier == Tier::kOverride || choice.tier == Tier::kOverlay || !may_guess) throw;
    for (const Variant* variant : selection::by_preference(problem, profile_)) {
      if (variant->name == choice.variant) continue;
      auto next = selection::heuristic_choice(problem, profile_, variant);
      if (!next) continue;
      next->why = "variant " + choice.variant + " does not build on this device";
      try {
        std::shared_ptr<const Plan> plan =
            make_plan(problem, *next, profile_, programs_, choose, in_parts());
        emit({.name = "error",
              .operation = problem.operation->name,
              .key = problem.key,
              .device = profile_.name,
              .variant = choice.variant,
              .config = choice.config.to_string(),
              .detail = error.what()});
        return plan;
      } catch (const BuildError&) {
        continue;
      } catch (const Unsupported&) {  // a call that it makes
        continue;
      }
    }
    throw;
  }
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
    ThreadState* const thread = of_this_thread<ThreadState>();
    std::string& found_by = thread != nullptr ? thread->key : key;
    plan_key(found_by, operation, operands, options, requested, call, policy_of(call));
    const std::lock_guard lock(plans_mutex_);
    const auto found = plans_.find(std::string_view(found_by));
    if (found != plans_.end()) return found->second;
    if (thread != nullptr) key = found_by;
  }
  Problem problem = make_problem(operation, copies_of(operands), std::move(options), requested);
  if (cacheable) {
    if (std::shared_ptr<const Plan> known = complete_plan(problem, call)) {
      const std::lock_guard lock(plans_mutex_);
      plans_.insert_or_assign(std::move(key), known);
      return known;
    }
  }
  const Choice choice = selector_->choose(request(problem, call));
  std::shared_ptr<const Plan> plan = plan_that_builds(problem, choice, call);
  if (cacheable) {
    const std::lock_guard lock(plans_mutex_);
    if (plans_.size() >= kMaxPlans) plans_.clear();
    plans_.insert_or_assign(std::move(key), plan);
  }
  return plan;
}

// The plan of the call with everything spelt out, as prewarm() makes it.
std::shared_ptr<const Plan> ContextState::complete_plan(const Problem& problem,
                                                        const CallOptions& call) {
  std::vector<const TensorSpec*> specs;
  for (const auto& spec : problem.operands) specs.push_back(spec ? &*spec : nullptr);
  std::string key;
  plan_key(key, *problem.operation, specs, problem.options, problem.requested, call,
           policy_of(call));
  const std::lock_guard lock(plans_mutex_);
  const auto found = plans_.find(std::string_view(key));
  return found == plans_.end() ? nullptr : found->second;
}

ChooseCall ContextState::choose_call(const CallOptions& call) {
  return [this, policy = call.policy, tiers = call.tiers, may_submit = call.may_submit](
             const Problem& problem, const std::string& variant) {
    // The problem says its precision itself.
    const CallOptions inner{.override_choice = {.variant = variant},
                            .policy = policy,
                            .tiers = tiers,
                            .precision = std::nullopt,
                            .may_submit = may_submit};
    return selector_->choose(request(problem, inner));
  };
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
      .name = full_name(*problem.operation, *variant, choice.config, problem.types, profile_),
      .precision = problem.precision,
      .choice = std::move(choice)};
  return explanation;
}

TuneReport ContextState::tune(const Problem& problem, const Case& shape, const Policy& policy,
                              const EventSink& progress, const std::string& variant) {
  const EventSink both = [&](const Event& event) {
    emit(event);
    if (progress) progress(event);
  };
  std::vector<selection::Candidate> candidates = selection::candidates(problem, profile_);
  if (!variant.empty()) {
    const Variant& only = selection::known_variant(problem, variant, Tier::kOverride);
    std::erase_if(candidates, [&](const selection::Candidate& candidate) {
      return candidate.variant != &only;
    });
  }
  TuneReport report =
      selection::tune(problem, candidates, trial_factory(*this, problem, shape, candidates),
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
  const selection::Entry entry =
      selection::new_entry(problem, profile_.backend, *report.best, *measured);
  const std::string key =
      variant.empty() ? selection::entry_key(problem) : selection::entry_key(problem, variant);
  memory_.put(key, entry);
  if (policy.persist && persistent_) persistent_->put(key, entry);
  // Plans made from an older choice of this key are stale now.
  const std::lock_guard lock(plans_mutex_);
  plans_.clear();
  return report;
}

void ContextState::set_max_dispatch_seconds(double seconds, std::uint32_t units) {
  const bool before = in_parts();
  limit_->set(seconds, units);
  if (before == in_parts()) return;
  const std::lock_guard lock(plans_mutex_);
  plans_.clear();
}

std::optional<std::string> ContextState::keep_choices(std::chrono::milliseconds patience) {
  return persistent_ ? persistent_->keep(patience) : why_no_cache_;
}

void ContextState::set_last_execution(std::shared_ptr<const Execution> execution) const {
  ThreadState* const thread = of_this_thread<ThreadState>();
  if (thread == nullptr) return;  // which will ask no more
  const auto [last, inserted] = thread->executions.try_emplace(number());
  if (inserted) {
    last->second.context = number_;
    std::erase_if(thread->executions,
                  [](const auto& each) { return each.second.context.expired(); });
  }
  last->second.execution = std::move(execution);
}

Execution ContextState::last_execution() const {
  if (ThreadState* const thread = of_this_thread<ThreadState>()) {
    const auto found = thread->executions.find(number());
    if (found != thread->executions.end()) return *found->second.execution;
  }
  throw InvalidArgument("this thread has not run anything on this context yet");
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
