// SPDX-License-Identifier: Apache-2.0
#include "selection/flights.hpp"

#include <limits>

namespace tessera::selection {

Flights::Seat::~Seat() {
  if (leads()) land(std::nullopt);
}

void Flights::Seat::land(const std::optional<Entry>& entry) {
  {
    const std::lock_guard lock(flights_.mutex_);
    flights_.flights_.erase(key_);
    if (entry) flights_.landed_.insert(key_);
  }
  promise_->set_value(entry);
  promise_.reset();
}

Flights::Seat Flights::board(const std::string& key) {
  std::promise<std::optional<Entry>> promise;
  const std::shared_future<std::optional<Entry>> result = promise.get_future().share();
  const auto self = std::this_thread::get_id();
  const std::lock_guard lock(mutex_);
  const auto [flight, first] = flights_.try_emplace(key, Flight{self, result});
  const bool leads = first;
  const bool nested = !first && flight->second.leader == self;
  return {*this, key, leads ? std::optional(std::move(promise)) : std::nullopt,
          nested ? std::shared_future<std::optional<Entry>>{} : flight->second.result};
}

bool Flights::landed(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  return landed_.contains(key);
}

void Flights::give_up(const std::string& key, bool out_of_budget, double seconds) {
  const std::lock_guard lock(mutex_);
  gave_up_[key] = out_of_budget ? seconds : std::numeric_limits<double>::infinity();
}

bool Flights::gave_up(const std::string& key, double seconds) const {
  const std::lock_guard lock(mutex_);
  const auto found = gave_up_.find(key);
  return found != gave_up_.end() && !(seconds > found->second);
}

}  // namespace tessera::selection
