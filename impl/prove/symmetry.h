// SPDX-License-Identifier: Apache-2.0
// Groups that act on ranks and units, and whether a schedule commutes with one. Where it does, one rank stands for all.
//
// A group acts on ranks simply transitively: for each rank r there is one element that takes rank 0 to r, and it is
// called r. A schedule commutes with the group when two things hold. Step i of rank r is step i of rank 0, taken to r,
// for every r and i. And the collective means the same after it: what makes up an output that is taken to r is what
// makes up the output, taken to r.
//
// The first is shown by comparing the steps of every rank with rank 0's. Sets of ranks are compared as sets, and the
// sources of a reduction in any order. Units are compared one by one in a MOVE, and as sets in an exposure. Under
// exclusive or, aligned units of a MOVE may be in another order, where it is the same at both ends of its messages.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "impl/schedule/schedule.h"

namespace tutti {

class Symmetry {
 public:
  enum class Group : std::uint8_t {
    rotation,       ///< r -> r + g mod P
    exclusive_or,   ///< r -> r xor g, where P is a power of two
    hosts_by_local  ///< rank l of host h -> rank l + b of host h + a, each around; on one host its caches are hosts
  };
  /// How the units of a space go with the ranks.
  enum class Units : std::uint8_t {
    fixed,
    with_ranks,        ///< they are cut into P equal parts, and part b becomes part g(b)
    with_local_first,  ///< hosts_by_local, P units: unit l M + h goes with rank l of host h, of M hosts
    with_hosts,        ///< hosts_by_local, M units: unit h goes with host h
  };

  /// Of `schedule`; false where it cannot act on its ranks and units so.
  static std::optional<Symmetry> of(const Schedule& schedule, Group group, Units inputs, Units outputs,
                                    Units scratch = Units::fixed);

  [[nodiscard]] int ranks() const { return ranks_; }
  [[nodiscard]] Group group() const { return group_; }
  /// `rotation`, `exclusive or`, `hosts x local`, `caches x local`
  [[nodiscard]] std::string_view name() const;

  /// Rank `rank` taken by `element`.
  [[nodiscard]] int rank(int element, int rank) const {
    switch (group_) {
      case Group::rotation: {
        const int sum = element + rank;
        return sum < ranks_ ? sum : sum - ranks_;
      }
      case Group::exclusive_or:
        return element ^ rank;
      case Group::hosts_by_local:
        break;
    }
    return around(element / per_host_ + rank / per_host_, hosts_) * per_host_ +
           around(element % per_host_ + rank % per_host_, per_host_);
  }
  [[nodiscard]] int inverse(int element) const {
    switch (group_) {
      case Group::rotation:
        return element == 0 ? 0 : ranks_ - element;
      case Group::exclusive_or:
        return element;
      case Group::hosts_by_local:
        break;
    }
    return around(hosts_ - element / per_host_, hosts_) * per_host_ +
           around(per_host_ - element % per_host_, per_host_);
  }
  /// Unit `unit` of `space` taken by `element`. Requires: 0 <= unit < units(space).
  [[nodiscard]] int unit(Space space, int element, int unit) const {
    const Of& of = spaces_[static_cast<std::size_t>(space)];
    switch (of.acts) {
      case Units::fixed:
        break;
      case Units::with_ranks:
        return of.per_rank == 1 ? rank(element, unit)
                                : rank(element, unit / of.per_rank) * of.per_rank + unit % of.per_rank;
      case Units::with_local_first:
        return around(unit / hosts_ + element % per_host_, per_host_) * hosts_ +
               around(unit % hosts_ + element / per_host_, hosts_);
      case Units::with_hosts:
        return around(unit + element / per_host_, hosts_);
    }
    return unit;
  }
  /// How many `space` has.
  [[nodiscard]] int units(Space space) const { return spaces_[static_cast<std::size_t>(space)].units; }

  /// Whether `other` is `step` of rank 0 taken by `element`.
  [[nodiscard]] bool takes(const Step& step, int element, const Step& other) const;

 private:
  struct Of {
    Units acts = Units::fixed;
    int units = 0;
    int per_rank = 1;  ///< of with_ranks
  };

  static int around(int number, int size) { return number < size ? number : number - size; }
  [[nodiscard]] bool takes(const RankSet& set, int element, const RankSet& other) const;
  [[nodiscard]] bool takes(Space space, const UnitSet& set, int element, const UnitSet& other) const;
  [[nodiscard]] bool takes(const Operand& operand, int element, const Operand& other) const;
  [[nodiscard]] bool takes(const Exposure& exposure, int element, const Exposure& other) const;
  [[nodiscard]] bool takes(const Operands<4>& list, int element, const Operands<4>& other) const;
  [[nodiscard]] bool is_aligned(const Operand& operand, int length) const;
  [[nodiscard]] bool takes_aligned(const Step& step, int element, const Step& other) const;

  Group group_ = Group::rotation;
  int ranks_ = 1;
  int per_host_ = 1;
  int hosts_ = 1;
  bool is_of_caches_ = false;  ///< hosts_by_local, where the caches of one host take the place of hosts
  std::array<Of, 3> spaces_;  ///< by Space: input, output, scratch
};

/// The first symmetry of `schedule` that takes rank 0's program to every other rank's, and what the collective means to
/// what it means; none where there is no such.
[[nodiscard]] std::optional<Symmetry> find_symmetry(const Schedule& schedule);

}  // namespace tutti
