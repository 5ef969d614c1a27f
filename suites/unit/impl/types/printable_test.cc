// SPDX-License-Identifier: Apache-2.0
#include "impl/types/printable.h"

#include <string>

#include <gtest/gtest.h>

#include "impl/types/names.h"

namespace tutti {
namespace {

TEST(Printable, LeavesLettersLinesAndTabs) {
  for (const char* text : {"", "a b\tc\nd", "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x8e\xb6", "\\x1b", "\xc2\xa0"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, WritesOutWhatSteersATerminal) {
  EXPECT_EQ(printable("\x1b]0;title\x07 a\x7f"), "\\x1b]0;title\\x07 a\\u007f");
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m \xc2\x85 \xc2\x80"),
            "\\u009b31m \\u0085 \\u0080")
      << "C1 as UTF-8";
  EXPECT_EQ(printable("\x9b"
                      "31m"),
            "\\x9b31m")
      << "C1 as a byte";
  EXPECT_EQ(printable("100 %\rok\r\nnext\r"), "100 %\\x0dok\nnext\\x0d");
}

TEST(Printable, WritesOutWhatTurnsOrEndsALine) {
  EXPECT_EQ(printable("a\xe2\x80\xae"
                      "b\xe2\x81\xa6"
                      "c\xe2\x80\xa8"
                      "d"),
            "a\\u202eb\\u2066c\\u2028d");
  EXPECT_EQ(printable("\xe2\x80\xad\xe2\x81\xa9\xe2\x80\x8f\xef\xbf\xbf"), "\\u202d\\u2069\\u200f\\uffff");
}

TEST(Printable, WritesOutBytesThatAreNoText) {
  EXPECT_EQ(printable("\xff \xc3"), "\\xff \\xc3");
  EXPECT_EQ(printable("\xc0\x8a \xe0\x80\x8a"), "\\xc0\\x8a \\xe0\\x80\\x8a") << "too long a form of a line end";
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond Unicode";
}

TEST(Printable, ChangesNothingTwice) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  for (const char* more : {"\xc2\x9b", "\xe2\x80\xae", "\xc3\xa4", "\r\n"}) all += more;
  EXPECT_EQ(printable(printable(all)), printable(all));
}

TEST(Printable, ALineHasNoLineEnds) { EXPECT_EQ(printable_line("a\nb\tc\x1b"), "a\\nb\\tc\\x1b"); }

TEST(Printable, ABeginningEndsWithAWholeCharacter) {
  const std::string euro = "ab\xe2\x82\xac";
  EXPECT_EQ(beginning_of(euro, 5), euro);
  EXPECT_EQ(beginning_of(euro, 4), "ab");
  EXPECT_EQ(beginning_of(euro, 3), "ab");
  EXPECT_EQ(beginning_of(euro, 2), "ab");
  EXPECT_EQ(beginning_of("abc", 2), "ab");
  EXPECT_EQ(beginning_of("\xff\xff\xff\xff", 3), "\xff\xff\xff") << "bytes that are no text are not waited for";
}

TEST(Shown, IsOneLineAndCutBetweenCharacters) {
  EXPECT_EQ(shown("a\n\xc2\x9b\xff"), "a\\n\\u009b\\xff");
  const std::string longer = std::string(kMostShown - 1, 'a') + "\xc3\xa4";
  EXPECT_EQ(shown(longer), std::string(kMostShown - 1, 'a') + "...");
}

}  // namespace
}  // namespace tutti
