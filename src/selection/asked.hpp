// SPDX-License-Identifier: Apache-2.0
// The tiers in which somebody said what to take: an override with the call, an overlay around it.
// What they ask for is given or refused, never replaced. All of these throw InvalidArgument or
// Unsupported with the refusal.
#pragma once

#include <optional>
#include <string>

#include "selection/selector.hpp"

namespace tessera::selection {

const Variant& known_variant(const Problem& problem, const std::string& name, Tier asked_by);

// An override with a configuration, perhaps with a variant.
Choice exact_override(const Problem& problem, const DeviceProfile& profile, const Override& asked);
// An override with a variant for which nothing is known and no rule may speak.
Choice first_override(const Problem& problem, const Variant& variant, const DeviceProfile& profile);
// Nothing when no overlay of this thread speaks about the problem.
std::optional<Choice> overlay_choice(const Problem& problem, const DeviceProfile& profile);

// The sentence for the end of the chain, with what every variant says.
std::string nothing_left(const Problem& problem, const DeviceProfile& profile);

}  // namespace tessera::selection
