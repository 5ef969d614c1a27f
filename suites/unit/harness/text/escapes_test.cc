// SPDX-License-Identifier: Apache-2.0
#include "harness/text/escapes.h"

#include <gtest/gtest.h>

namespace tutti::harness {
namespace {

TEST(Xml, EscapesWhatMeansSomethingAndWhatDoesNotExistThere) {
  EXPECT_EQ(xml_escaped("a<b>&\"c\"\x01\n"), "a&lt;b&gt;&amp;&quot;c&quot;\\x01\n");
}

TEST(Xml, HoldsNothingThatIsNoUtf8) {
  EXPECT_EQ(xml_escaped("t\xff.\x80"), "t\\xff.\\x80");
  EXPECT_EQ(xml_escaped("\xc3\xa4 \xe2\x82\xac \xf0\x9f\x8e\xb6"), "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x8e\xb6");
  EXPECT_EQ(xml_escaped("\xc3"), "\\xc3") << "cut off";
  EXPECT_EQ(xml_escaped("\xc3<"), "\\xc3&lt;");
  EXPECT_EQ(xml_escaped("\xc0\x8a"), "\\xc0\\x8a") << "a line end in too long a form";
  EXPECT_EQ(xml_escaped("\xe0\x80\x8a"), "\\xe0\\x80\\x8a");
  EXPECT_EQ(xml_escaped("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(xml_escaped("\xef\xbf\xbe \xef\xbf\xbd\x7f"), "\\ufffe \xef\xbf\xbd\\u007f");
}

TEST(Prometheus, ALabelEndsWithItsOwnQuote) {
  EXPECT_EQ(prometheus_label("node", "a\"b\\c\nd"), R"(node="a\"b\\c\nd")");
}

}  // namespace
}  // namespace tutti::harness
