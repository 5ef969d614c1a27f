// SPDX-License-Identifier: Apache-2.0
// Two-level broadcast on M hosts of L ranks. The leaders, the root and the first rank of each other host, are the
// 4-nomial tree of knomial.h. Each stores what arrives to all outputs of its host, and passes it on, in one MOVE.
//
// P = 4, L = 2, M = 2, root 0
//   rank 0 (leader)                            rank 1
//   step 0  WAIT {1} phase 1                   step 0  SIGNAL {0} phase 1, write OUT[0]
//   step 1  OUT[0]@{0..1}, CH(2) <- IN[0]       step 1  WAIT {0} phase 2
//   step 2  SIGNAL {0,1} phase 2
//   step 3  WAIT {0} phase 2
#include "impl/algorithms/two_level.h"

#include "impl/algorithms/knomial.h"

namespace tutti {
namespace {

using two_level::Place;

/// The leaders' tree: its ranks are hosts.
struct Leaders {
  Problem tree;
  int per_host;
  int root;

  explicit Leaders(const Problem& problem) : tree(problem), per_host(Place(problem, 0).per_host), root(problem.root) {
    tree.ranks = problem.ranks / per_host;
    tree.root = problem.root / per_host;
  }
  [[nodiscard]] int of(int host) const { return host == tree.root ? root : host * per_host; }
  [[nodiscard]] int of_relative(int relative) const { return of(knomial::absolute_rank(tree, relative)); }
  [[nodiscard]] int relative(int host) const { return knomial::relative_rank(tree, host); }
  [[nodiscard]] knomial::Children children(int host) const { return knomial::children_of(tree.ranks, relative(host)); }
};

/// The ranks of the leader's host on either side of it; one of the two may be none.
RankSet below(const Place& place) { return {.first = place.neighbours().first, .stride = 1, .n = place.local}; }
RankSet above(const Place& place, int rank, int ranks) {
  return {.first = (rank + 1) % ranks, .stride = 1, .n = place.per_host - 1 - place.local};
}

int waits_before(const Place& place) { return (place.local > 0 ? 1 : 0) + (place.local + 1 < place.per_host ? 1 : 0); }

Shape shape(const Problem& problem) {
  const Place place(problem, 0);
  return {.units_per_block = 1, .largest_message = place.hosts > 1 ? 1 : 0, .exposes_output = place.shares()};
}

int step_count(const Problem& problem, int rank) {
  const Place place(problem, rank);
  const Leaders leaders(problem);
  if (leaders.of(place.host) != rank) return 2;
  return waits_before(place) + knomial::moves_for(leaders.children(place.host).size) + (place.shares() ? 2 : 0);
}

Step move_of(const Place& place, const Leaders& leaders, int rank, int index) {
  const knomial::Children children = leaders.children(place.host);
  const UnitSet all = unit(0);
  Operands<4> destinations;
  if (index == 0) destinations.push_back(on(place.neighbours(), output(rank, all)));
  for (int i = 0; i < children.size; ++i) {
    const int child = *(children.end() - 1 - i);
    if (knomial::move_of_child(i) == index) destinations.push_back(channel(leaders.of_relative(child)));
  }
  const int relative = leaders.relative(place.host);
  if (relative == 0) return move(destinations, {input(rank, all)});
  if (index > 0) return move(destinations, {output(rank, all)});
  return move(destinations, {channel(leaders.of_relative(knomial::parent_of(leaders.tree.ranks, relative)))});
}

Step step(const Problem& problem, int rank, int index) {
  const Place place(problem, rank);
  const Leaders leaders(problem);
  const int leader = leaders.of(place.host);
  if (leader != rank) {
    return index == 0 ? signal(only(leader), 1, {}, {.space = Space::output, .units = unit(0)}) : wait(only(leader), 2);
  }
  const int before = waits_before(place);
  if (index < before) {
    return wait(index == 0 && place.local > 0 ? below(place) : above(place, rank, problem.ranks), 1);
  }
  const int moves = knomial::moves_for(leaders.children(place.host).size);
  if (index < before + moves) return move_of(place, leaders, rank, index - before);
  return index == before + moves ? signal(place.neighbours(), 2) : wait(only(rank), 2);
}

Cost cost(const Problem& problem, int rank) {
  const Place place(problem, rank);
  const Leaders leaders(problem);
  const bool leads = leaders.of(place.host) == rank;
  const int children = leads ? leaders.children(place.host).size : 0;
  const int flags = place.shares() ? 1 : 0;
  return {.steps = step_count(problem, rank),
          .messages = children,
          .units = leads ? children + place.per_host - 1 : 0,
          .depth = knomial::broadcast_depth(place.hosts) + 2 * flags};
}

int least_slots(const Problem& problem, int /*slices*/) { return Place(problem, 0).hosts > 1 ? 1 : 0; }

}  // namespace

extern const Algorithm k_broadcast_two_level;
const Algorithm k_broadcast_two_level{
    .collective = Collective::broadcast,
    .name = "two_level",
    .summary = "4-nomial tree over one rank of each host, which stores to all outputs of its host",
    .source = "hierarchical broadcast with radix k, as in Open MPI's HAN and UCC",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .least_slots = least_slots,
    .synchronises_on_one_host = true,
    .is_by_hosts = true,
};

}  // namespace tutti
