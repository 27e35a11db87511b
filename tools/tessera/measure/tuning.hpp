// SPDX-License-Identifier: Apache-2.0
// Tuning a list of calls on one device within a budget of seconds: `tessera tune` and `tessera
// try`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/context.hpp"
#include "tessera/output/progress.hpp"

namespace tessera::tool {

struct TuneJob {
  const Operation* operation;
  Case shape;
  StorageTypes types;
  std::string key;  // jobs with one key share their configuration
};

// "flash_attention/prefill/f16"
std::string job_name(const TuneJob& job);

// Of the candidates of a report: reached within the budget, and of these wrong or broken.
struct Tally {
  std::size_t tried = 0, failed = 0, all = 0;
  std::string text() const { return std::to_string(tried) + " of " + std::to_string(all); }
};
Tally count(const TuneReport& report);

// Wall-clock seconds that several jobs share; a job that needs less leaves more to the others.
class Budget {
 public:
  Budget(double seconds, std::size_t jobs) : left_(seconds), jobs_(jobs) {}
  double next() const { return jobs_ == 0 ? 0 : left_ / static_cast<double>(jobs_); }
  bool used_up() const { return !(left_ > 0); }
  void spend(double seconds) {
    left_ -= seconds;
    if (left_ < 0) left_ = 0;
    if (jobs_ > 0) --jobs_;
  }

 private:
  double left_;
  std::size_t jobs_;
};

// What was tuned on a context and could not be written to the cache: why, or nothing. Waits for
// other writers.
std::optional<std::string> why_not_kept(const Context& context);

// Tunes one job with the budget's next share and says so: a bar on a terminal, one line when it is
// done. `part` is the part of the whole list that is done already, `step` what this job adds.
TuneReport tune_job(const Executor& executor, const std::string& device, const TuneJob& job,
                    Budget& budget, Progress& progress, double part, double step);

}  // namespace tessera::tool
