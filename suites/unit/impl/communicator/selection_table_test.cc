// SPDX-License-Identifier: Apache-2.0
// Tables: what is read, what is refused, and what `auto` takes by them.
#include "impl/communicator/selection_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

using testing::HasSubstr;

const std::string kHeader =
    "collective,place,crowded,buffers,ranks_from,ranks_to,bytes_from,bytes_to,algorithm,segment,stores,source\n";

SelectionTable table_with(const std::string& rows) {
  auto table = SelectionTable::parse("mine.csv", kHeader + rows);
  EXPECT_TRUE(table.is_ok()) << table.status().message();
  return std::move(table).value();
}

std::string refusal_of(const std::string& text) {
  const auto table = SelectionTable::parse("mine.csv", text);
  return table.is_ok() ? "taken" : std::string(table.status().message());
}

std::string taken(const SelectionTable& table, const ChoiceOf& of) {
  ChoiceOf with = of;
  with.table = &table;
  const Chosen chosen = choose(with);
  return to_text(TunedAlgorithm{.algorithm = chosen.algorithm, .tuning = chosen.tuning});
}

ChoiceOf call_of(int ranks, std::int64_t bytes) {
  return {.problem = {.collective = Collective::all_reduce, .ranks = ranks}, .cores = 2, .bytes = bytes};
}

TEST(SelectionTable, TheFirstRowThatFitsIsTaken) {
  const SelectionTable table = table_with(
      "all_reduce,host,any,any,1,any,0,99,ring,0,tried,measured\n"
      "all_reduce,host,any,any,1,any,0,any,halving,0,tried,measured\n");
  EXPECT_EQ(taken(table, call_of(2, 8)), "ring");
  EXPECT_EQ(taken(table, call_of(2, 100)), "halving");
}

TEST(SelectionTable, RowsFitByRanksCoresBuffersAndBytes) {
  const SelectionTable table = table_with(
      "all_reduce,host,no,private,2,2,100,200,ring,64K,streamed,measured\n"
      "all_reduce,host,yes,any,3,4,0,any,halving,0,plain,measured\n");
  EXPECT_EQ(taken(table, call_of(2, 100)), "ring+64K+streamed");
  EXPECT_EQ(taken(table, call_of(2, 200)), "ring+64K+streamed");
  EXPECT_EQ(taken(table, call_of(4, 8)), "halving+plain");
  const auto otherwise = [](const ChoiceOf& of) {
    return std::string(choose_algorithm(of.problem, of.buffers, of.cores, of.bytes).name);
  };
  // What is built in holds where no row fits.
  for (const ChoiceOf& of : {call_of(2, 99), call_of(2, 201), call_of(5, 8)}) {
    EXPECT_EQ(std::string(without_tuning(taken(table, of))), otherwise(of));
  }
  ChoiceOf shared = call_of(2, 150);
  shared.buffers = Buffers::shared;
  EXPECT_EQ(std::string(without_tuning(taken(table, shared))), otherwise(shared));
  ChoiceOf roomy = call_of(4, 8);
  roomy.cores = 4;
  EXPECT_EQ(std::string(without_tuning(taken(table, roomy))), otherwise(roomy));
}

TEST(SelectionTable, SaysWhereARowIsFrom) {
  const SelectionTable table = table_with(
      "reduce,host,any,any,1,any,0,99,knomial,0,tried,measured\n"
      "reduce,host,any,any,1,any,100,199,knomial,0,tried,formula\n"
      "reduce,hosts,any,any,1,any,0,any,knomial,0,tried,simulated fat tree\n");
  ChoiceOf of{.problem = {.collective = Collective::reduce, .ranks = 8}, .cores = 2, .bytes = 8, .table = &table};
  EXPECT_TRUE(choose(of).is_measured);
  of.bytes = 150;
  EXPECT_FALSE(choose(of).is_measured);
  of.on = RanksPlace::several_hosts;
  EXPECT_FALSE(choose(of).is_measured);
  EXPECT_EQ(choose(of).simulated_on, "fat tree");
}

TEST(SelectionTable, IsReadAsItIsWritten) {
  const SelectionTable table = table_with(
      "all_reduce,host,no,private,2,2,100,200,ring,65536,streamed,measured\n"
      "barrier,hosts,any,any,1,any,0,any,dissemination,0,tried,simulated fat tree\n");
  std::vector<TableRow> rows = table.rows();
  rows[0].gain_low = "1.25";
  const std::string text = table_text(rows, {"of a test"});
  EXPECT_TRUE(text.starts_with("# of a test\n"));
  const auto again = SelectionTable::parse("again.csv", text);
  ASSERT_TRUE(again.is_ok()) << again.status().message();
  EXPECT_EQ(table_text(again.value().rows(), {"of a test"}), text);
  EXPECT_EQ(again.value().rows()[0].gain_low, "1.25");
  EXPECT_EQ(again.value().rows()[0].tuning, table.rows()[0].tuning);
}

TEST(SelectionTable, ItsHashIsThatOfItsBytes) {
  const SelectionTable one = table_with(""), same = table_with(""), other = table_with("# remark\n");
  EXPECT_EQ(one.hash(), same.hash());
  EXPECT_NE(one.hash(), other.hash());
  EXPECT_EQ(one.hash().size(), 16U);
  EXPECT_EQ(one.id(), "mine.csv:" + one.hash());
}

TEST(SelectionTable, TakesColumnsInAnyOrderAndLinesOfOtherEditors) {
  const auto table = SelectionTable::parse(
      "x",
      "# remark\r\nalgorithm,collective,place,crowded,buffers,ranks_from,ranks_to,bytes_from,bytes_to,segment,stores,"
      "source\r\n\r\nring,all_reduce,host,any,any,1,any,0,any,0,tried,measured");
  ASSERT_TRUE(table.is_ok()) << table.status().message();
  EXPECT_EQ(table.value().rows().front().algorithm->name, "ring");
}

TEST(SelectionTable, WhatIsWrongIsNamedByLineAndColumn) {
  const auto with = [](const std::string& row) { return refusal_of("# remark\n" + kHeader + row + "\n"); };
  EXPECT_THAT(with("all_reduc,host,any,any,1,any,0,any,ring,0,tried,measured"),
              HasSubstr("line 3, column 1 (collective): unknown collective 'all_reduc': did you mean 'all_reduce'?"));
  EXPECT_THAT(with("all_reduce,devise,any,any,1,any,0,any,ring,0,tried,measured"),
              HasSubstr("line 3, column 2 (place): unknown place 'devise': did you mean 'device'?"));
  EXPECT_THAT(with("all_reduce,host,maybe,any,1,any,0,any,ring,0,tried,measured"), HasSubstr("column 3 (crowded)"));
  EXPECT_THAT(with("all_reduce,host,any,privat,1,any,0,any,ring,0,tried,measured"),
              HasSubstr("column 4 (buffers): unknown kind of buffers 'privat': did you mean 'private'?"));
  EXPECT_THAT(with("all_reduce,host,any,any,0,any,0,any,ring,0,tried,measured"),
              HasSubstr("column 5 (ranks_from): '0' is not a number of ranks: a whole number from 1"));
  EXPECT_THAT(with("all_reduce,host,any,any,4,2,0,any,ring,0,tried,measured"),
              HasSubstr("column 6 (ranks_to): '2' is before ranks_from, which is 4: did you mean '4'?"));
  EXPECT_THAT(with("all_reduce,host,any,any,1,any,-1,any,ring,0,tried,measured"), HasSubstr("column 7 (bytes_from)"));
  EXPECT_THAT(with("all_reduce,host,any,any,1,any,10,9,ring,0,tried,measured"),
              HasSubstr("column 8 (bytes_to): '9' is before bytes_from"));
  EXPECT_THAT(with("all_reduce,host,any,any,1,any,0,any,knomial,0,tried,measured"), HasSubstr("column 9 (algorithm)"));
  EXPECT_THAT(with("all_reduce,host,any,any,1,any,0,any,ring,5,tried,measured"), HasSubstr("column 10 (segment)"));
  EXPECT_THAT(with("all_reduce,host,any,any,1,any,0,any,ring,0,trie,measured"),
              HasSubstr("column 11 (stores): unknown kind of stores 'trie': did you mean 'tried'?"));
  EXPECT_THAT(with("all_reduce,host,any,any,1,any,0,any,ring,0,tried,mesured"),
              HasSubstr("column 12 (source): 'mesured' is no source"));
  EXPECT_THAT(with("all_reduce,host,any,any,1,any,0,any,ring,0,tried"),
              HasSubstr("line 3 has 11 fields, and the first line 12 columns"));
  EXPECT_THAT(with("all_reduce,host,any,any,1,any,0,any,\"ring\",0,tried,measured"), HasSubstr("neither quotes"));
  EXPECT_THAT(with(std::string("all_reduce,host,any,any,1,any,0,any,ring,0,tried,simulated \x1b[2J")),
              HasSubstr("column 12 (source): 'simulated \\x1b[2J'"));
  EXPECT_THAT(with("all_reduce,host,any,any,1,any,0,any,ring,0,tried,simulated " + std::string(200, 'x')),
              HasSubstr("at most 100"));
}

TEST(SelectionTable, ThatIsNoneIsRefused) {
  EXPECT_THAT(refusal_of(""), HasSubstr("this is no selection table of tutti"));
  EXPECT_THAT(refusal_of("collective,place\n"), HasSubstr("no column 'crowded'"));
  EXPECT_THAT(refusal_of("algoritm\n"),
              HasSubstr("line 1, column 1: unknown column 'algoritm': did you mean 'algorithm'?"));
  EXPECT_THAT(refusal_of("place,place\n"), HasSubstr("column 2: 'place' is there twice"));
  EXPECT_THAT(refusal_of(std::string(kMostInTable + 1, '#')), HasSubstr("at most 1048576"));
  std::string rows = kHeader;
  for (std::size_t i = 0; i <= kMostTableRows; ++i)
    rows += "barrier,host,any,any,1,any,0,any,dissemination,0,tried,formula\n";
  EXPECT_THAT(refusal_of(rows), HasSubstr("line 4098: a selection table has at most 4096 rows"));
}

TEST(SelectionTable, ThatIsBuiltInIsRead) {
  EXPECT_EQ(SelectionTable::shipped().name(), "shipped");
  EXPECT_EQ(&SelectionTable::of(nullptr), &SelectionTable::shipped());
}

TEST(Tuned, AlgorithmsAreFoundByTheirText) {
  EXPECT_EQ(to_text(find_tuned(Collective::all_reduce, "ring+streamed+64K").value()), "ring+64K+streamed");
  EXPECT_THAT(std::string(find_tuned(Collective::all_reduce, "rung+64K").status().message()),
              HasSubstr("did you mean 'ring'?"));
  EXPECT_FALSE(find_tuned(Collective::all_reduce, "ring+sixty").is_ok());
}

}  // namespace
}  // namespace tutti
