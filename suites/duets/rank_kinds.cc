// SPDX-License-Identifier: Apache-2.0
// A kind of rank for the tests, and the list that has it, in place of harness/cases/rank_kinds.cc.
#include <array>

#include "harness/cases/ranks_as.h"

namespace tutti::harness::cases {
namespace {

constexpr RankKind kDuets{.name = "duets", .ranks_of_runner = 2};

}  // namespace

std::span<const RanksAs> rank_kinds() {
  static constexpr std::array kKinds{RanksAs::processes, RanksAs::threads, RanksAs::tasks, RanksAs::blocks,
                                     RanksAs(kDuets)};
  return kKinds;
}

}  // namespace tutti::harness::cases
