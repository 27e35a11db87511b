// SPDX-License-Identifier: Apache-2.0
#include "conformance/sample.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

namespace tessera::conformance {
namespace {

constexpr std::size_t kPinned = 2;

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

std::vector<bool> within_budget(const std::vector<Programs>& needs, std::size_t most,
                                std::set<std::string>& built) {
  std::map<std::string, std::size_t> users;
  for (const Programs& programs : needs) {
    for (const std::string& program : programs) ++users[program];
  }
  // By how many others need what few need, then by how few of these programs it takes.
  const auto popularity = [&](std::size_t n) {
    std::size_t least = std::numeric_limits<std::size_t>::max();
    for (const std::string& program : needs[n]) least = std::min(least, users[program]);
    const auto rare = std::ranges::count_if(
        needs[n], [&](const std::string& program) { return users[program] == least; });
    return std::pair(least, -rare);
  };
  std::vector<std::size_t> order(needs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(), popularity);
  std::vector<bool> kept(needs.size(), false);
  const std::size_t limit = built.size() + most;
  for (const std::size_t n : order) {
    std::set<std::string> more(needs[n].begin(), needs[n].end());
    std::erase_if(more, [&](const std::string& program) { return built.contains(program); });
    if (built.size() + more.size() > limit) continue;
    built.merge(more);
    kept[n] = true;
  }
  return kept;
}

}  // namespace tessera::conformance
