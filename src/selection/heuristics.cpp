// SPDX-License-Identifier: Apache-2.0
#include "selection/heuristics.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace tessera::selection {
namespace {

// Calls `use(rule, variant)` for each rule that applies, until it returns true. A rule may be an
// application's own; one that throws does not apply.
template <class Use>
void for_rules(const Problem& problem, const DeviceProfile& profile, Use use) {
  for (const Rule& rule : problem.operation->rules) {
    const Variant* variant = problem.operation->find_variant(rule.variant);
    if (variant == nullptr) continue;
    try {
      if (rule.when && !rule.when(problem, profile)) continue;
      if (use(rule, *variant)) return;
    } catch (const std::exception&) {
      continue;
    }
  }
}

std::optional<Config> config_of(const Rule& rule, const Variant& variant, const Problem& problem,
                                const DeviceProfile& profile) {
  if (!rule.config) return first_fitting(problem, variant, profile);
  Config config = complete(variant, rule.config(problem, profile));
  if (refusal(problem, variant, config, profile)) return std::nullopt;
  return config;
}

}  // namespace

std::optional<Choice> heuristic_choice(const Problem& problem, const DeviceProfile& profile,
                                       const Variant* only) {
  std::optional<Choice> choice;
  for_rules(problem, profile, [&](const Rule& rule, const Variant& variant) {
    if (only != nullptr && only != &variant) return false;
    auto config = config_of(rule, variant, problem, profile);
    if (!config) return false;
    choice = Choice{.variant = variant.name, .config = *std::move(config), .why = rule.why};
    return true;
  });
  if (choice) return choice;
  for (const Variant& variant : problem.operation->variants) {
    if (only != nullptr && only != &variant) continue;
    if (auto config = first_fitting(problem, variant, profile)) {
      return Choice{.variant = variant.name,
                    .config = *std::move(config),
                    .why = "the first configuration that fits"};
    }
  }
  return std::nullopt;
}

std::vector<const Variant*> by_preference(const Problem& problem, const DeviceProfile& profile) {
  std::vector<const Variant*> order;
  const auto add = [&](const Variant& variant) {
    if (std::ranges::count(order, &variant) == 0) order.push_back(&variant);
    return false;
  };
  for_rules(problem, profile, [&](const Rule&, const Variant& variant) { return add(variant); });
  for (const Variant& variant : problem.operation->variants) add(variant);
  return order;
}

std::vector<Candidate> candidates(const Problem& problem, const DeviceProfile& profile) {
  std::vector<Candidate> found;
  const auto offer = [&](const Variant& variant, Config config) {
    const bool known = std::ranges::any_of(found, [&](const Candidate& candidate) {
      return candidate.variant == &variant && candidate.config == config;
    });
    if (!known) found.push_back({&variant, std::move(config)});
  };
  // What the rules would take goes first: under a budget it is certain to be measured.
  for_rules(problem, profile, [&](const Rule& rule, const Variant& variant) {
    if (auto config = config_of(rule, variant, problem, profile))
      offer(variant, *std::move(config));
    return false;
  });
  for (const Variant& variant : problem.operation->variants) {
    for (Config& config : fitting(problem, variant, profile)) offer(variant, std::move(config));
  }
  return found;
}

}  // namespace tessera::selection
