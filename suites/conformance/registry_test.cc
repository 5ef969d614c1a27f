// SPDX-License-Identifier: Apache-2.0
// What is registered is what is on disk, and what is registered is checked. An algorithm fails here without a file of
// its own. It also fails without a conformance case at any of the counts, forms, roots and types that `tutti check`
// promises.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <tuple>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/cases/conformance.h"
#include "harness/record/csv_reader.h"
#include "harness/session/session.h"
#include "impl/algorithms/algorithm.h"
#include "impl/communicator/communicator.h"
#include "impl/execute/resources.h"
#include "impl/schedule/segment.h"

namespace tutti::harness {
namespace {

using Names = std::set<std::string>;

std::string name_of(Collective collective, std::string_view algorithm) {
  return fmt::format("{}/{}", to_string(collective), algorithm);
}

std::vector<Op> ops_of(Collective collective) {
  if (!is_reducing(collective)) return {Op::none};
  std::vector<Op> ops = all_ops();
  std::erase_if(ops, [collective](Op op) { return !takes_op(collective, op); });
  return ops;
}

TEST(Registry, EveryFileDefinesTheAlgorithmOfItsName) {
  Names files, registered;
  for (const auto& folder : std::filesystem::directory_iterator(TUTTI_ALGORITHMS)) {
    if (!folder.is_directory()) continue;
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      if (file.path().extension() != ".cc") continue;
      EXPECT_TRUE(parse_collective(folder.path().filename().string()).is_ok()) << folder.path();
      files.insert(folder.path().filename().string() + "/" + file.path().stem().string());
    }
  }
  for (const Algorithm* algorithm : all_algorithms()) {
    EXPECT_TRUE(registered.insert(name_of(algorithm->collective, algorithm->name)).second) << algorithm->name;
    EXPECT_FALSE(algorithm->summary.empty()) << algorithm->name;
    EXPECT_FALSE(algorithm->source.empty()) << algorithm->name;
  }
  EXPECT_GT(files.size(), 0U);
  EXPECT_EQ(files, registered);
}

TEST(Registry, EveryCollectiveHasAnAlgorithmThatAutoMayChoose) {
  for (const Collective collective : every_collective()) {
    EXPECT_FALSE(algorithms_of(collective).empty()) << to_string(collective);
    for (const int ranks : {1, 2, 17, 4096}) {
      const Algorithm& chosen = choose_algorithm({.collective = collective, .ranks = ranks}, Buffers::private_, 2, 64);
      EXPECT_EQ(chosen.collective, base_of(collective));
      if (has_counts(collective)) {
        EXPECT_TRUE(chosen.takes_counts) << chosen.name;
      }
    }
  }
}

struct Axis {
  int ranks;
  RanksAs ranks_as;
  Dtype first = Dtype::f32;  ///< of the dtypes asked for
};

void PrintTo(const Axis& axis, std::ostream* out) { *out << axis.ranks << " as " << to_string(axis.ranks_as); }

class Coverage : public testing::TestWithParam<Axis> {
 protected:
  Coverage() {
    const auto collectives = every_collective();
    sweep_.collectives = {collectives.begin(), collectives.end()};
    sweep_.algorithms = {"all"};
    sweep_.dtypes = {all_dtypes(), true};
    std::vector<Dtype>& dtypes = sweep_.dtypes.values;
    std::partition(dtypes.begin(), dtypes.end(), [](Dtype dtype) { return dtype == GetParam().first; });
    sweep_.ops = {all_ops(), true};
    sweep_.ranks = {GetParam().ranks};
    sweep_.ranks_as = GetParam().ranks_as;
    auto cases = conformance_cases(sweep_);
    EXPECT_TRUE(cases.is_ok()) << cases.status().message();
    if (cases.is_ok()) cases_ = std::move(cases).value().cases;
  }

  /// On one rank a window has nobody to go to.
  [[nodiscard]] static bool has_cases(const Algorithm& algorithm) {
    return !has_window(algorithm.collective) || GetParam().ranks > 1;
  }
  [[nodiscard]] std::vector<Case> cases_of(const Algorithm& algorithm) const {
    std::vector<Case> mine;
    for (const Case& one : cases_) {
      if (one.collective == algorithm.collective && one.algorithm == algorithm.name) mine.push_back(one);
    }
    return mine;
  }
  /// Those at which every count and form is checked.
  [[nodiscard]] std::set<int> roots_of(const Algorithm& algorithm) const {
    return is_rooted(algorithm.collective) ? std::set<int>{0, GetParam().ranks - 1} : std::set<int>{0};
  }
  /// The segments of `one` in a session of this kind of ranks.
  [[nodiscard]] Count segments_of(const Algorithm& algorithm, const Case& one) const {
    const auto topology = topology_of({.ranks = GetParam().ranks, .ranks_as = GetParam().ranks_as});
    const DomainShape shape = topology.value().domain_shape(0);
    const auto segment = choose_segment(schedule_of(algorithm, one.problem()), {.rank = one.root,
                                                                                .count = one.count,
                                                                                .dtype = one.dtype,
                                                                                .op = one.op,
                                                                                .is_in_place = one.is_in_place,
                                                                                .buffers = one.buffers,
                                                                                .resources = resources_of(shape)});
    EXPECT_TRUE(segment.is_ok()) << segment.status().message();
    return segment.is_ok() ? (one.count + segment.value() - 1) / segment.value() : 0;
  }

  /// Whether the shortest call of two segments, up to a factor of 2, needs more memory than a case of the suite may
  /// have.
  [[nodiscard]] bool is_too_large_to_cut(const Algorithm& algorithm, Case one) const {
    for (one.count = 1; segments_of(algorithm, one) == 1;) one.count *= 2;
    const Problem problem = one.problem();
    const std::int64_t messages = 2 * one.ranks * problem.pairing.window;
    return messages * buffer_bytes(problem, one.count / 2, size_of(one.dtype)) > kMostCaseBytes;
  }

  Sweep sweep_;
  std::vector<Case> cases_;
};

struct Form {
  int root;
  bool is_in_place;
  Buffers buffers;
  auto operator<=>(const Form&) const = default;
};

TEST_P(Coverage, EveryAlgorithmHasACaseAtEveryCountPlacementBufferKindAndRoot) {
  const int ranks = GetParam().ranks;
  for (const Algorithm* algorithm : all_algorithms()) {
    if (!has_cases(*algorithm)) continue;
    SCOPED_TRACE(name_of(algorithm->collective, algorithm->name));
    std::map<Form, std::set<Count>> counts;
    for (const Case& one : cases_of(*algorithm)) counts[{one.root, one.is_in_place, one.buffers}].insert(one.count);
    if (!has_data(algorithm->collective)) {
      EXPECT_EQ(counts.size(), 1U);
      continue;
    }
    for (const int root : roots_of(*algorithm)) {
      for (const bool is_in_place : {false, true}) {
        for (const Buffers buffers : {Buffers::private_, Buffers::shared}) {
          const auto& found = counts[{root, is_in_place, buffers}];
          for (const Count count : std::set<Count>{0, 1, ranks - 1, ranks, ranks + 1, 1023, 123567}) {
            EXPECT_TRUE(found.contains(count)) << "count " << count << ", root " << root;
          }
        }
      }
    }
  }
}

// Windows shorter and longer than what a channel holds, and pairs that are no neighbours.
TEST_P(Coverage, EveryAlgorithmOfPairsHasACaseOfEveryWindowAndOfOtherPairs) {
  const int ranks = GetParam().ranks;
  for (const Algorithm* algorithm : all_algorithms()) {
    if (ranks < 3 || !(has_window(algorithm->collective) || has_pairs(algorithm->collective))) continue;
    SCOPED_TRACE(name_of(algorithm->collective, algorithm->name));
    std::set<int> windows;
    std::set<std::pair<int, int>> pairs;
    for (const Case& one : cases_of(*algorithm)) {
      windows.insert(one.pairing.window);
      pairs.insert({one.pairing.first, one.pairing.second});
    }
    EXPECT_EQ(windows, has_window(algorithm->collective) ? (std::set{3, kUsualWindow}) : std::set{1});
    EXPECT_EQ(pairs.contains({0, ranks - 1}), has_pairs(algorithm->collective));
    EXPECT_TRUE(pairs.contains({-1, -1})) << "all pairs at once";
  }
}

// A check that has no such dtype has them of the one that it has.
TEST_P(Coverage, LongBuffersAreOfBytesWhereADtypeIs) {
  constexpr Count kLong = 123567;
  const std::vector<Dtype> no_bytes{GetParam().first};
  for (const bool has_bytes : {true, false}) {
    if (!has_bytes) sweep_.dtypes.values = no_bytes;
    const std::vector<Case> cases = conformance_cases(sweep_).value().cases;
    int met = 0;
    for (const Case& one : cases) {
      if (one.count != kLong) continue;
      const auto bytes_of_first = buffer_bytes(one.problem(), kLong, size_of(GetParam().first));
      const bool is_byte = has_bytes && bytes_of_first > (1 << 20);
      EXPECT_EQ(size_of(one.dtype), is_byte ? 1U : size_of(GetParam().first)) << case_id(one);
      ++met;
    }
    EXPECT_GT(met, 0);
  }
}

TEST_P(Coverage, EveryRootHasACase) {
  for (const Algorithm* algorithm : all_algorithms()) {
    if (!has_cases(*algorithm)) continue;
    std::set<int> roots;
    for (const Case& one : cases_of(*algorithm)) roots.insert(one.root);
    const int expected = is_rooted(algorithm->collective) ? GetParam().ranks : 1;
    EXPECT_EQ(std::ssize(roots), expected) << name_of(algorithm->collective, algorithm->name);
  }
}

TEST_P(Coverage, WhatCanBeCutIntoSegmentsIs) {
  constexpr Count kLong = Count{1} << 26;
  for (const Algorithm* algorithm : all_algorithms()) {
    if (!has_data(algorithm->collective) || !has_cases(*algorithm)) continue;
    SCOPED_TRACE(name_of(algorithm->collective, algorithm->name));
    std::map<Form, Case> longest;
    for (const Case& one : cases_of(*algorithm)) {
      Case& most = longest.try_emplace({one.root, one.is_in_place, one.buffers}, one).first->second;
      if (segments_of(*algorithm, one) > segments_of(*algorithm, most)) most = one;
    }
    for (const auto& [form, one] : longest) {
      if (!roots_of(*algorithm).contains(form.root)) continue;
      Case endless = one;
      endless.count = kLong;
      if (segments_of(*algorithm, endless) == 1) continue;  // no channels and no scratch: never more than one
      if (is_too_large_to_cut(*algorithm, one)) continue;
      EXPECT_GT(segments_of(*algorithm, one), 1) << case_id(one) << ", count " << one.count;
    }
  }
}

// Of every pair of them where the ranks are few.
TEST_P(Coverage, EveryAlgorithmHasACaseOfEveryDtypeAndOp) {
  for (const Algorithm* algorithm : all_algorithms()) {
    if (!has_data(algorithm->collective) || !has_cases(*algorithm)) continue;
    SCOPED_TRACE(name_of(algorithm->collective, algorithm->name));
    std::set<std::pair<Dtype, Op>> found;
    std::set<Dtype> dtypes;
    std::set<Op> ops;
    for (const Case& one : cases_of(*algorithm)) {
      found.insert({one.dtype, one.op});
      dtypes.insert(one.dtype);
      ops.insert(one.op);
    }
    const std::vector<Op> expected = ops_of(algorithm->collective);
    EXPECT_EQ(dtypes.size(), all_dtypes().size());
    EXPECT_EQ(ops, std::set<Op>(expected.begin(), expected.end()));
    if (GetParam().ranks > 5) continue;
    for (const Dtype dtype : all_dtypes()) {
      for (const Op op : expected) {
        EXPECT_EQ(found.contains({dtype, op}), op_exists(op, dtype)) << to_string(dtype) << " " << to_string(op);
      }
    }
  }
}

// Every pattern, with no element, one, few, and several slices in a block, in both places, at both roots; every type.
TEST_P(Coverage, EveryAlgorithmThatTakesCountsHasACaseOfEveryPatternAndType) {
  const std::set<std::string> patterns{"equal", "ramp", "one-heavy", "zeros", "random"};
  const int ranks = GetParam().ranks;
  for (const Collective form : every_collective()) {
    if (!has_counts(form)) continue;
    sweep_.collectives = {form};
    sweep_.counts.clear();
    for (const std::string& pattern : patterns) sweep_.counts.push_back(counts_of_name(pattern).value());
    const std::vector<Case> cases = conformance_cases(sweep_).value().cases;
    Names ids;
    for (const Case& one : cases) EXPECT_TRUE(ids.insert(case_id(one)).second) << case_id(one);
    for (const Algorithm* algorithm : algorithms_of(form)) {
      SCOPED_TRACE(name_of(form, algorithm->name));
      std::set<std::tuple<std::string, int, bool, std::int64_t>> found;
      std::set<std::pair<Dtype, Op>> types;
      for (const Case& one : cases) {
        if (one.algorithm != algorithm->name) continue;
        found.insert({one.counts.name, one.root, one.is_in_place, one.bytes});
        types.insert({one.dtype, one.op});
      }
      for (const std::string& pattern : patterns) {
        for (const int root : is_rooted(form) ? std::set{0, ranks - 1} : std::set{0}) {
          for (const bool is_in_place : {false, true}) {
            for (const Count elements : {0, 1, ranks + 1, 1023, 123567}) {
              Cell cell{.collective = form, .dtype = GetParam().first, .ranks = ranks, .root = root};
              cell.counts = counts_of_name(pattern).value();
              set_bytes(cell, elements * static_cast<std::int64_t>(size_of(cell.dtype)));
              EXPECT_TRUE(found.contains({pattern, root, is_in_place, cell.bytes}))
                  << pattern << ", root " << root << ", in place " << is_in_place << ", " << elements << " elements";
            }
          }
        }
      }
      for (const Dtype dtype : all_dtypes()) {
        for (const Op op : ops_of(form)) {
          if (ranks > 5) continue;
          EXPECT_EQ(types.contains({dtype, op}), op_exists(op, dtype)) << to_string(dtype) << " " << to_string(op);
        }
      }
    }
  }
}

TEST_P(Coverage, NoCaseIsThereTwice) {
  Names ids;
  for (const Case& one : cases_) EXPECT_TRUE(ids.insert(case_id(one)).second) << case_id(one);
}

// What the program runs when nobody says which types: read from its own rows.
TEST(Registry, TheProgramChecksEveryDtypeAndOpOfEveryAlgorithm) {
  const std::string csv = testing::TempDir() + fmt::format("tutti_registry_test_{}.csv", getpid());
  const std::string command =
      fmt::format("{} check --ranks 3 --ranks-as tasks --csv {} > /dev/null", TUTTI_PROGRAM, csv);
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  Names found;
  const auto rows = read_csv(csv);
  std::filesystem::remove(csv);
  ASSERT_TRUE(rows.is_ok()) << rows.status().message();
  for (const Row& row : rows.value()) {
    found.insert(fmt::format("{}/{} {} {}", row.collective, row.algorithm, row.dtype, row.op));
  }
  for (const Algorithm* algorithm : all_algorithms()) {
    const std::vector<Op> ops = ops_of(algorithm->collective);
    for (const Dtype dtype : all_dtypes()) {
      for (const Op op : ops) {
        if (!op_exists(op, dtype)) continue;
        const std::string_view type = has_data(algorithm->collective) ? to_string(dtype) : kNone;
        EXPECT_THAT(found, testing::Contains(fmt::format("{} {} {}", name_of(algorithm->collective, algorithm->name),
                                                         type, op == Op::none ? kNone : to_string(op))));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Coverage,
                         testing::Values(Axis{1, RanksAs::threads}, Axis{2, RanksAs::threads},
                                         Axis{3, RanksAs::processes}, Axis{5, RanksAs::tasks},
                                         Axis{8, RanksAs::threads}, Axis{16, RanksAs::processes},
                                         Axis{16, RanksAs::tasks}, Axis{64, RanksAs::tasks}, Axis{65, RanksAs::tasks},
                                         Axis{4, RanksAs::threads, Dtype::bf16}),
                         [](const auto& instance) {
                           return fmt::format("{}_{}", to_string(instance.param.ranks_as), instance.param.ranks);
                         });

}  // namespace
}  // namespace tutti::harness
