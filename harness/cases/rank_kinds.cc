// SPDX-License-Identifier: Apache-2.0
// The list of kinds, alone in its file: a program of the tests links a list of its own in its place.
#include <array>

#include "harness/cases/ranks_as.h"

namespace tutti::harness::cases {

std::span<const RanksAs> rank_kinds() {
  static constexpr std::array kKinds{RanksAs::processes, RanksAs::threads, RanksAs::tasks, RanksAs::blocks};
  return kKinds;
}

}  // namespace tutti::harness::cases
