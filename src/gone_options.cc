// SPDX-License-Identifier: Apache-2.0
#include "src/gone_options.h"

#include <algorithm>
#include <array>

namespace tutti::program {
namespace {

struct Gone {
  std::string_view flag;
  std::string_view now;
};
constexpr std::array kGone{
    Gone{"--bencher", "write `tutti report RESULT --format bencher > FILE`"},
    Gone{"--blind", "leave it out: the tests of the verifier show what a blind one misses"},
    Gone{"--expect-hosts", "write --hosts N"},
    Gone{"--expect-ranks", "write --ranks N; with --init env:// no job begins outside a launcher"},
    Gone{"--github", "write `tutti report RESULT --format github > FILE`"},
    Gone{"--seeds", "write --seed 1:N"},
    Gone{"--slow-down", "leave it out: suites/command_line/gate_trials.py counts how often a gate sees a slower build"},
};

}  // namespace

std::string_view in_place_of(std::string_view flag) {
  const auto* const row = std::ranges::find(kGone, flag, &Gone::flag);
  return row == kGone.end() ? std::string_view() : row->now;
}

}  // namespace tutti::program
