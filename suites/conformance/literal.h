// SPDX-License-Identifier: Apache-2.0
// What the literal tests of this folder share. They run on every algorithm of a collective (or on those for which a
// rule holds), one after the other, with ranks as threads, as processes and as thread blocks.
#pragma once

#include <cstring>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "suites/conformance/ranks.h"

namespace tutti {

class Literal : public testing::TestWithParam<Kind> {
 protected:
  /// Every algorithm for `problem`, one after the other.
  void on_every_algorithm(const Problem& problem, const std::function<void(Communicator&, const Schedule&)>& body) {
    std::vector<std::string> names;
    for (const Algorithm* algorithm : algorithms_of(problem.collective)) names.emplace_back(algorithm->name);
    on_algorithms(problem, names, body);
  }
  void on_algorithms(const Problem& problem, const std::vector<std::string>& names,
                     const std::function<void(Communicator&, const Schedule&)>& body) {
    std::vector<Schedule> schedules;
    for (const std::string& name : names) {
      const auto algorithm = find_algorithm(problem.collective, name);
      ASSERT_TRUE(algorithm.is_ok()) << algorithm.status().message();
      schedules.push_back(schedule_of(*algorithm.value(), problem));
    }
    on_ranks(GetParam(), problem.ranks, [&](Communicator& communicator) {
      for (const Schedule& schedule : schedules) {
        SCOPED_TRACE(schedule.name);
        body(communicator, schedule);
      }
    });
  }

  template <class T>
  static constexpr Dtype dtype_of() {
#define TUTTI_ROW(id, type, name) \
  if constexpr (std::is_same_v<T, type>) return Dtype::id;
    TUTTI_DTYPES(TUTTI_ROW)
#undef TUTTI_ROW
  }

  /// The result on this rank of an all_reduce in which rank r gives `values[r]`, checked to be the same out of and in
  /// place.
  template <class T>
  static T all_reduced(Communicator& communicator, const Schedule& schedule, Reduction reduction,
                       const std::vector<T>& values) {
    const T mine = values[static_cast<std::size_t>(communicator.rank())];
    T in = mine, out{}, both = mine;
    Call call{.collective = Collective::all_reduce,
              .dtype = dtype_of<T>(),
              .op = reduction.op,
              .count = 1,
              .input = &in,
              .output = &out,
              .factor = reduction.factor,
              .schedule = &schedule};
    Status status = communicator.run(call);
    EXPECT_TRUE(status.is_ok()) << status.message();
    EXPECT_EQ(std::memcmp(&in, &mine, sizeof(T)), 0) << "the input was written";
    call.input = call.output = &both;
    call.is_in_place = true;
    status = communicator.run(call);
    EXPECT_TRUE(status.is_ok()) << status.message();
    EXPECT_EQ(std::memcmp(&both, &out, sizeof(T)), 0) << "in place differs from out of place";
    return out;
  }

  template <class T>
  void expect_all_reduced(Op op, const std::vector<T>& values, T expected) {
    on_every_algorithm({.collective = Collective::all_reduce, .ranks = static_cast<int>(values.size())},
                       [&](Communicator& communicator, const Schedule& schedule) {
                         EXPECT_EQ(all_reduced<T>(communicator, schedule, op, values), expected);
                       });
  }

  /// The same for floats of 8 and 16 bits, by their codes, on these algorithms; none named: on all.
  template <class T>
  void expect_codes(std::vector<std::string> algorithms, Op op, const std::vector<int>& codes, int expected) {
    std::vector<T> values;
    for (const int code : codes) values.push_back({static_cast<decltype(T::bits)>(code)});
    if (algorithms.empty()) {
      for (const Algorithm* algorithm : algorithms_of(Collective::all_reduce)) algorithms.emplace_back(algorithm->name);
    }
    on_algorithms({.collective = Collective::all_reduce, .ranks = static_cast<int>(values.size())}, algorithms,
                  [&](Communicator& communicator, const Schedule& schedule) {
                    EXPECT_EQ(static_cast<int>(all_reduced<T>(communicator, schedule, op, values).bits), expected)
                        << to_string(dtype_of<T>()) << " " << to_string(op);
                  });
  }
};

[[nodiscard]] inline std::string kind_name(const testing::TestParamInfo<Kind>& instance) {
  return "as_" + testing::PrintToString(instance.param);
}

}  // namespace tutti
