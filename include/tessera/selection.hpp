// SPDX-License-Identifier: Apache-2.0
// How a variant and its configuration are chosen:
//   override → overlay → memory → persistent → shipped database → autotune → heuristics → error
// Every choice, from whatever tier, is checked against the actual problem and device before it is
// launched. An invalid override or overlay is an error; an invalid entry of a later tier is a miss.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/export.hpp"
#include "tessera/record.hpp"

namespace tessera {

enum class Tier : std::uint8_t {
  kOverride,
  kOverlay,
  kMemory,
  kPersistent,
  kShipped,
  kAutotune,
  kHeuristics,
};
TESSERA_API std::string_view to_string(Tier tier);  // "override", "overlay", …

struct Choice {
  std::string variant{};
  Config config{};
  Tier tier = Tier::kHeuristics;  // that answered this time
  Tier origin =
      Tier::kHeuristics;  // that the answer came from at first: a memory hit may be of tuned origin
  std::string why{};      // a rule's reason, a cache entry's date and time
};

struct Refused {
  std::string variant{};
  std::string why{};
};

// What may happen on a miss. ScopedPolicy changes it for a scope of one thread,
// Executor::with_policy for one executor.
struct Policy {
  bool autotune = false;     // time the candidates on a miss; default from TESSERA_AUTOTUNE_POLICY
  bool heuristics = true;    // use the rules on a miss; both false: a miss is an error
  bool persist = true;       // write tuned results to the user's cache
  double tune_seconds = 10;  // budget for tuning one key
};
TESSERA_API Policy current_policy();

class TESSERA_API ScopedPolicy {
 public:
  explicit ScopedPolicy(Policy policy);
  ~ScopedPolicy();
  ScopedPolicy(const ScopedPolicy&) = delete;
  ScopedPolicy& operator=(const ScopedPolicy&) = delete;
};

// Choices by key, in force on this thread while the object lives; the innermost wins. Keys are
// those of Explanation::key; "*" stands for every key of the operation.
struct OverlayEntry {
  std::string operation{};
  std::string key = "*";
  std::string variant{};
  Config config{};  // empty = the variant's first configuration that fits
};
class TESSERA_API ScopedOverlay {
 public:
  explicit ScopedOverlay(std::vector<OverlayEntry> entries);
  ~ScopedOverlay();
  ScopedOverlay(const ScopedOverlay&) = delete;
  ScopedOverlay& operator=(const ScopedOverlay&) = delete;
};

// Something that the selection did; see Context::on_event.
struct Event {
  std::string name{};  // "override", "overlay_hit", "cache_hit", "cache_invalid", "autotune_start",
                       // "autotune_candidate" (checked), "autotune_timed", "autotune_finish",
                       // "heuristics", "error"
  std::string operation, key, device, variant, config, detail{};
  double milliseconds = 0;  // of autotune_timed
};
using EventSink = std::function<void(const Event&)>;

// One timed or refused candidate of an autotuning run.
struct Measurement {
  std::string variant{};
  Config config{};
  double milliseconds = 0;  // median; 0 = not timed
  double spread = 0;        // of the timed runs: (90th - 10th percentile) / median
  double error_over_bound = 0;
  std::string failure{};  // empty = right and timed
};
struct TuneReport {
  std::string operation, key{};
  std::optional<Choice> best{};
  std::vector<Measurement> measurements{};
  double seconds = 0;
  double clock_mhz = 0;  // of the device while it was timed; 0 = unknown
  bool settled = true;   // false: the device's speed was still changing when the timing began
  bool out_of_budget = false;
};

}  // namespace tessera
