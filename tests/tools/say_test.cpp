// SPDX-License-Identifier: Apache-2.0
#include "tessera/output/say.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace tessera::tool {
namespace {

TEST(EscapedOutput, LetsThroughTextOnly) {
  std::ostringstream stream;
  {
    const EscapedOutput escaped(stream);
    stream << "plain é\n" << '\x1b' << "[2J" << 3 << '\n';
    stream << "\xe2" << std::string("\x80\x93") << "\xff"
           << std::flush;  // a character in two parts
    stream << "\trest";
  }
  EXPECT_EQ(stream.str(), "plain é\n\\x1b[2J3\n–\\xff\trest");
  stream << "\x1b";
  EXPECT_EQ(stream.str().back(), '\x1b') << "the stream is as it was";
}

TEST(OneLine, JoinsLists) {
  EXPECT_EQ(one_line("no variant:\n  a is\n  b is\n"), "no variant: a is; b is");
}

}  // namespace
}  // namespace tessera::tool
