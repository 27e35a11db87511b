// SPDX-License-Identifier: Apache-2.0
// How norms are computed where, and which way is taken untuned.
#include "operations/norms/problem.hpp"

namespace tessera::operations::norms {

std::vector<Variant> norm_variants(bool backward) {
  return {rows_variant(backward), cpu_variant(backward)};
}

std::vector<Rule> norm_rules() { return {cpu_rule(), rows_rule()}; }

}  // namespace tessera::operations::norms
