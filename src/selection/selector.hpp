// SPDX-License-Identifier: Apache-2.0
// The tier chain as a function of a problem, a device profile and the caches. Launches nothing:
// tuning goes through the TuneFunction that the runtime hands in.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/record.hpp"
#include "tessera/selection.hpp"

namespace tessera::selection {

// What a cache tier holds for one key.
struct Entry {
  std::string variant{};
  Config config{};
  Tier origin = Tier::kAutotune;
  double milliseconds = 0;      // median when it was tuned
  double error_over_bound = 0;  // worst, when it was tuned
  std::string date{};           // ISO 8601, UTC
  std::string kernels{};        // kernel::hash_of_kernels() when it was tuned
  std::string why{};            // a rule's reason; in memory only
};

// Dated now.
Entry new_entry(const Problem& problem, Backend backend, const Choice& choice,
                const Measurement& measurement);

// The keys of one device: operation name + "|" + Problem::key. Implementations: MemoryCache,
// PersistentCache, ShippedDatabase.
class EntrySource {
 public:
  virtual ~EntrySource() = default;
  virtual std::optional<Entry> find(const std::string& key) = 0;
};
class EntryStore : public EntrySource {
 public:
  virtual void put(const std::string& key, const Entry& entry) = 0;  // never throws
};

// The caller's own words about one call.
struct Override {
  std::string variant{};  // empty = any
  std::optional<Config> config{};
};

// Measures; the selector remembers the best. What the function has stored already is not written
// again.
using TuneFunction = std::function<TuneReport(const Problem&, const Policy&)>;
// The same among the configurations of one variant.
using TuneVariantFunction =
    std::function<TuneReport(const Problem&, const Policy&, const std::string& variant)>;

struct Tiers {
  EntryStore* memory = nullptr;  // null = tier absent
  EntryStore* persistent = nullptr;
  EntrySource* shipped = nullptr;
  TuneFunction tune{};                 // empty = tier absent
  TuneVariantFunction tune_variant{};  // empty = a call that names only its variant does not tune
};

struct Request {
  const Problem* problem = nullptr;
  const DeviceProfile* profile = nullptr;
  Override override_choice{};
  Policy policy{};
  // Unset = all. An override is the caller's own word and always obeyed.
  std::optional<std::vector<Tier>> allowed{};
};

// Thread-safe as far as the tiers are; concurrent misses of one key tune once and the others wait.
class Selector {
 public:
  Selector(Tiers tiers, EventSink events);
  ~Selector();
  Choice choose(const Request& request);
  // The same without tuning and without side effects on caches, and what every other variant said.
  std::pair<Choice, std::vector<Refused>> explain(const Request& request);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// "flash_attention|dtype=f16;…", and ";precision=highest" where that rules out variants.
std::string entry_key(const Problem& problem);
// The same of a call that asks for no precision. What is best there is best for this call, too, if
// it keeps the precision.
std::string undemanding_key(const Problem& problem);
// The key under which the best configuration of one variant is kept.
std::string entry_key(const Problem& problem, const std::string& variant);

// Why `variant` can't run `problem` with `config` on a device like this: requirements, dtype,
// precision, backend without a source, tunables that are unknown, too large, or 0 where 0 is not
// the fallback, the variant's own rejects(), then work-group size, group counts, local memory and
// scratch size. What the configuration lacks is taken from the fallbacks. rejects() comes before
// the geometry because geometry functions may divide by what it rules out. The only judge:
// selector, tuner and launcher all ask here. Never throws; a record's function that throws is a
// refusal.
Refusal refusal(const Problem& problem, const Variant& variant, const Config& config,
                const DeviceProfile& profile);
// Why it can't with any configuration of its space.
Refusal refusal(const Problem& problem, const Variant& variant, const DeviceProfile& profile);

// `config` with the fallbacks of the tunables that it lacks. Every configuration that leaves this
// layer is complete.
Config complete(const Variant& variant, Config config);
// The configurations of the variant's space that are not refused, and the first of them.
std::vector<Config> fitting(const Problem& problem, const Variant& variant,
                            const DeviceProfile& profile, std::size_t at_most = ~std::size_t{0});
std::optional<Config> first_fitting(const Problem& problem, const Variant& variant,
                                    const DeviceProfile& profile);

// Every (variant, configuration) that may run the problem, in the order of the rules and spaces.
struct Candidate {
  const Variant* variant;
  Config config;
};
std::vector<Candidate> candidates(const Problem& problem, const DeviceProfile& profile);

}  // namespace tessera::selection
