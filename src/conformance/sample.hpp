// SPDX-License-Identifier: Apache-2.0
// Which cases a check takes of a variant, and in which configuration.
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tessera/record.hpp"

namespace tessera::conformance {

// A case that a variant takes.
struct Candidate {
  std::size_t number = 0;         // in the operation's table
  std::vector<Config> configs{};  // that it may run in, the one that it would choose first
  Config config{};                // that it does run in
};

// Two configurations that suffice for the cases: those that are `pinned` already, then the most
// asked for. Every case takes its own where that is one of them, else one of them that does not
// refuse it, else its own. Sets Candidate::config and completes `pinned`.
void pin_configs(std::vector<Candidate>& candidates, std::vector<Config>& pinned,
                 const std::function<bool(const Candidate&, const Config&)>& accepted);

// The programs of a case, as text that tells them apart.
using Programs = std::vector<std::string>;

// Of cases by what they need built, those that fit into so many programs beside those of `built`,
// to which theirs are added; cases whose programs most others need as well come first, then those
// that need few. The result says for each whether it is kept.
std::vector<bool> within_budget(const std::vector<Programs>& needs, std::size_t most,
                                std::set<std::string>& built);

}  // namespace tessera::conformance
