// SPDX-License-Identifier: Apache-2.0
// What a Context shares: one opened device, its programs, its choices and its plans.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "device/device.hpp"
#include "device/platforms.hpp"
#include "runtime/buffer_pool.hpp"
#include "runtime/dispatch_limit.hpp"
#include "runtime/plan.hpp"
#include "runtime/program_cache.hpp"
#include "runtime/stream_state.hpp"
#include "runtime/work_memory.hpp"
#include "selection/cache/cache.hpp"
#include "selection/selector.hpp"
#include "selection/tuner.hpp"
#include "tessera/context.hpp"

namespace tessera::runtime {

// Looks a key up without making a string of it.
struct PlanKeyHash {
  using is_transparent = void;  // NOLINT(readability-identifier-naming): the name is the standard's
  std::size_t operator()(std::string_view key) const { return std::hash<std::string_view>{}(key); }
};

// How one call wants to be chosen.
struct CallOptions {
  selection::Override override_choice;
  std::optional<Policy> policy;
  std::optional<std::vector<Tier>> tiers;
  std::optional<Precision> precision;
  bool may_submit = true;  // what times candidates
};

std::vector<std::optional<TensorSpec>> copies_of(std::span<const TensorSpec* const> specs);

class ContextState {
 public:
  // `route`: where this process' platforms have it; none of a device of the application.
  // `default_stream`: makes the default stream; empty: the device does.
  using MakeStream = std::function<std::unique_ptr<device::Stream>(device::Device&)>;
  ContextState(const device::Found& found, std::optional<device::Route> route,
               const ContextOptions& options, const MakeStream& default_stream = {});
  ContextState(const ContextState&) = delete;
  ContextState& operator=(const ContextState&) = delete;

  // Of no other context of this process, before or after.
  std::uint64_t number() const { return *number_; }
  const std::optional<device::Route>& route() const { return route_; }
  const DeviceProfile& profile() const { return profile_; }
  const std::string& fingerprint() const { return fingerprint_; }
  device::Device& device() { return *device_; }
  const device::DevicePtr& shared_device() const { return device_; }
  const std::shared_ptr<StreamState>& default_stream() const { return default_stream_; }
  std::shared_ptr<StreamState> create_stream() const { return adopt(device_->create_stream()); }
  std::shared_ptr<StreamState> adopt(std::unique_ptr<device::Stream> stream) const {
    return std::make_shared<StreamState>(device_, number(), limit_, pool_, std::move(stream));
  }
  ProgramCache& programs() { return programs_; }

  device::BufferPtr create_buffer(std::uint64_t bytes);
  WorkMemory create_work_memory() {
    return WorkMemory([this](std::uint64_t bytes) { return create_buffer(bytes); });
  }
  Tensor create_tensor(const TensorSpec& spec);
  // What a call of the stream writes; from memory that an earlier output left, if there is some.
  Tensor create_output(const TensorSpec& spec, const StreamState& stream);
  // Frees what waits for outputs, and returns the bytes.
  std::uint64_t trim() { return pool_->clear(); }

  // The plan for a call; from the plan cache when the same call was made before under the same
  // rules. `operands` by slot, null = absent.
  std::shared_ptr<const Plan> plan(const Operation& operation,
                                   std::span<const TensorSpec* const> operands, Options options,
                                   const std::vector<bool>& requested, const CallOptions& call);
  Explanation explain(const Problem& problem, const CallOptions& call);
  // The call's options, with the precision that somebody else asks for where they ask for none.
  Options with_precision(Options options, const CallOptions& call) const;
  // Remembers the best candidate, of one variant if one is named, in memory and, if the policy says
  // so, on disk.
  TuneReport tune(const Problem& problem, const Case& shape, const Policy& policy,
                  const EventSink& progress, const std::string& variant = {});

  // Tuned choices that are not on the disk yet go there; waits this long for other writers. Returns
  // why they can't be kept.
  std::optional<std::string> keep_choices(std::chrono::milliseconds patience);

  // Of launches that are made from now on; 0: none. The host's kernels are one launch each.
  // `units`: those of the device, which tests may say otherwise.
  void set_max_dispatch_seconds(double seconds) {
    set_max_dispatch_seconds(seconds, profile_.compute_units);
  }
  void set_max_dispatch_seconds(double seconds, std::uint32_t units);

  void set_last_execution(std::shared_ptr<const Execution> execution) const;
  Execution last_execution() const;
  void set_event_sink(EventSink sink);

 private:
  std::shared_ptr<const Plan> complete_plan(const Problem& problem, const CallOptions& call);
  bool in_parts() const { return limit_->is_set() && profile_.backend != Backend::kHost; }
  // How calls are chosen that a variant makes.
  ChooseCall choose_call(const CallOptions& call);
  std::shared_ptr<const Plan> plan_that_builds(const Problem& problem, const Choice& choice,
                                               const CallOptions& call);
  Policy policy_of(const CallOptions& call) const;
  selection::Request request(const Problem& problem, const CallOptions& call) const;
  std::unique_ptr<device::BlobStore> open_caches(const ContextOptions& options);
  void emit(const Event& event);

  // What threads remember of this context they hold by it, weakly.
  std::shared_ptr<const std::uint64_t> number_;
  std::optional<device::Route> route_;
  DeviceProfile profile_;
  device::DevicePtr device_;
  std::string fingerprint_;
  std::shared_ptr<DispatchLimit> limit_ = std::make_shared<DispatchLimit>();
  std::shared_ptr<BufferPool> pool_;
  Policy default_policy_;
  Precision default_precision_;
  std::string why_no_cache_;
  std::unique_ptr<selection::PersistentCache> persistent_;
  std::unique_ptr<device::BlobStore> blobs_;
  std::shared_ptr<StreamState> default_stream_;
  ProgramCache programs_;
  selection::MemoryCache memory_;
  std::unique_ptr<selection::EntrySource> shipped_;
  std::unique_ptr<selection::Selector> selector_;
  std::mutex plans_mutex_;
  std::unordered_map<std::string, std::shared_ptr<const Plan>, PlanKeyHash, std::equal_to<>> plans_;
  std::mutex sink_mutex_;
  EventSink sink_;
};

// What the handle stands for; InvalidArgument where it is empty.
ContextState& state_of(const Context& context);

// Times and checks the candidates of one problem on made-up operands of the case. Programs of GPUs
// are built ahead of the candidates' turns.
selection::MakeTrial trial_factory(ContextState& context, const Problem& problem, const Case& shape,
                                   const std::vector<selection::Candidate>& candidates);

}  // namespace tessera::runtime
