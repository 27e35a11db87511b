// SPDX-License-Identifier: Apache-2.0
#include "selection/tuner.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <limits>
#include <optional>
#include <utility>

#include "base/median.hpp"
#include "tessera/error.hpp"

namespace tessera::selection {
namespace {

using Clock = std::chrono::steady_clock;

std::string digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

class Tuning {
 public:
  Tuning(const Problem& problem, const std::vector<Candidate>& candidates, const MakeTrial& make,
         const TuneOptions& options, const EventSink& progress)
      : problem_(problem),
        candidates_(candidates),
        make_(make),
        options_(options),
        progress_(progress) {}

  TuneReport run() {
    report_.operation = problem_.operation->name;
    report_.key = problem_.key;
    std::string stopped;
    for (const Candidate& candidate : candidates_) {
      Measurement result{.variant = candidate.variant->name, .config = candidate.config};
      if (stopped.empty() && spent()) {
        report_.out_of_budget = true;
        stopped = "not tried: the budget of " + digits(options_.budget_seconds) + " s was used up";
      }
      if (stopped.empty()) {
        stopped = measure(candidate, result);
      } else {
        result.failure = stopped;
      }
      report_.measurements.push_back(result);
      tell(result);
    }
    report_.seconds = elapsed();
    report_.best = best();
    return std::move(report_);
  }

 private:
  double elapsed() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  // Written so that a budget that is no number is a budget of nothing.
  bool spent() const { return !(elapsed() < options_.budget_seconds); }

  // Returns why no further candidate may be tried, or nothing.
  std::string measure(const Candidate& candidate, Measurement& result) {
    try {
      const std::unique_ptr<Trial> trial = make_(candidate);
      if (trial == nullptr) throw Error("could not be set up");
      const double error = trial->verify();
      // The comparison must fail for a NaN.
      if (!(error >= 0 && error <= 1)) {
        throw Error("wrong result: its error is " + digits(error) + " times the bound");
      }
      result.error_over_bound = error;
      result.milliseconds = time(*trial);
      fastest_ = std::min(fastest_, result.milliseconds);
    } catch (const DeviceLost& error) {
      result.failure = error.what();
      return std::string("not tried: the device was lost before: ") + error.what();
    } catch (const std::exception& error) {
      result.failure = error.what();
      if (result.failure.empty()) result.failure = "failed without a reason";
    } catch (...) {
      result.failure = "failed with something that is no std::exception";
    }
    return {};
  }

  double time(Trial& trial) {
    std::vector<double> runs;
    const int rounds = std::max(options_.rounds, 1);
    for (int round = 0; round < rounds; ++round) {
      const double milliseconds = 1e3 * trial.time();
      if (!(milliseconds >= 0) || !std::isfinite(milliseconds)) {
        throw Error("the device's clock gave " + digits(milliseconds) + " ms");
      }
      runs.push_back(milliseconds);
      if (runs.size() < 2) continue;
      // The faster of the first two: one disturbed run alone rules nothing out.
      if (round == 1 && std::ranges::min(runs) > options_.give_up_factor * fastest_) break;
      if (spent()) {
        report_.out_of_budget = true;
        break;
      }
    }
    // 0 means "not timed", and a coarse clock may say 0.
    constexpr double kOneNanosecond = 1e-6;
    return std::max(median_of(std::move(runs)), kOneNanosecond);
  }

  std::optional<Choice> best() const {
    const Measurement* winner = nullptr;
    std::size_t right = 0;
    for (const Measurement& result : report_.measurements) {
      if (!result.failure.empty()) continue;
      ++right;
      if (winner == nullptr || result.milliseconds < winner->milliseconds) winner = &result;
    }
    if (winner == nullptr) return std::nullopt;
    return Choice{.variant = winner->variant,
                  .config = winner->config,
                  .tier = Tier::kAutotune,
                  .origin = Tier::kAutotune,
                  .why = digits(winner->milliseconds) + " ms, the fastest of " +
                         std::to_string(right) + " right among " +
                         std::to_string(report_.measurements.size()) + " candidates"};
  }

  void tell(const Measurement& result) const {
    if (!progress_) return;
    Event event;
    event.name = "autotune_candidate";
    event.operation = report_.operation;
    event.key = report_.key;
    event.variant = result.variant;
    event.config = result.config.to_string();
    event.detail =
        std::to_string(report_.measurements.size()) + "/" + std::to_string(candidates_.size());
    if (!result.failure.empty()) event.detail += ": " + result.failure;
    event.milliseconds = result.milliseconds;
    progress_(event);
  }

  const Problem& problem_;
  const std::vector<Candidate>& candidates_;
  const MakeTrial& make_;
  const TuneOptions& options_;
  const EventSink& progress_;
  const Clock::time_point start_ = Clock::now();
  double fastest_ = std::numeric_limits<double>::infinity();
  TuneReport report_;
};

}  // namespace

TuneReport tune(const Problem& problem, const std::vector<Candidate>& candidates,
                const MakeTrial& make, const TuneOptions& options, const EventSink& progress) {
  return Tuning(problem, candidates, make, options, progress).run();
}

}  // namespace tessera::selection
