// SPDX-License-Identifier: Apache-2.0
#include "selection/selector.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "kernel/hash_of_kernels.hpp"
#include "selection/asked.hpp"
#include "selection/cache/entry.hpp"
#include "selection/flights.hpp"
#include "selection/heuristics.hpp"
#include "tessera/error.hpp"

namespace tessera::selection {

struct Selector::State {
  State(Tiers with_tiers, EventSink with_events)
      : tiers(std::move(with_tiers)), events(std::move(with_events)) {}

  Tiers tiers;
  EventSink events;
  Flights flights;
};

namespace {

// One walk down the tiers for one call.
class Walk {
 public:
  Walk(const Tiers& tiers, const EventSink& events, Flights& flights, const Request& request,
       bool only_look)
      : tiers_(tiers),
        events_(events),
        flights_(flights),
        request_(request),
        problem_(*request.problem),
        operation_(*problem_.operation),
        profile_(*request.profile),
        only_look_(only_look),
        key_(entry_key(problem_)) {}

  Choice run() {
    try {
      return walk();
    } catch (const Error& error) {
      tell("error", {}, error.what());
      throw;
    }
  }

 private:
  Choice walk() {
    const Override& asked = request_.override_choice;
    if (asked.config) {
      Choice choice = exact_override(problem_, profile_, asked);
      tell("override", choice);
      return choice;
    }
    if (!asked.variant.empty()) return variant_override(asked.variant);
    if (allowed(Tier::kOverlay)) {
      if (auto choice = overlay_choice(problem_, profile_)) {
        tell("overlay_hit", *choice);
        return *std::move(choice);
      }
    }
    if (auto choice = later_tiers()) return *std::move(choice);
    throw Unsupported(nothing_left(problem_, profile_));
  }

  // The best that is known for the variant: the tiers below answer, but only with this variant.
  Choice variant_override(const std::string& name) {
    only_ = &known_variant(problem_, name, Tier::kOverride);
    std::optional<Choice> choice = later_tiers();
    if (!choice) choice = first_override(problem_, *only_, profile_);
    choice->tier = Tier::kOverride;
    tell("override", *choice, std::string(to_string(choice->origin)));
    return *std::move(choice);
  }

  // ---- what is remembered

  std::optional<Choice> later_tiers() {
    if (allowed(Tier::kMemory)) {
      if (auto choice = remembered(tiers_.memory, Tier::kMemory)) return choice;
    }
    if (allowed(Tier::kPersistent)) {
      if (auto choice = remembered(tiers_.persistent, Tier::kPersistent)) return choice;
    }
    if (allowed(Tier::kShipped)) {
      if (auto choice = remembered(tiers_.shipped, Tier::kShipped)) return choice;
    }
    if (auto choice = autotune()) return choice;
    return heuristics();
  }

  bool usable_origin(const Entry& entry) const {
    if (entry.origin != Tier::kHeuristics) return true;
    return request_.policy.heuristics && !will_tune();
  }

  // What was tuned here says nothing about other kernels than it was tuned with. What is shipped
  // was tuned with some version of them, and is the best that is known.
  bool is_outdated(const Entry& entry, Tier tier) const {
    return tier == Tier::kPersistent &&
           entry.kernels != kernel::hash_of_kernels(operation_, profile_.backend);
  }

  // A guess from the memory must neither keep a later call from tuning nor serve one that wants no
  // guesses. What was found invalid is told at the first look only.
  std::optional<Choice> remembered(EntrySource* source, Tier tier, bool first_look = true) {
    if (source == nullptr) return std::nullopt;
    std::vector<std::string> keys{key_};
    if (only_ != nullptr) keys.insert(keys.begin(), entry_key(problem_, only_->name));
    const std::string undemanding = undemanding_key(problem_);
    if (undemanding != key_) keys.push_back(undemanding);
    for (const std::string& key : keys) {
      const auto entry = source->find(key);
      if (!entry || !usable_origin(*entry) || is_outdated(*entry, tier)) continue;
      if (only_ != nullptr && entry->variant != only_->name) continue;
      Choice choice = from_entry(*entry, tier);
      if (const Refusal no = judge(choice)) {
        const bool of_this_call = key != undemanding || key == key_;
        if (first_look && of_this_call) {
          tell("cache_invalid", choice, std::string(to_string(tier)) + ": " + *no);
        }
        if (tier == Tier::kMemory && key == own_key()) stale_in_memory_ = true;
        continue;
      }
      tell("cache_hit", choice, std::string(to_string(tier)));
      if (tier != Tier::kMemory && !only_look_ && tiers_.memory != nullptr) {
        tiers_.memory->put(key, *entry);
      }
      return choice;
    }
    return std::nullopt;
  }

  static Choice from_entry(const Entry& entry, Tier tier) {
    Choice choice{.variant = entry.variant,
                  .config = entry.config,
                  .tier = tier,
                  .origin = entry.origin,
                  .why = entry.why};
    if (choice.why.empty()) choice.why = entry.date;
    return choice;
  }

  // Completes the configuration and says what is wrong with the choice.
  Refusal judge(Choice& choice) const {
    const Variant* variant = operation_.find_variant(choice.variant);
    if (variant == nullptr) return "there is no variant '" + choice.variant + "'";
    choice.config = complete(*variant, std::move(choice.config));
    return refusal(problem_, *variant, choice.config, profile_);
  }

  // ---- what is found now

  std::string own_key() const { return only_ == nullptr ? key_ : entry_key(problem_, only_->name); }

  bool will_tune() const {
    const bool can =
        only_ == nullptr ? static_cast<bool>(tiers_.tune) : static_cast<bool>(tiers_.tune_variant);
    return request_.policy.autotune && can && allowed(Tier::kAutotune) &&
           !flights_.gave_up(own_key(), request_.policy.tune_seconds);
  }

  std::optional<Choice> autotune() {
    if (!will_tune() || only_look_) return std::nullopt;
    // The buckets of one key share an entry. If what was tuned for this key a moment ago does not
    // fit this problem, tuning again would only throw the other problem's entry out, and so on.
    if (stale_in_memory_ && flights_.landed(own_key())) return std::nullopt;
    Flights::Seat seat = flights_.board(own_key());
    if (seat.nested()) return std::nullopt;
    std::optional<Choice> choice;
    if (!seat.leads()) choice = landed(seat.wait());
    // Between the look into the memory and now another thread may have landed.
    if (!choice && allowed(Tier::kMemory)) choice = remembered(tiers_.memory, Tier::kMemory, false);
    if (!choice && seat.leads() && candidates_left() > 0) choice = landed(lead(seat));
    return choice;
  }

  std::size_t candidates_left() const {
    const auto all = candidates(problem_, profile_);
    return static_cast<std::size_t>(std::ranges::count_if(all, [&](const Candidate& candidate) {
      return only_ == nullptr || candidate.variant == only_;
    }));
  }

  std::optional<Choice> landed(const std::optional<Entry>& entry) {
    if (!entry) return std::nullopt;
    Choice choice = from_entry(*entry, Tier::kAutotune);
    if (const Refusal no = judge(choice)) {
      tell("cache_invalid", choice, "autotune: " + *no);
      return std::nullopt;
    }
    return choice;
  }

  std::optional<Entry> lead(Flights::Seat& seat) {
    tell("autotune_start", {}, std::to_string(candidates_left()) + " candidates");
    TuneReport report;
    std::string failure;
    try {
      report = only_ == nullptr ? tiers_.tune(problem_, request_.policy)
                                : tiers_.tune_variant(problem_, request_.policy, only_->name);
      failure = failure_of(report);
    } catch (const std::exception& error) {
      failure = error.what();
    } catch (...) {
      failure = "the tuner threw something that is no std::exception";
    }
    if (!failure.empty()) {
      flights_.give_up(own_key(), report.out_of_budget, request_.policy.tune_seconds);
      tell("autotune_finish", {}, "failed: " + failure);
      return std::nullopt;
    }
    const Entry entry = entry_of(problem_, profile_.backend, report);
    remember(tiers_.memory, entry);
    if (request_.policy.persist && allowed(Tier::kPersistent)) remember(tiers_.persistent, entry);
    seat.land(entry);
    tell("autotune_finish", *report.best, report.best->why);
    return entry;
  }

  std::string failure_of(const TuneReport& report) const {
    if (!report.best) return failures_of(report);
    Choice best = *report.best;
    const Refusal no = judge(best);
    return no ? "the best candidate " + *no : "";
  }

  void remember(EntryStore* store, const Entry& entry) const {
    if (store == nullptr) return;
    const auto known = store->find(own_key());
    if (!known || !same_result(*known, entry)) store->put(own_key(), entry);
  }

  std::optional<Choice> heuristics() {
    if (!request_.policy.heuristics || !allowed(Tier::kHeuristics)) return std::nullopt;
    std::optional<Choice> choice = heuristic_choice(problem_, profile_, only_);
    if (!choice) return std::nullopt;
    tell("heuristics", *choice, choice->why);
    keep_guess(*choice);
    if (only_look_ && will_tune()) choice->why += "; a call would autotune first";
    return choice;
  }

  // A guess never takes the place of something better that is of no use for this one problem.
  void keep_guess(const Choice& choice) const {
    if (only_look_ || only_ != nullptr || tiers_.memory == nullptr) return;
    const auto known = tiers_.memory->find(key_);
    if (known && known->origin != Tier::kHeuristics) return;
    tiers_.memory->put(key_, {.variant = choice.variant,
                              .config = choice.config,
                              .origin = Tier::kHeuristics,
                              .why = choice.why});
  }

  // ---- odds and ends

  bool allowed(Tier tier) const {
    return !request_.allowed || std::ranges::count(*request_.allowed, tier) != 0;
  }

  void tell(const std::string& name, const Choice& choice, std::string detail = {}) const {
    if (only_look_ || !events_) return;
    Event event;
    event.name = name;
    event.operation = operation_.name;
    event.key = problem_.key;
    event.device = profile_.name;
    event.variant = choice.variant;
    event.config = choice.config.to_string();
    event.detail = std::move(detail);
    events_(event);
  }

  const Tiers& tiers_;
  const EventSink& events_;
  Flights& flights_;
  const Request& request_;
  const Problem& problem_;
  const Operation& operation_;
  const DeviceProfile& profile_;
  const bool only_look_;
  const std::string key_;
  const Variant* only_ = nullptr;  // the override's variant, when it left the configuration open
  bool stale_in_memory_ = false;
};

}  // namespace

Selector::Selector(Tiers tiers, EventSink events)
    : state_(std::make_unique<State>(std::move(tiers), std::move(events))) {}

Selector::~Selector() = default;

Choice Selector::choose(const Request& request) {
  return Walk(state_->tiers, state_->events, state_->flights, request, false).run();
}

std::pair<Choice, std::vector<Refused>> Selector::explain(const Request& request) {
  const Choice choice = Walk(state_->tiers, state_->events, state_->flights, request, true).run();
  std::vector<Refused> others;
  for (const Variant& variant : request.problem->operation->variants) {
    if (variant.name == choice.variant) continue;
    const Refusal no = refusal(*request.problem, variant, *request.profile);
    others.push_back(
        {variant.name, no.value_or("could run too; the " + std::string(to_string(choice.tier)) +
                                   " tier chose another")});
  }
  return {choice, others};
}

}  // namespace tessera::selection
