// SPDX-License-Identifier: Apache-2.0
// The tables of dtypes and ops: names that scripts rely on, verbatim and in this order, and which pairs there are.
#include "impl/types/op.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

template <class Id>
std::vector<std::string> names(const std::vector<Id>& ids) {
  std::vector<std::string> result;
  for (const Id id : ids) result.emplace_back(to_string(id));
  return result;
}

TEST(Dtypes, AreTheTwelve) {
  EXPECT_THAT(names(all_dtypes()), testing::ElementsAre("int8", "uint8", "int32", "uint32", "int64", "uint64", "half",
                                                        "float", "double", "bfloat16", "f8e4m3", "f8e5m2"));
  std::vector<std::size_t> sizes;
  for (const Dtype dtype : all_dtypes()) sizes.push_back(size_of(dtype));
  EXPECT_THAT(sizes, testing::ElementsAre(1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1));
  for (const Dtype dtype : all_dtypes()) EXPECT_EQ(parse_dtype(to_string(dtype)).value(), dtype);
}

TEST(Dtypes, AlsoKnowThreeThatAllLeavesOut) {
  std::vector<Dtype> others = known_dtypes();
  others.erase(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(all_dtypes().size()));
  EXPECT_THAT(names(others), testing::ElementsAre("int16", "uint16", "bool"));
  std::vector<std::size_t> sizes;
  for (const Dtype dtype : others) sizes.push_back(size_of(dtype));
  EXPECT_THAT(sizes, testing::ElementsAre(2, 2, 1));
  for (const Dtype dtype : others) EXPECT_EQ(parse_dtype(to_string(dtype)).value(), dtype);
  for (std::size_t row = 0; row < known_dtypes().size(); ++row) {
    EXPECT_EQ(static_cast<std::size_t>(known_dtypes()[row]), row);
  }
}

TEST(Ops, OfBoolAreOrAndAnd) {
  std::vector<Op> ops = all_ops();
  std::erase_if(ops, [](Op op) { return !op_exists(op, Dtype::boolean); });
  EXPECT_THAT(names(ops), testing::ElementsAre("sum", "min", "max", "band", "bor"));
  EXPECT_TRUE(op_exists(Op::none, Dtype::boolean));
  for (const Op op : all_ops()) EXPECT_TRUE(op_exists(op, Dtype::i16) && op_exists(op, Dtype::u16)) << to_string(op);
}

TEST(Ops, AreTheNine) {
  EXPECT_THAT(names(all_ops()),
              testing::ElementsAre("sum", "prod", "min", "max", "avg", "band", "bor", "bxor", "premul_sum"));
  for (const Op op : all_ops()) EXPECT_EQ(parse_op(to_string(op)).value(), op);
}

TEST(Ops, OnBitsExistForIntegersOnly) {
  std::vector<std::string> integers;
  for (const Dtype dtype : all_dtypes()) {
    for (const Op op : {Op::sum, Op::prod, Op::min, Op::max, Op::avg, Op::premul_sum, Op::none})
      EXPECT_TRUE(op_exists(op, dtype));
    for (const Op op : {Op::band, Op::bor, Op::bxor}) EXPECT_EQ(op_exists(op, dtype), is_integer(dtype));
    if (is_integer(dtype)) integers.emplace_back(to_string(dtype));
  }
  EXPECT_THAT(integers, testing::ElementsAre("int8", "uint8", "int32", "uint32", "int64", "uint64"));
}

TEST(Names, ThatDoNotExistAreAnsweredWithTheNearest) {
  EXPECT_THAT(parse_dtype("fp4").status().message(), testing::HasSubstr("unknown dtype 'fp4'"));
  EXPECT_THAT(parse_dtype("hafl").status().message(), testing::HasSubstr("did you mean 'half'?"));
  EXPECT_THAT(parse_dtype("int128x").status().message(), testing::Not(testing::HasSubstr("did you mean")));
  EXPECT_THAT(parse_op("bnad").status().message(), testing::HasSubstr("did you mean 'band'?"));
  EXPECT_FALSE(parse_op("none").is_ok());
}

}  // namespace
}  // namespace tutti
