// SPDX-License-Identifier: Apache-2.0
#include "harness/repeat/repeats.h"

#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness::repeat {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<std::byte> bytes_of(const std::vector<std::uint32_t>& words) {
  std::vector<std::byte> bytes(words.size() * sizeof(std::uint32_t));
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

std::string id_of(const std::string& system, const std::string& dtype = "float", const std::string& op = "sum") {
  return "all_reduce/" + system + "/shm/" + dtype + "/" + op + "/P2.processes/none/16B/out/private/isolated";
}

const std::vector<std::uint32_t> kOnes{0x3f800000, 0x3f800000, 0x3f800000, 0x3f800000};

CallResult result(const std::string& id, int launch, int call, int rank, const std::vector<std::uint32_t>& words) {
  return {.case_id = id, .launch = launch, .call = call, .rank = rank, .bytes = bytes_of(words)};
}

TEST(FirstDifference, IsTheLowestBitOfTheFirstElement) {
  const auto mine = bytes_of({1, 0x3f80000c, 7}), other = bytes_of({1, 0x3f800000, 9});
  const auto found = first_difference(mine, other, Dtype::f32);
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, (Differing{.element = 1, .bit = 2, .mine = 0x3f80000c, .other = 0x3f800000, .elements = 2}));
  EXPECT_FALSE(first_difference(mine, mine, Dtype::f32));
}

TEST(FirstDifference, AShorterResultDiffersAtItsEnd) {
  const auto found = first_difference(bytes_of({0}), bytes_of({0, 0}), Dtype::f32);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->element, 1);
}

TEST(Repeats, TheFirstCallThatDiffersIsNamed) {
  Repeats repeats;
  std::vector<std::uint32_t> one_bit = kOnes;
  one_bit[2] ^= 1U;
  for (int launch = 1; launch <= 3; ++launch) {
    for (int call = 0; call < 2; ++call) {
      for (int rank = 0; rank < 2; ++rank) {
        const bool differs = launch == 2 && call == 1 && rank == 1;
        ASSERT_TRUE(repeats.add(result(id_of("openmpi.none"), launch, call, rank, differs ? one_bit : kOnes)).is_ok());
      }
    }
  }
  const auto cells = repeats.cells();
  ASSERT_THAT(cells, SizeIs(1));
  ASSERT_THAT(cells[0].systems, SizeIs(1));
  const OfSystem& system = cells[0].systems[0];
  EXPECT_EQ(system.name, "openmpi");
  EXPECT_EQ(system.launches.size(), 3U);
  EXPECT_EQ(system.calls, 2);
  EXPECT_EQ(system.results, 10);
  EXPECT_EQ(system.differ, 1);
  ASSERT_TRUE(system.first);
  EXPECT_EQ(system.first->launch, 2);
  EXPECT_EQ(system.first->call, 1);
  EXPECT_EQ(system.first->rank, 1);
  EXPECT_EQ(system.first->place.element, 2);
  EXPECT_EQ(count_wrong(cells), 1);
  EXPECT_THAT(text_of(cells[0]),
              AllOf(HasSubstr("must be equal: first in launch 2, call 1, rank 1, element 2, bit 0: "),
                    HasSubstr("0x3f800001"), HasSubstr("0x3f800000"), HasSubstr("1 of 10 results")));
}

TEST(Repeats, SumsOfFloatsOfTwoSystemsMayDiffer) {
  Repeats repeats;
  std::vector<std::uint32_t> other = kOnes;
  other[0] = 0x3f800001;
  ASSERT_TRUE(repeats.add(result(id_of("tutti.ring"), 1, 0, 0, kOnes)).is_ok());
  ASSERT_TRUE(repeats.add(result(id_of("tutti.halving"), 1, 0, 0, other)).is_ok());
  const auto cells = repeats.cells();
  ASSERT_THAT(cells, SizeIs(1));
  EXPECT_TRUE(cells[0].may_differ);
  EXPECT_EQ(count_wrong(cells), 0);
  EXPECT_THAT(text_of(cells[0]),
              AllOf(HasSubstr("as it may"), HasSubstr("from tutti.ring: first in rank 0, element 0, bit 0")));
}

TEST(Repeats, WhereNothingIsRoundedTwoSystemsMustBeEqual) {
  for (const auto& [dtype, op] : {std::pair("int32", "sum"), std::pair("float", "max")}) {
    Repeats repeats;
    ASSERT_TRUE(repeats.add(result(id_of("tutti.ring", dtype, op), 1, 0, 0, {1, 2, 3, 4})).is_ok());
    ASSERT_TRUE(repeats.add(result(id_of("openmpi.none", dtype, op), 1, 0, 0, {1, 2, 3, 5})).is_ok());
    EXPECT_FALSE(repeats.cells()[0].may_differ);
    EXPECT_EQ(count_wrong(repeats.cells()), 1) << dtype << op;
    EXPECT_THAT(text_of(repeats.cells()[0]), HasSubstr("must be equal (nothing is rounded)"));
  }
}

TEST(Repeats, EqualResultsSayAsMuch) {
  Repeats repeats;
  for (const char* system : {"tutti.ring", "openmpi.none"}) {
    for (int launch = 1; launch <= 5; ++launch)
      ASSERT_TRUE(repeats.add(result(id_of(system), launch, 0, 0, kOnes)).is_ok());
  }
  EXPECT_EQ(count_wrong(repeats.cells()), 0);
  EXPECT_THAT(text_of(repeats.cells()[0]),
              HasSubstr("  5 launches x 1 call: the same bits, of tutti.ring, openmpi alike\n"));
}

TEST(Repeats, CellsComeInTheOrderThatWasAsked) {
  const auto cell_of = [](const std::string& op) { return "all_reduce" + id_of("x", "float", op).substr(12); };
  Repeats repeats({cell_of("sum"), cell_of("max")});
  ASSERT_TRUE(repeats.add(result(id_of("tutti.ring", "float", "max"), 1, 0, 0, kOnes)).is_ok());
  ASSERT_TRUE(repeats.add(result(id_of("tutti.ring", "float", "min"), 1, 0, 0, kOnes)).is_ok());
  ASSERT_TRUE(repeats.add(result(id_of("tutti.ring"), 1, 0, 0, kOnes)).is_ok());
  const auto cells = repeats.cells();
  ASSERT_THAT(cells, SizeIs(3));
  EXPECT_EQ(cells[0].cell, cell_of("sum"));
  EXPECT_EQ(cells[1].cell, cell_of("max"));
  EXPECT_EQ(cells[2].cell, cell_of("min"));
}

TEST(ResultMessage, PartsBecomeTheResultAgain) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{4096}, std::size_t{700'000}}) {
    CallResult sent{.case_id = id_of("tutti.ring"), .call = 3, .rank = 1, .bytes = std::vector<std::byte>(size)};
    for (std::size_t i = 0; i < size; ++i) sent.bytes[i] = static_cast<std::byte>(i * 7);
    ResultParts parts;
    std::optional<CallResult> got;
    int messages = 0;
    const Status status = send_result(sent, [&](std::string_view text) -> Status {
      EXPECT_FALSE(got) << "the last part was not the last";
      ++messages;
      TUTTI_ASSIGN_OR_RETURN(got, parts.add(text));
      return {};
    });
    ASSERT_TRUE(status.is_ok()) << status.message();
    ASSERT_TRUE(got);
    EXPECT_EQ(*got, sent);
    EXPECT_EQ(messages, size > 256 * 1024 ? 3 : 1);
  }
}

TEST(ResultMessage, APartThatIsNotTheNextIsRefused) {
  std::vector<std::string> texts;
  const CallResult sent{.case_id = id_of("tutti.ring"), .bytes = std::vector<std::byte>(700'000)};
  ASSERT_TRUE(send_result(sent, [&](std::string_view text) {
                texts.emplace_back(text);
                return Status();
              }).is_ok());
  ASSERT_THAT(texts, SizeIs(3));
  ResultParts parts;
  ASSERT_TRUE(parts.add(texts[0]).is_ok());
  EXPECT_FALSE(parts.add(texts[2]).is_ok());
}

TEST(ResultMessage, WhatIsNoPartIsRefused) {
  const std::string head = R"({"case":"x","call":0,"rank":0,"bytes":4,"at":0})";
  for (const std::string& text :
       {std::string(), std::string("{}\n"), head, head + "\n0", head + "\n0g", head + "\n0000000000",
        std::string(R"({"case":"x","call":0,"rank":0,"bytes":4,"at":2})") + "\n00",
        std::string(R"({"case":"x","call":-1,"rank":0,"bytes":4,"at":0})") + "\n00",
        std::string(R"({"case":"x","call":0,"rank":0,"bytes":99999999999,"at":0})") + "\n00"}) {
    ResultParts parts;
    EXPECT_FALSE(parts.add(text).is_ok()) << text;
  }
}

}  // namespace
}  // namespace tutti::harness::repeat
