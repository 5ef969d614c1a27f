// SPDX-License-Identifier: Apache-2.0
// What the literal tests of this folder share: they run on every algorithm of a collective (or on those for which a
// rule holds), one after the other, with ranks as threads and as processes.
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
  /// Every algorithm of `collective` on so many ranks, one after the other.
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
    if constexpr (std::is_same_v<T, float>) return Dtype::f32;
    if constexpr (std::is_same_v<T, BFloat16>) return Dtype::bf16;
    return Dtype::i32;
  }

  /// The result on this rank of an all_reduce in which rank r gives `values[r]`, checked to be the same out of and in
  /// place.
  template <class T>
  static T all_reduced(Communicator& communicator, const Schedule& schedule, Op op, const std::vector<T>& values) {
    const T mine = values[static_cast<std::size_t>(communicator.rank())];
    T in = mine, out{}, both = mine;
    Call call{.collective = Collective::all_reduce,
              .dtype = dtype_of<T>(),
              .op = op,
              .count = 1,
              .input = &in,
              .output = &out,
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
};

[[nodiscard]] inline std::string kind_name(const testing::TestParamInfo<Kind>& instance) {
  return instance.param == Kind::threads ? "as_threads" : "as_processes";
}

}  // namespace tutti
