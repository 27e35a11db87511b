// SPDX-License-Identifier: Apache-2.0
// What a generator of random calls has to keep, of any family.
#pragma once

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "support/random_calls.hpp"
#include "tessera/record.hpp"

namespace tessera::testing {

using DrawCall = RandomCall (*)(std::uint64_t seed);

inline void expect_a_seed_gives_the_same_call(DrawCall draw) {
  std::set<std::string> names;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const RandomCall a = draw(seed), b = draw(seed);
    EXPECT_EQ(a.shape.name, b.shape.name);
    EXPECT_EQ(a.shape.operands, b.shape.operands);
    EXPECT_EQ(a.kernel, b.kernel);
    names.insert(a.shape.name);
  }
  EXPECT_GT(names.size(), 195U);
}

inline void expect_every_call_is_valid(DrawCall draw) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    const RandomCall call = draw(seed);
    EXPECT_NO_THROW(
        make_problem(find_operation(call.operation), call.shape.operands, call.shape.options))
        << call.operation << " " << call.shape.name;
  }
}

}  // namespace tessera::testing
