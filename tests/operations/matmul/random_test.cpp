// SPDX-License-Identifier: Apache-2.0
// The generator of random products: every call is valid, and a seed gives the same call again.
// Needs no device; tessera_conformance --random-of matmul runs them.
#include "operations/matmul/random.hpp"

#include <gtest/gtest.h>

#include <set>

namespace tessera::testing {
namespace {

TEST(MatmulRandom, ASeedGivesTheSameCall) {
  std::set<std::string> names;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const RandomCall a = random_matmul(seed), b = random_matmul(seed);
    EXPECT_EQ(a.shape.name, b.shape.name);
    EXPECT_EQ(a.shape.operands, b.shape.operands);
    EXPECT_EQ(a.kernel, b.kernel);
    names.insert(a.shape.name);
  }
  EXPECT_GT(names.size(), 195U);
}

TEST(MatmulRandom, EveryCallIsValid) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    const RandomCall call = random_matmul(seed);
    EXPECT_NO_THROW(
        make_problem(find_operation(call.operation), call.shape.operands, call.shape.options))
        << call.operation << " " << call.shape.name;
  }
}

}  // namespace
}  // namespace tessera::testing
