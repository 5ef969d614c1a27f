// SPDX-License-Identifier: Apache-2.0
#include "impl/types/names.h"

#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "impl/types/aliases.h"

namespace tutti {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Names, AreTheSameInAnyCaseAndWithoutTheirBars) {
  for (const char* name : {"all_reduce", "allreduce", "AllReduce", "all-reduce", "MPI_Allreduce", "ncclAllReduce"}) {
    EXPECT_TRUE(is_same_name(name, "all_reduce")) << name;
  }
  EXPECT_TRUE(is_same_name("MPI_FLOAT", "float"));
  EXPECT_FALSE(is_same_name("mpich", "ch")) << "a name that begins like a prefix keeps it";
  EXPECT_FALSE(is_same_name("nccl", "")) << "and so does one that is nothing else";
  EXPECT_FALSE(is_same_name("all_reduce", "all_reduc"));
}

TEST(Names, ASuggestionIsNear) {
  const std::vector<std::string> names{"int8", "int32", "float", "bfloat16", "sum", "--ops"};
  EXPECT_EQ(nearest_name("flaot", names), "float");
  EXPECT_EQ(nearest_name("int9", names), "int8");
  EXPECT_EQ(nearest_name("Blfoat", names), "float") << "of a longer name more may be wrong";
  EXPECT_EQ(nearest_name("su", names), "sum");
  for (const char* far : {"fp32", "fp16", "mulsum", "-np", "-x", "quaternion", ""}) {
    EXPECT_EQ(nearest_name(far, names), "") << far;
    EXPECT_EQ(suggestion(far, names), "") << far;
    EXPECT_THAT(unknown_name("thing", far, names).message(), Not(HasSubstr("did you mean"))) << far;
  }
  EXPECT_EQ(unknown_name("thing", "far", {{"one", "two"}}).message(), "unknown thing 'far' (one of: one two)");
}

TEST(Names, OfSeveralThatAreNearTheNearest) {
  EXPECT_EQ(nearest_name("bore", {{"core", "bor"}}), "core");
  EXPECT_EQ(nearest_name("bxo", {{"bor", "bxor"}}), "bxor");
}

TEST(Aliases, AreReadAndAreNobodyElses) {
  std::set<std::string> seen;
  const auto is_new = [&](std::string_view name) {
    for (const std::string& one : seen) {
      if (is_same_name(one, name)) return false;
    }
    return seen.insert(std::string(name)).second;
  };
  for (const Dtype dtype : known_dtypes()) {
    EXPECT_EQ(parse_dtype(to_string(dtype)).value(), dtype);
    EXPECT_TRUE(is_new(to_string(dtype)));
    std::istringstream names{std::string(aliases_of(dtype))};
    for (std::string name; names >> name;) {
      EXPECT_TRUE(is_new(name)) << name;
      EXPECT_EQ(parse_dtype(name).value(), dtype) << name;
    }
  }
  for (const Op op : all_ops()) EXPECT_EQ(parse_op(to_string(op)).value(), op);
}

TEST(Aliases, WhatPeopleCallDtypesAndOps) {
  for (const char* name : {"fp32", "f32", "FP32", "float32", "MPI_FLOAT", "ncclFloat32"}) {
    EXPECT_EQ(parse_dtype(name).value(), Dtype::f32) << name;
  }
  EXPECT_EQ(parse_dtype("bf16").value(), Dtype::bf16);
  EXPECT_EQ(parse_dtype("fp16").value(), Dtype::f16);
  EXPECT_EQ(parse_dtype("e4m3").value(), Dtype::f8e4m3);
  EXPECT_EQ(parse_dtype("ncclFloat8e5m2").value(), Dtype::f8e5m2);
  EXPECT_EQ(parse_dtype("MPI_UNSIGNED_LONG_LONG").value(), Dtype::u64);
  EXPECT_EQ(parse_dtype("MPI_INT32_T").value(), Dtype::i32);
  EXPECT_EQ(parse_op("mulsum").value(), Op::premul_sum);
  EXPECT_EQ(parse_op("MPI_BAND").value(), Op::band);
  EXPECT_EQ(parse_op("PreMulSum").value(), Op::premul_sum);
  EXPECT_EQ(parse_dtype("bfloat").value(), Dtype::bf16);
  EXPECT_EQ(parse_dtype("uint").value(), Dtype::u32);
  EXPECT_EQ(parse_op("xor").value(), Op::bxor);
  EXPECT_EQ(parse_op("or").value(), Op::bor);
  EXPECT_EQ(parse_op("and").value(), Op::band);
}

TEST(Aliases, ALogicalOpIsNoBitwiseOne) {
  for (const char* name : {"land", "MPI_LAND", "lor", "MPI_LOR", "lxor", "MPI_LXOR"}) {
    const std::string message = parse_op(name).status().message();
    EXPECT_THAT(message, HasSubstr(name));
    EXPECT_THAT(message, HasSubstr("logical"));
    EXPECT_THAT(message, Not(HasSubstr("did you mean"))) << name;
  }
}

}  // namespace
}  // namespace tutti
