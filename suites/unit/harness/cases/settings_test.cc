// SPDX-License-Identifier: Apache-2.0
// Settings as systems: one name for each, and no text that could be something else in an id, a row or a file.
#include "harness/cases/settings.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/cases/case.h"
#include "harness/cases/sweep.h"

namespace tutti::harness::cases {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<std::string> kKnown{"tutti", "openmpi", "mpich"};

TEST(Settings, HaveOneNameHoweverTheyWereTyped) {
  EXPECT_THAT(parse_backends("openmpi{b=2;a=self,^x}", kKnown).value(), ElementsAre("openmpi{a=self,^x;b=2}"));
  EXPECT_THAT(parse_backends("openmpi{a=1},openmpi{a=2},openmpi,tutti", kKnown).value(),
              ElementsAre("openmpi{a=1}", "openmpi{a=2}", "openmpi", "tutti"));
  EXPECT_THAT(parse_backends("openmpi{a=1;b=2},openmpi{b=2;a=1}", kKnown).value(),
              ElementsAre("openmpi{a=1;b=2}", "openmpi{a=1;b=2}:2"));
  EXPECT_THAT(parse_backends("openmpi{a=1}:reduce+broadcast", kKnown).value(),
              ElementsAre("openmpi{a=1}:reduce+broadcast"));
}

TEST(Settings, ArePartOfASystem) {
  const std::string twin = "openmpi{a=x:2;b=1}:2";
  EXPECT_EQ(backend_of(twin), "openmpi");
  EXPECT_EQ(instance_of(twin), "openmpi{a=x:2;b=1}");
  EXPECT_TRUE(is_twin(twin));
  EXPECT_THAT(settings_of(twin), ElementsAre(Setting{"a", "x:2"}, Setting{"b", "1"}));
  EXPECT_EQ(instance_of("openmpi:2"), "openmpi");
  EXPECT_THAT(settings_of("openmpi:2"), ElementsAre());
  EXPECT_EQ(settings_text(settings_of(twin)), "{a=x:2;b=1}");
}

TEST(Settings, AreReadBackFromAnId) {
  Case one;
  one.collective = Collective::all_reduce;
  one.op = Op::sum;
  one.ranks = 2;
  set_bytes(one, 64);
  for (const char* system : {"openmpi{a=self,^x;b=2}", "openmpi{a=1}:2", "openmpi{a=1}:reduce+broadcast"}) {
    one.backend = system;
    const auto read = parse_case_id(case_id(one));
    ASSERT_TRUE(read.is_ok()) << read.status().message();
    EXPECT_EQ(read.value(), one);
  }
  for (const char* system :
       {"openmpi{b=2;a=1}", "openmpi{a=1;a=2}", "openmpi{}", "openmpi{a=1", "openmpi{a=1}x", "{a=1}", "openmpi{a=1}:3",
        "openmpi:3", "openmpi:", "openmpi:x:halves", "openmpi{a= }", "openmpi{a=\"}", "openmpi:halves:2"}) {
    one.backend = system;
    EXPECT_FALSE(parse_case_id(case_id(one)).is_ok()) << system;
  }
}

TEST(Settings, OfAnythingElseAreRefused) {
  const auto mistake = [](const std::string& text) {
    const auto parsed = parse_backends(text, kKnown);
    EXPECT_FALSE(parsed.is_ok()) << text;
    return parsed.is_ok() ? std::string() : std::string(parsed.status().message());
  };
  EXPECT_THAT(mistake("openmpi{a}"), HasSubstr("setting 'a' has no value: it must be NAME=VALUE"));
  EXPECT_THAT(mistake("openmpi{}"), HasSubstr("has no value"));
  EXPECT_THAT(mistake("openmpi{a=}"), HasSubstr("the value ''"));
  EXPECT_THAT(mistake("openmpi{a=/tmp/x}"),
              HasSubstr("the value '/tmp/x' must have letters, digits and _-^,+:@% only"));
  EXPECT_THAT(mistake("openmpi{a=0.5}"), HasSubstr("'0.5'"));
  EXPECT_THAT(mistake("openmpi{a-b=1}"), HasSubstr("the name 'a-b' must have letters, digits and '_' only"));
  EXPECT_THAT(mistake("openmpi{a=1;a=2}"), HasSubstr("setting 'a' is there twice"));
  EXPECT_THAT(mistake("openmpi{a=1"), HasSubstr("braces do not match"));
  EXPECT_THAT(mistake("openmpi{a={b=1}}"), HasSubstr("braces do not match"));
  EXPECT_THAT(mistake("openmpi}a=1{"), HasSubstr("braces do not match"));
  EXPECT_THAT(mistake("opnmpi{a=1}"), HasSubstr("did you mean 'openmpi'?"));
  EXPECT_THAT(mistake("openmpi{a=1}x"), HasSubstr("settings stand in braces at its end"));
  EXPECT_THAT(mistake("openmpi{a=1}:reduc"), HasSubstr("'reduc' is no composition"));
  EXPECT_THAT(mistake("openmpi{a=1},,tutti"), HasSubstr("did you mean 'openmpi{a=1},tutti'?"));
  EXPECT_THAT(mistake("openmpi{a=" + std::string(kMostInSettings, 'x') + "}"), HasSubstr("at most 200 are allowed"));
  for (const char* hostile :
       {"openmpi{a=\x1b[31m}", "openmpi{a=b c}", "openmpi{a=$(x)}", "openmpi{a=`x`}", "openmpi{a=\"b}",
        "openmpi{a=b\nc}", "openmpi{a=\xe2\x80\xae}", "openmpi{a=<b>}", "openmpi{a=b|c}"}) {
    EXPECT_THAT(mistake(hostile), HasSubstr("must have letters"));
  }
}

}  // namespace
}  // namespace tutti::harness::cases
