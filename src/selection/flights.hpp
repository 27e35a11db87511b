// SPDX-License-Identifier: Apache-2.0
// Single flight: of the threads that miss the same key, one tunes and the others wait for what it
// finds.
#pragma once

#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "selection/selector.hpp"

namespace tessera::selection {

class Flights {
 public:
  class Seat {
   public:
    ~Seat();  // a leader that leaves without landing wakes the others with nothing
    Seat(const Seat&) = delete;
    Seat& operator=(const Seat&) = delete;

    bool leads() const { return promise_.has_value(); }
    // This thread is tuning the key already: waiting would be for ever.
    bool nested() const { return !leads() && !result_.valid(); }
    std::optional<Entry> wait() const { return result_.get(); }
    void land(const std::optional<Entry>& entry);

   private:
    friend class Flights;
    using Promise = std::promise<std::optional<Entry>>;
    using Result = std::shared_future<std::optional<Entry>>;
    Seat(Flights& flights, std::string key, std::optional<Promise> promise, Result result)
        : flights_(flights),
          key_(std::move(key)),
          promise_(std::move(promise)),
          result_(std::move(result)) {}

    Flights& flights_;
    std::string key_;
    std::optional<Promise> promise_;
    Result result_;
  };

  Seat board(const std::string& key);
  // Whether this process tuned the key with success.
  bool landed(const std::string& key) const;

  // Remembers that tuning the key found nothing, so that not every later call tries again. After a
  // lack of time it is worth another try as soon as there is more of it.
  void give_up(const std::string& key, bool out_of_budget, double seconds);
  bool gave_up(const std::string& key, double seconds) const;

 private:
  struct Flight {
    std::thread::id leader;
    std::shared_future<std::optional<Entry>> result;
  };

  mutable std::mutex mutex_;
  std::map<std::string, Flight> flights_;
  std::set<std::string> landed_;
  std::map<std::string, double> gave_up_;  // key → budget in seconds that will not be enough
};

}  // namespace tessera::selection
