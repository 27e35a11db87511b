// SPDX-License-Identifier: Apache-2.0
// The generator of random layers: every call is valid, and a seed gives the same call again. Needs
// no device; tessera_conformance --random-of cells runs them.
#include "operations/cells/random.hpp"

#include <gtest/gtest.h>

#include "support/random_checks.hpp"

namespace tessera::testing {
namespace {

TEST(CellsRandom, ASeedGivesTheSameCall) { expect_a_seed_gives_the_same_call(random_cells); }

TEST(CellsRandom, EveryCallIsValid) { expect_every_call_is_valid(random_cells); }

}  // namespace
}  // namespace tessera::testing
