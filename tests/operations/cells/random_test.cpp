// SPDX-License-Identifier: Apache-2.0
// The generator of random layers: every call is valid, and a seed gives the same call again. Needs
// no device; tessera_conformance --random-of cells runs them.
#include "operations/cells/random.hpp"

#include <gtest/gtest.h>

#include <set>

namespace tessera::testing {
namespace {

TEST(CellsRandom, ASeedGivesTheSameCall) {
  std::set<std::string> names;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const RandomCall a = random_cells(seed), b = random_cells(seed);
    EXPECT_EQ(a.shape.name, b.shape.name);
    EXPECT_EQ(a.shape.operands, b.shape.operands);
    EXPECT_EQ(a.kernel, b.kernel);
    names.insert(a.operation + a.shape.name);
  }
  EXPECT_GT(names.size(), 195U);
}

TEST(CellsRandom, EveryCallIsValid) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    const RandomCall call = random_cells(seed);
    EXPECT_NO_THROW(
        make_problem(find_operation(call.operation), call.shape.operands, call.shape.options))
        << call.operation << " " << call.shape.name;
  }
}

}  // namespace
}  // namespace tessera::testing
