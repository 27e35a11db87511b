// SPDX-License-Identifier: Apache-2.0
// The generator of random products: every call is valid, and a seed gives the same call again.
// Needs no device; tessera_conformance --random-of matmul runs them.
#include "operations/matmul/random.hpp"

#include <gtest/gtest.h>

#include "support/random_checks.hpp"

namespace tessera::testing {
namespace {

TEST(MatmulRandom, ASeedGivesTheSameCall) { expect_a_seed_gives_the_same_call(random_matmul); }

TEST(MatmulRandom, EveryCallIsValid) { expect_every_call_is_valid(random_matmul); }

}  // namespace
}  // namespace tessera::testing
