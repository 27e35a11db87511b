// SPDX-License-Identifier: Apache-2.0
#include "tessera/measure/tuning.hpp"

#include <algorithm>
#include <chrono>

#include "runtime/context_state.hpp"
#include "selection/cache/choices_store.hpp"
#include "selection/tuner.hpp"
#include "tessera/output/report.hpp"

namespace tessera::tool {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string outcome(const TuneReport& report) {
  const Tally tally = count(report);
  std::string text = tally.text() + " candidates tried";
  if (tally.failed > 0) text += ", " + std::to_string(tally.failed) + " failed";
  text += ", " + fixed(report.seconds, 1) + " s";
  if (report.out_of_budget) text += ", budget used up";
  return text;
}

}  // namespace

std::optional<std::string> why_not_kept(const Context& context) {
  return context.state()->keep_choices(selection::kAskedPatience);
}

Tally count(const TuneReport& report) {
  Tally tally{.all = report.measurements.size()};
  for (const Measurement& m : report.measurements) {
    if (m.failure.starts_with(selection::kNotTried)) continue;
    ++tally.tried;
    if (!m.failure.empty()) ++tally.failed;
  }
  return tally;
}

std::string job_name(const TuneJob& job) {
  return job.operation->name + '/' + job.shape.name + '/' + job.types.name();
}

TuneReport tune_job(const Executor& executor, const std::string& device, const TuneJob& job,
                    Budget& budget, Progress& progress, double part, double step) {
  const std::string what = device + ' ' + job_name(job);
  Policy policy = current_policy();
  policy.tune_seconds = budget.next();
  const Clock::time_point start = Clock::now();
  double best = 0;
  std::string checked;
  const auto show = [&](const Event& event) {
    const bool timed = event.name == "autotune_timed";
    if (!timed && event.name != "autotune_candidate") return;
    if (event.milliseconds > 0 && (best == 0 || event.milliseconds < best)) {
      best = event.milliseconds;
    }
    const double share =
        policy.tune_seconds > 0 ? std::min(1.0, seconds_since(start) / policy.tune_seconds) : 1;
    if (!timed) checked = event.detail.substr(0, event.detail.find(':')) + " checked";
    progress.update(what + ": " + checked + (best > 0 ? ", best " + significant(best) + " ms" : ""),
                    part + step * share);
  };
  progress.update(what, part);
  TuneReport report =
      executor.with_policy(policy).tune(job.shape, job.operation->name, EventSink(show));
  budget.spend(seconds_since(start));
  std::string text = what + ": ";
  if (report.best) {
    const auto chosen = std::find_if(
        report.measurements.begin(), report.measurements.end(), [&](const Measurement& m) {
          return m.variant == report.best->variant && m.config == report.best->config;
        });
    text += report.best->variant + '{' + report.best->config.to_string() + '}';
    if (chosen != report.measurements.end()) {
      text += ' ' + significant(chosen->milliseconds) + " ms";
    }
  } else {
    text += "no configuration found";
  }
  progress.milestone("tuned " + text + " (" + outcome(report) + ")");
  return report;
}

}  // namespace tessera::tool
