// SPDX-License-Identifier: Apache-2.0
#include "selection/tuner.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <limits>
#include <optional>
#include <utility>

#include "tessera/error.hpp"

namespace tessera::selection {
namespace {

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
        progress_(progress),
        rounds_(std::max(options.rounds, 1)),
        start_(options.now()) {}

  TuneReport run() {
    report_.operation = problem_.operation->name;
    report_.key = problem_.key;
    for (const Candidate& candidate : candidates_) check(candidate);
    warm_up_device();
    for (int round = 0; round < rounds_ && lost_.empty(); ++round) {
      // Whoever is right is timed twice, whatever it costs: otherwise nothing is known.
      if (round >= kLeastRounds && spent()) {
        report_.out_of_budget = true;
        break;
      }
      time_in_turns(round);
    }
    for (const Contender& contender : contenders_) sum_up(contender);
    if (!clocks_.empty()) report_.clock_mhz = median_of(clocks_);
    report_.seconds = elapsed();
    report_.best = best();
    return std::move(report_);
  }

 private:
  static constexpr int kLeastRounds = 2;

  // A candidate that was found right.
  struct Contender {
    std::unique_ptr<Trial> trial;
    std::size_t number;   // in the report
    double wall_seconds;  // of one run
    std::vector<double> milliseconds{};
    bool given_up = false;
  };

  double elapsed() const { return options_.now() - start_; }
  // Written so that a budget that is no number is a budget of nothing.
  bool spent() const { return !(elapsed() < options_.budget_seconds); }

  Measurement& result_of(const Contender& contender) {
    return report_.measurements[contender.number];
  }

  // ---- right

  void stop(const std::string& why) { stopped_ = std::string(kNotTried).append(why); }

  void check(const Candidate& candidate) {
    Measurement result{.variant = candidate.variant->name, .config = candidate.config};
    if (stopped_.empty() && !affords_another()) {
      report_.out_of_budget = true;
      stop("the budget of " + digits(options_.budget_seconds) + " s was used up");
    }
    result.failure = stopped_;
    if (stopped_.empty()) {
      result.failure = failure_of([&] {
        std::unique_ptr<Trial> trial = make_(candidate);
        if (trial == nullptr) throw Error("could not be set up");
        const double error = trial->verify();
        // The comparison must fail for a NaN.
        if (!(error >= 0 && error <= 1)) {
          throw Error("wrong result: its error is " + digits(error) + " times the bound");
        }
        result.error_over_bound = error;
        const double before = options_.now();
        run_once(*trial);
        contenders_.push_back({.trial = std::move(trial),
                               .number = report_.measurements.size(),
                               .wall_seconds = options_.now() - before});
      });
      if (!lost_.empty()) stop("the device was lost before: " + lost_);
    }
    report_.measurements.push_back(result);
    tell("autotune_candidate", result,
         std::to_string(report_.measurements.size()) + "/" + std::to_string(candidates_.size()) +
             (result.failure.empty() ? "" : ": " + result.failure));
  }

  // Is there time to check one more, and for what timing those will take that are right?
  bool affords_another() const {
    if (contenders_.empty()) return !spent();
    double fastest = std::numeric_limits<double>::infinity(), rounds = 0;
    for (const Contender& one : contenders_) fastest = std::min(fastest, one.wall_seconds);
    for (const Contender& one : contenders_) {
      const bool hopeless = one.wall_seconds > options_.give_up_factor * fastest;
      rounds += one.wall_seconds * (hopeless ? std::min(kLeastRounds, rounds_) : rounds_);
    }
    return elapsed() + rounds < options_.budget_seconds;
  }

  // ---- fast

  // By the candidate that was fastest so far.
  void warm_up_device() {
    while (lost_.empty()) {
      Contender* fastest = nullptr;
      for (Contender& one : contenders_) {
        if (one.given_up) continue;
        if (fastest == nullptr || one.wall_seconds < fastest->wall_seconds) fastest = &one;
      }
      if (fastest == nullptr) return;
      WarmUp limits = options_.warm_up;
      limits.most_seconds = std::min(limits.most_seconds, options_.budget_seconds / 4);
      const std::string failure = failure_of([&] {
        report_.settled = warm_up(
            limits, [&] { return run_once(*fastest->trial); }, options_.now);
      });
      if (failure.empty()) return;
      drop(*fastest, failure);
    }
  }

  void time_in_turns(int round) {
    for (Contender& one : contenders_) {
      if (one.given_up || !lost_.empty()) continue;
      const std::string failure =
          failure_of([&] { one.milliseconds.push_back(1e3 * run_once(*one.trial)); });
      if (!failure.empty()) drop(one, failure);
    }
    if (options_.clock_mhz) {
      if (const double clock = options_.clock_mhz(); clock > 0) clocks_.push_back(clock);
    }
    if (round + 1 == kLeastRounds) give_up_slow_ones();
  }

  // The faster of two runs counts: one disturbed run alone rules nothing out.
  void give_up_slow_ones() {
    double fastest = std::numeric_limits<double>::infinity();
    for (const Contender& one : contenders_) {
      if (!one.given_up) fastest = std::min(fastest, std::ranges::min(one.milliseconds));
    }
    for (Contender& one : contenders_) {
      if (one.given_up) continue;
      one.given_up = std::ranges::min(one.milliseconds) > options_.give_up_factor * fastest;
    }
  }

  static double run_once(Trial& trial) {
    const double seconds = trial.time();
    if (!(seconds >= 0) || !std::isfinite(seconds)) {
      throw Error("the device's clock gave " + digits(1e3 * seconds) + " ms");
    }
    return seconds;
  }

  void drop(Contender& contender, const std::string& failure) {
    contender.given_up = true;
    contender.milliseconds.clear();
    result_of(contender).failure = failure;
  }

  void sum_up(const Contender& contender) {
    Measurement& result = result_of(contender);
    if (contender.milliseconds.empty() && result.failure.empty()) {
      result.failure = "not timed: the device was lost before: " + lost_;
    }
    if (!result.failure.empty()) return;
    // 0 means "not timed", and a coarse clock may say 0.
    constexpr double kOneNanosecond = 1e-6;
    result.milliseconds = std::max(median_of(contender.milliseconds), kOneNanosecond);
    result.spread = spread_of(contender.milliseconds);
    tell("autotune_timed", result, std::to_string(contender.milliseconds.size()) + " runs");
  }

  // ---- both

  // What went wrong, or nothing. A device that is lost ends the search.
  template <class Work>
  std::string failure_of(Work work) {
    try {
      work();
      return {};
    } catch (const DeviceLost& error) {
      lost_ = error.what();
      return lost_;
    } catch (const std::exception& error) {
      const std::string what = error.what();
      return what.empty() ? "failed without a reason" : what;
    } catch (...) {
      return "failed with something that is no std::exception";
    }
  }

  std::optional<Choice> best() const {
    const Measurement* winner = nullptr;
    std::size_t right = 0, tried = 0;
    for (const Measurement& result : report_.measurements) {
      tried += result.failure.starts_with(kNotTried) ? 0 : 1;
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
                         std::to_string(right) + " right; " + std::to_string(tried) + " of " +
                         std::to_string(report_.measurements.size()) + " candidates tried"};
  }

  void tell(const char* name, const Measurement& result, std::string detail) const {
    if (!progress_) return;
    Event event;
    event.name = name;
    event.operation = report_.operation;
    event.key = report_.key;
    event.variant = result.variant;
    event.config = result.config.to_string();
    event.detail = std::move(detail);
    event.milliseconds = result.milliseconds;
    progress_(event);
  }

  const Problem& problem_;
  const std::vector<Candidate>& candidates_;
  const MakeTrial& make_;
  const TuneOptions& options_;
  const EventSink& progress_;
  const int rounds_;
  const double start_;
  std::vector<Contender> contenders_;
  std::vector<double> clocks_;
  std::string stopped_;  // why no further candidate may be tried
  std::string lost_;     // what a lost device said
  TuneReport report_;
};

}  // namespace

TuneReport tune(const Problem& problem, const std::vector<Candidate>& candidates,
                const MakeTrial& make, const TuneOptions& options, const EventSink& progress) {
  return Tuning(problem, candidates, make, options, progress).run();
}

}  // namespace tessera::selection
