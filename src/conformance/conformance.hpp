// SPDX-License-Identifier: Apache-2.0
// The conformance table and the verified benchmark, from the records: operation × device × variant
// × dtype × configuration × case. ctest, `tessera check`, `tessera bench` and `tessera try` all run
// this.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "conformance/sample.hpp"
#include "tessera/context.hpp"

namespace tessera::conformance {

// What checks of several operations have in common: attention and flash_attention run the same
// kernels.
struct Shared {
  Built built{};
  std::map<std::string, std::vector<Config>> pinned{};  // that suffice, by kernels_of()
};

// The files of a variant's kernels, and the storage types.
std::string kernels_of(const Variant& variant, const StorageTypes& types, Backend backend);

struct CheckOptions {
  std::string only{};              // run cases whose name contains this
  std::string variant{};           // empty = every variant
  std::optional<Config> config{};  // instead of the variant's own
  std::optional<std::string>
      types{};  // the name of storage types: a dtype, or one of Operation::types
  bool edge_cases = true;
  // For processors, where compiling takes seconds for a kernel and running longer than on a GPU.
  // Storage types beyond the first differ in loads and stores only: every fifth case on them, every
  // fifth of a variant that would not be chosen, and of an operation whose kernels another one has
  // run already; of each variant and type one at least. Two configurations of each variant where
  // two suffice, and of the programs those that sample_of() finds worth their compilation.
  bool quick = false;
  bool list = false;  // says what would run; builds and launches nothing
  int repeats = 2;    // of every case, which must all give the same bits
  // Of a variant's space; all hand-written cases run on the first, edge cases on each.
  std::size_t max_configs = 3;
  Shared* shared = nullptr;  // of the checks before this one, which adds its own; null: it is alone
  std::optional<Precision> precision{};  // variants that keep less are skipped
};

struct CheckResult {
  std::string name;  // full name and case
  bool passed = false;
  bool skipped = false;
  std::string detail;  // why it failed or was skipped
  double worst = 0;    // error over bound
};

// What a check cost, in seconds of wall time.
struct Spent {
  double compilers = 0;  // also those that drivers start at the first launch
  double oracle = 0;
  double launches = 0;  // with the wait for their end
  double rest = 0;      // making data, comparing
  Spent& operator+=(const Spent& other);
};

struct CheckSummary {
  std::size_t passed = 0, failed = 0, skipped = 0;
  std::vector<std::string> skip_reasons;  // each once
  Spent spent{};
};

// Runs every case and reports each.
CheckSummary check(const Context& context, const Operation& operation, const CheckOptions& options,
                   const std::function<void(const CheckResult&)>& each);

struct VerifiedRun {
  Execution execution;
  double worst = 0;     // error over bound
  std::string failure;  // empty = right
  double median_seconds = 0;
  double spread = 0;     // (90th - 10th percentile) / median
  bool settled = true;   // false: the device's speed was still changing when the timing began
  double clock_mhz = 0;  // of the device while it was timed; 0 = nobody tells
  double flops = 0, bytes = 0;
  int rounds = 0;
  // Limits on CPUs, measured in turns with the calls; 0 = of no interest.
  // The rate of the unit that multiplies, of calls that do.
  double arithmetic_flops = 0;
  // Of calls that do little else than read, which then find their operands in no cache.
  double read_bytes_per_second = 0;
};

// Runs a case as an application would have it chosen, checks it, and if it is right and `time` is
// set, warms the device up and times it by the device's clock for at least `min_seconds`, `calls`
// in a row, of which each is taken to last as long.
VerifiedRun verify_and_time(const Executor& executor, const Operation& operation, const Case& shape,
                            bool time, double min_seconds, int calls = 1);

// What the device reaches on loops that do nothing else: the limits that benchmarks stand beside. 0
// = not measurable.
struct Peaks {
  double fma_flops = 0;              // float fused multiply-adds, two operations each
  double copy_bytes_per_second = 0;  // read plus written
  double bf16_dot_flops = 0;         // Feature::kCpuBf16Dot
};
Peaks measure_peaks(const Context& context);

}  // namespace tessera::conformance
