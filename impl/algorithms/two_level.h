// SPDX-License-Identifier: Apache-2.0
// Hosts of equally many ranks, block by block: rank h L + l is the l-th of the L ranks of host h. Within a host ranks
// read and write each other's memory; between hosts there are channels and flags alone. One schedule does both at once,
// so that what a host adds up goes straight into the message.
//
// Sets of a host hold the rank itself: the ranks before and after it would be two sets.
#pragma once

#include "impl/algorithms/algorithm.h"

namespace tutti::two_level {

/// Where a rank is.
struct Place {
  int per_host;
  int hosts;
  int host;
  int local;  ///< on its host

  Place(const Problem& problem, int rank)
      : per_host(problem.ranks_per_host > 0 ? problem.ranks_per_host : problem.ranks),
        hosts(problem.ranks / per_host),
        host(rank / per_host),
        local(rank % per_host) {}

  [[nodiscard]] bool shares() const { return per_host > 1; }
  [[nodiscard]] int rank_on(int other_host) const { return other_host * per_host + local; }
  /// The rank of this place on the next host, and on the one before.
  [[nodiscard]] int next() const { return rank_on((host + 1) % hosts); }
  [[nodiscard]] int previous() const { return rank_on((host + hosts - 1) % hosts); }
  /// All ranks of this host.
  [[nodiscard]] RankSet neighbours() const { return {.first = host * per_host, .stride = 1, .n = per_host}; }
  /// The blocks of the ranks that have this rank's place on their hosts, as what is exposed to rank t: with 1 more per
  /// target.
  [[nodiscard]] UnitSet column() const { return {.start = 0, .length = 1, .stride = per_host, .repeat = hosts}; }
};

inline constexpr const char* kSource =
    "one schedule of two levels, as in NCCL's and Open MPI HAN's hierarchies, with the ring of Patarasuk & Yuan 2009";

/// A SIGNAL and a WAIT of the whole host, before and after what goes between hosts; none where a host has one rank.
[[nodiscard]] inline int flags_around(const Place& place) { return place.shares() ? 2 : 0; }

/// The one or the other of the two: step `index` of them.
[[nodiscard]] inline Step flag(const Place& place, int index, int phase, Exposure read = {}, Exposure write = {}) {
  return index == 0 ? signal(place.neighbours(), phase, read, write) : wait(place.neighbours(), phase);
}

}  // namespace tutti::two_level
