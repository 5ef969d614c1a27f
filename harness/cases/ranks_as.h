// SPDX-License-Identifier: Apache-2.0
// What a rank is to the operating system: the value of --ranks-as, and the part "P4.processes" of a case id. Apart from
// case.h, which has its names, so that the launcher need not know what a case is.
//
// A kind is a row of traits. All other code asks for a trait and compares no kinds, so a new kind is a RankKind and its
// place in rank_kinds.cc. suites/duets adds one for the tests.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "harness/floors.h"

namespace tutti::harness::cases {

/// A runner is a thread that calls for ranks.
struct RankKind {
  std::string_view name;      ///< as --ranks-as takes it
  bool is_process = false;    ///< each rank is a process of its own; otherwise one process has all ranks
  int ranks_of_runner = 1;    ///< the most ranks for which one runner calls; 0: one runner calls for all
  bool is_on_device = false;  ///< the steps run in thread blocks of a device, which all ranks share

  /// Whether one thread runs the steps of all ranks.
  [[nodiscard]] constexpr bool is_one_thread() const { return ranks_of_runner == 0 && !is_on_device; }
  /// How many runners a job of so many ranks has. Requires: ranks >= 1.
  [[nodiscard]] constexpr int runners(int ranks) const {
    return ranks_of_runner == 0 ? 1 : (ranks + ranks_of_runner - 1) / ranks_of_runner;
  }
  /// The ranks of one of them, rising.
  [[nodiscard]] std::vector<int> ranks_of(int runner, int ranks) const;
};

inline constexpr RankKind kProcesses{.name = "processes", .is_process = true};
inline constexpr RankKind kThreads{.name = "threads"};
inline constexpr RankKind kTasks{.name = "tasks", .ranks_of_runner = 0};
inline constexpr RankKind kBlocks{.name = "blocks", .ranks_of_runner = 0, .is_on_device = true};

/// One of rank_kinds(): `ranks_as->is_process` is a trait of it.
class RanksAs {
 public:
  static const RanksAs processes, threads, tasks, blocks;

  /// `kind` outlives it.
  constexpr explicit RanksAs(const RankKind& kind) : kind_(&kind) {}
  constexpr const RankKind* operator->() const { return kind_; }

  friend constexpr bool operator==(RanksAs a, RanksAs b) { return a->name == b->name; }
  friend constexpr std::strong_ordering operator<=>(RanksAs a, RanksAs b) { return a->name <=> b->name; }

 private:
  const RankKind* kind_;
};

inline constexpr RanksAs RanksAs::processes{kProcesses};
inline constexpr RanksAs RanksAs::threads{kThreads};
inline constexpr RanksAs RanksAs::tasks{kTasks};
inline constexpr RanksAs RanksAs::blocks{kBlocks};

/// All kinds, in the order in which messages list them.
[[nodiscard]] std::span<const RanksAs> rank_kinds();

/// What runs the steps of a rank.
enum class RanksOn : std::uint8_t {
  cores,          ///< a thread of the host
  shared_device,  ///< thread blocks of a device on which other ranks are too
  own_device,     ///< thread blocks of a device of its own
};

}  // namespace tutti::harness::cases
