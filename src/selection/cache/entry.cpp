// SPDX-License-Identifier: Apache-2.0
#include "selection/cache/entry.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>

#include "kernel/hash_of_kernels.hpp"

namespace tessera::selection {

namespace {

// Variants of the call's dtypes that keep less than `precision`.
std::ptrdiff_t ruled_out(const Problem& problem, Precision precision) {
  return std::ranges::count_if(problem.operation->variants, [&](const Variant& variant) {
    return takes(variant, problem.types) && precision_of(variant, problem.dtype) < precision;
  });
}

}  // namespace

std::string undemanding_key(const Problem& problem) {
  return problem.operation->name + "|" + problem.key;
}

std::string entry_key(const Problem& problem) {
  const std::ptrdiff_t out = ruled_out(problem, problem.precision);
  // Where `high` rules out the same variants, calls of both share what was found.
  const Precision least = ruled_out(problem, Precision::kHigh) == out
                              ? std::min(Precision::kHigh, problem.precision)
                              : problem.precision;
  return undemanding_key(problem) + (out > 0 ? ";precision=" + std::string(to_string(least)) : "");
}

std::string entry_key(const Problem& problem, const std::string& variant) {
  return undemanding_key(problem) + "|variant=" + variant;
}

Entry new_entry(const Problem& problem, Backend backend, const Choice& choice,
                const Measurement& measurement) {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc{};
  gmtime_r(&now, &utc);
  char date[sizeof "0000-00-00T00:00:00Z"] = "";
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return {.variant = choice.variant,
          .config = choice.config,
          .origin = choice.origin,
          .milliseconds = measurement.milliseconds,
          .error_over_bound = measurement.error_over_bound,
          .date = date,
          .kernels = kernel::hash_of_kernels(*problem.operation, backend)};
}

Entry entry_of(const Problem& problem, Backend backend, const TuneReport& report) {
  const Choice& best = *report.best;
  const auto measured = std::ranges::find_if(report.measurements, [&](const Measurement& one) {
    return one.variant == best.variant && one.config == best.config;
  });
  Entry entry = new_entry(problem, backend, best,
                          measured == report.measurements.end() ? Measurement{} : *measured);
  entry.origin = Tier::kAutotune;
  entry.why = best.why;
  return entry;
}

std::string failures_of(const TuneReport& report) {
  std::string text = report.out_of_budget ? "the budget was used up before any candidate passed"
                                          : "no candidate passed";
  for (const Measurement& one : report.measurements) {
    text += "\n  " + one.variant + "{" + one.config.to_string() + "}: " + one.failure;
  }
  return text;
}

bool same_result(const Entry& a, const Entry& b) {
  return a.variant == b.variant && a.config == b.config && a.origin == b.origin &&
         a.milliseconds == b.milliseconds && a.error_over_bound == b.error_over_bound &&
         a.kernels == b.kernels;
}

}  // namespace tessera::selection
