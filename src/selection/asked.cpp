// SPDX-License-Identifier: Apache-2.0
#include "selection/asked.hpp"

#include <utility>

#include "selection/cache/overlay.hpp"
#include "selection/heuristics.hpp"
#include "tessera/error.hpp"

namespace tessera::selection {
namespace {

std::string said(const Variant& variant, const Config& config) {
  return variant.name + (config.empty() ? "" : "{" + config.to_string() + "}");
}

// The configuration that somebody wrote down for a variant.
Choice demanded(const Problem& problem, const Variant& variant, const Config& given,
                const DeviceProfile& profile, Tier tier) {
  const Config config = complete(variant, given);
  const Refusal no = refusal(problem, variant, config, profile);
  if (!no) return {.variant = variant.name, .config = config, .tier = tier, .origin = tier};
  const std::string sentence = problem.operation->name + ": the " + std::string(to_string(tier)) +
                               " " + said(variant, given) + " is not possible here: it " + *no;
  // With another configuration it would run: then the configuration is the wrong argument.
  if (first_fitting(problem, variant, profile)) throw InvalidArgument(sentence);
  throw Unsupported(sentence);
}

}  // namespace

const Variant& known_variant(const Problem& problem, const std::string& name, Tier asked_by) {
  if (const Variant* variant = problem.operation->find_variant(name)) return *variant;
  std::string names;
  for (const Variant& variant : problem.operation->variants) {
    names += (names.empty() ? "" : ", ") + variant.name;
  }
  throw InvalidArgument(problem.operation->name + ": the " + std::string(to_string(asked_by)) +
                        " names the variant '" + name + "'; there are " + names);
}

Choice exact_override(const Problem& problem, const DeviceProfile& profile, const Override& asked) {
  const Config& config = *asked.config;
  if (!asked.variant.empty()) {
    const Variant& variant = known_variant(problem, asked.variant, Tier::kOverride);
    return demanded(problem, variant, config, profile, Tier::kOverride);
  }
  // The first variant that takes these values; the names of the tunables tell variants apart.
  std::string refusals;
  for (const Variant* variant : by_preference(problem, profile)) {
    Config whole = complete(*variant, config);
    const Refusal no = refusal(problem, *variant, whole, profile);
    if (!no) {
      return {.variant = variant->name,
              .config = std::move(whole),
              .tier = Tier::kOverride,
              .origin = Tier::kOverride};
    }
    refusals += "\n  " + variant->name + " " + *no;
  }
  throw InvalidArgument(problem.operation->name + ": no variant takes the override {" +
                        config.to_string() + "}:" + refusals);
}

Choice first_override(const Problem& problem, const Variant& variant,
                      const DeviceProfile& profile) {
  if (auto config = first_fitting(problem, variant, profile)) {
    return {.variant = variant.name,
            .config = *std::move(config),
            .tier = Tier::kOverride,
            .origin = Tier::kHeuristics,
            .why = "the first configuration that fits"};
  }
  throw Unsupported(problem.operation->name + ": the override " + variant.name +
                    " is not possible here: it " +
                    refusal(problem, variant, profile).value_or("has no configuration that fits"));
}

std::optional<Choice> overlay_choice(const Problem& problem, const DeviceProfile& profile) {
  const auto entry = find_overlay(problem);
  if (!entry) return std::nullopt;
  const Variant& variant = known_variant(problem, entry->variant, Tier::kOverlay);
  std::optional<Config> config = entry->config;
  if (config->empty()) config = first_fitting(problem, variant, profile);
  if (config) return demanded(problem, variant, *config, profile, Tier::kOverlay);
  throw Unsupported(problem.operation->name + ": the overlay " + variant.name +
                    " is not possible here: it " +
                    refusal(problem, variant, profile).value_or("has no configuration that fits"));
}

std::string nothing_left(const Problem& problem, const DeviceProfile& profile) {
  std::string refusals;
  bool possible = false;
  for (const Variant& variant : problem.operation->variants) {
    const Refusal no = refusal(problem, variant, profile);
    possible = possible || !no;
    refusals += "\n  " + variant.name + " " + no.value_or("could run");
  }
  return problem.operation->name + " on " + profile.name +
         (possible ? ": no configuration is known, and the policy and tiers in force let none be "
                     "found:"
                   : ": no variant can run this call:") +
         refusals;
}

}  // namespace tessera::selection
