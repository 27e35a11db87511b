// SPDX-License-Identifier: Apache-2.0
#include "base/printable.hpp"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(Printable, LeavesTextAlone) {
  for (const char* text : {"", "plain 'text' \\ {}", "é – ключ 日本 😀", "100 %"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, EscapesWhatATerminalObeys) {
  EXPECT_EQ(printable("a\x1b[31mb"), "a\\x1b[31mb");
  EXPECT_EQ(printable("a\nb\r\tc"), "a\\nb\\r\\tc");
  EXPECT_EQ(printable(std::string_view("\0\x07\x7f", 3)), "\\x00\\x07\\x7f");
  EXPECT_EQ(printable("\xc2\x9b 31m"), "\\u009b 31m") << "C1, in UTF-8";
  EXPECT_EQ(printable("\xe2\x80\xae x"), "\\u202e x") << "right to left from here on";
  EXPECT_EQ(printable("\xe2\x80\xa8"), "\\u2028");
}

TEST(Printable, EscapesWhatIsNoUtf8) {
  EXPECT_EQ(printable("\x9b"), "\\x9b") << "C1, in Latin-1";
  EXPECT_EQ(printable("a\xff\xfez"), "a\\xff\\xfez");
  EXPECT_EQ(printable("\xc3"), "\\xc3") << "cut short";
  EXPECT_EQ(printable("\xc0\x8a"), "\\xc0\\x8a") << "a long form of a newline";
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "half of a surrogate pair";
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond Unicode";
}

TEST(Printable, LinesStayLines) {
  EXPECT_EQ(printable_lines("a\n\tb\x1b\r\n"), "a\n\tb\\x1b\\r\n");
}

}  // namespace
}  // namespace tessera
