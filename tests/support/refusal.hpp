// SPDX-License-Identifier: Apache-2.0
// Calls that contradict themselves, and what is said of them.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "support/reference.hpp"
#include "tessera/error.hpp"

namespace tessera::testing {

inline void expect_refusal(const std::string& operation, const Specs& specs,
                           const std::string& sentence, Options options = {}) {
  try {
    problem_of(operation, specs, std::move(options));
    ADD_FAILURE() << "no refusal; expected: " << sentence;
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(std::string(error.what()), ::testing::HasSubstr(sentence));
  }
}

}  // namespace tessera::testing
