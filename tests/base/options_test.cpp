// SPDX-License-Identifier: Apache-2.0
#include "tessera/options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/error.hpp"

namespace tessera {
namespace {

TEST(ParseOption, TakesEveryUsualWordForABoolean) {
  for (const char* yes : {"true", "True", "TRUE", "on", "On", "yes", "YES", "1"})
    EXPECT_EQ(parse_option("causal", yes, false), OptionValue(true)) << yes;
  for (const char* no : {"false", "False", "FALSE", "off", "OFF", "no", "No", "0"})
    EXPECT_EQ(parse_option("causal", no, true), OptionValue(false)) << no;
  for (const char* bad : {"", "t", "2", "truely", "-1", " true"}) {
    try {
      parse_option("causal", bad, false);
      ADD_FAILURE() << bad;
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("'causal' takes true or false"));
    }
  }
}

TEST(ParseOption, TakesNoneForTheTextOrForNothing) {
  EXPECT_EQ(parse_option("activation", "none", std::string("relu")),
            OptionValue(std::string("none")));
  EXPECT_EQ(parse_option("softmax_scale", "none", 1.0), OptionValue());
  EXPECT_EQ(parse_option("output_dtype", "none", {}), OptionValue());
}

}  // namespace
}  // namespace tessera
