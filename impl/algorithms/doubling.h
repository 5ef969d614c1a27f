// SPDX-License-Identifier: Apache-2.0
// The rounds of a prefix by doubling, for any number of members. At the beginning member m has its own value. In the
// round of distance d = 1, 2, 4, ... it sends what it has to member m + d. It puts before its own what member m - d
// sends: then it has the values of twice as many members, in their order. Where it both sends and receives, the two
// take turns: slice j of the old value leaves before slice j of the new one takes its place.
//
// Source: Hillis & Steele 1986, Data parallel algorithms, doi:10.1145/7902.7903.
#pragma once

#include <algorithm>
#include <bit>

namespace tutti::doubling {

/// One MOVE of the rounds.
struct Exchange {
  int distance;
  bool is_send;      ///< to the member at `distance` above; else a receive from the one below
  bool takes_turns;  ///< with the receive of the same round
};

/// What one of the members does.
class Member {
 public:
  Member(int members, int member)
      : sends_(std::bit_width(static_cast<unsigned>(members - 1 - member))),
        receives_(std::bit_width(static_cast<unsigned>(member))) {}

  [[nodiscard]] int sends() const { return sends_; }
  [[nodiscard]] int exchanges() const { return sends_ + receives_; }
  [[nodiscard]] Exchange at(int index) const {
    const int both = std::min(sends_, receives_);  // rounds in which it does both: the first ones
    if (index >= 2 * both) return {.distance = 1 << (index - both), .is_send = sends_ > both, .takes_turns = false};
    return {.distance = 1 << (index / 2), .is_send = index % 2 == 0, .takes_turns = index % 2 == 0};
  }

 private:
  int sends_;
  int receives_;
};

/// MOVEs and transfers: three in a round. Where members are no power of two, those of the last rounds wait for members
/// that have less to do themselves.
[[nodiscard]] inline int depth(int members) {
  const int rounds = std::bit_width(static_cast<unsigned>(members - 1));
  const int half = members > 1 ? 1 << (rounds - 1) : 0;
  if (members == 2 * half || members == 1) return 3 * rounds;
  return 3 * rounds - (members > half + half / 2 ? 1 : 2);
}

}  // namespace tutti::doubling
