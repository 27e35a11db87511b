// SPDX-License-Identifier: Apache-2.0
#include "conformance/sample.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <ranges>
#include <utility>

namespace tessera::conformance {
namespace {

constexpr std::size_t kPinned = 2;

// Each behind the function that it is for and its first axis, the storage type.
std::set<std::string> values_of(const runtime::ProgramName& program) {
  std::size_t end = 0;
  for (int bars = 0; bars < 3 && end != std::string::npos; ++bars)
    end = program.kernel.find('|', end + 1);
  std::set<std::string> values;
  for (const auto value : std::views::split(program.values, '|')) {
    if (!value.empty())
      values.insert(program.kernel.substr(0, end) + " " + std::string(value.begin(), value.end()));
  }
  return values;
}

class Sampler {
 public:
  Sampler(const std::vector<Programs>& needs, Built& built)
      : needs_(needs), built_(built), kept_(needs.size(), false), order_(needs.size()) {
    for (const Programs& programs : needs) {
      for (const runtime::ProgramName& program : programs) ++users_[program.key()];
    }
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::ranges::stable_sort(order_, std::ranges::greater(),
                             [this](std::size_t n) { return popularity(n); });
  }

  std::vector<bool> sample(const Worth& worth) {
    for (const std::size_t n : order_) {
      if (worth.every_kernel && has_new_kernel(n)) keep(n);
    }
    keep_what_is_built();
    const bool has_none = !order_.empty() && std::ranges::find(kept_, true) == kept_.end();
    if (has_none && worth.one_at_least) keep(order_.front());
    std::size_t more = worth.more;
    for (auto next = most_telling(more); next; next = most_telling(more)) {
      more -= new_programs(*next);
      keep(*next);
    }
    keep_what_is_built();
    return kept_;
  }

 private:
  // By how many others need what few need, then by how few of these programs it takes.
  std::pair<std::size_t, std::ptrdiff_t> popularity(std::size_t n) const {
    std::size_t least = std::numeric_limits<std::size_t>::max();
    std::ptrdiff_t rare = 0;
    for (const runtime::ProgramName& program : needs_[n]) {
      const std::size_t users = users_.at(program.key());
      if (users < least) rare = 0;
      least = std::min(least, users);
      if (users == least) ++rare;
    }
    return {least, -rare};
  }

  bool has_new_kernel(std::size_t n) const {
    return std::ranges::any_of(needs_[n], [this](const runtime::ProgramName& program) {
      return !built_.kernels.contains(program.kernel);
    });
  }

  std::size_t new_programs(std::size_t n) const {
    std::set<std::string> keys;
    for (const runtime::ProgramName& program : needs_[n]) {
      if (!built_.programs.contains(program.key())) keys.insert(program.key());
    }
    return keys.size();
  }

  std::size_t new_values(std::size_t n) const {
    std::set<std::string> values;
    for (const runtime::ProgramName& program : needs_[n]) values.merge(values_of(program));
    return static_cast<std::size_t>(std::ranges::count_if(
        values, [this](const std::string& value) { return !built_.values.contains(value); }));
  }

  // The case with the most new values of those that take no more than so many programs.
  std::optional<std::size_t> most_telling(std::size_t more) const {
    std::optional<std::size_t> best;
    std::size_t most = 0;
    for (const std::size_t n : order_) {
      if (kept_[n] || new_programs(n) > more) continue;
      const std::size_t values = new_values(n);
      if (values > most) {
        best = n;
        most = values;
      }
    }
    return best;
  }

  void keep(std::size_t n) {
    kept_[n] = true;
    for (const runtime::ProgramName& program : needs_[n]) built_.add(program);
  }

  void keep_what_is_built() {
    for (const std::size_t n : order_) {
      if (!kept_[n] && new_programs(n) == 0) keep(n);
    }
  }

  const std::vector<Programs>& needs_;
  Built& built_;
  std::vector<bool> kept_;
  std::vector<std::size_t> order_;  // the most popular first
  std::map<std::string, std::size_t> users_;
};

}  // namespace

void pin_configs(std::vector<Candidate>& candidates, std::vector<Config>& pinned,
                 const std::function<bool(const Candidate&, const Config&)>& accepted) {
  std::vector<std::pair<Config, std::size_t>> wanted;  // and by how many
  for (const Candidate& candidate : candidates) {
    const Config& own = candidate.configs.front();
    const auto known = std::ranges::find(wanted, own, &std::pair<Config, std::size_t>::first);
    if (known == wanted.end()) {
      wanted.emplace_back(own, 1);
    } else {
      ++known->second;
    }
  }
  std::ranges::stable_sort(wanted, std::ranges::greater(), &std::pair<Config, std::size_t>::second);
  for (const auto& [config, count] : wanted) {
    const bool is_new = std::ranges::find(pinned, config) == pinned.end();
    if (is_new && pinned.size() < kPinned) pinned.push_back(config);
  }
  for (Candidate& candidate : candidates) {
    candidate.config = candidate.configs.front();
    if (std::ranges::find(pinned, candidate.config) != pinned.end()) continue;
    const auto other = std::ranges::find_if(
        pinned, [&](const Config& config) { return accepted(candidate, config); });
    if (other != pinned.end()) candidate.config = *other;
  }
}

void Built::add(const runtime::ProgramName& program) {
  programs.insert(program.key());
  kernels.insert(program.kernel);
  values.merge(values_of(program));
}

std::vector<bool> sample_of(const std::vector<Programs>& needs, const Worth& worth, Built& built) {
  return Sampler(needs, built).sample(worth);
}

}  // namespace tessera::conformance
