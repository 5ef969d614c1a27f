// SPDX-License-Identifier: Apache-2.0
// Groups of a contention: how the ranks of a job are dealt into groups that run collectives at the same time, and which
// collective each group runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "impl/collective/collective.h"
#include "impl/types/status.h"

namespace tutti::harness::cases {

struct Cell;

struct Groups {
  enum class Kind : std::uint8_t {
    none,
    adjacent,  ///< `2x4`: the first four ranks are group 0, the next four are group 1
    modulo,    ///< `MOD:2`: rank r is in group r mod 2
  };
  Kind kind = Kind::none;
  int count = 0;          ///< of groups, at least 2
  int ranks_of_each = 0;  ///< adjacent only

  [[nodiscard]] bool is_any() const { return kind != Kind::none; }
  bool operator==(const Groups&) const = default;
};

/// `2x4` or `MOD:2`, with at least two groups. Errors: invalid_argument naming the text and both forms.
[[nodiscard]] Result<Groups> parse_groups(std::string_view text);
/// As parse_groups reads it.
[[nodiscard]] std::string to_string(const Groups& groups);
/// Whether `ranks` ranks can be dealt so that each group has one. Errors: invalid_argument naming both numbers.
[[nodiscard]] Status check_groups(const Groups& groups, int ranks);
/// The group of a rank. Requires: check_groups.
[[nodiscard]] int group_of(const Groups& groups, int rank);
/// The ranks of the job that are in `group`, rising: rank i of the group is the i-th of them. Requires: check_groups.
[[nodiscard]] std::vector<int> members_of(const Groups& groups, int group, int ranks);

/// What a group runs beside the first group.
struct Dealt {
  Collective collective = Collective::barrier;
  std::optional<std::int64_t> bytes = {};  ///< empty: those of the first group
  bool operator==(const Dealt&) const = default;
};
/// `all_to_all:1M,barrier`: collectives, each with a size or without. Errors: invalid_argument naming the item.
[[nodiscard]] Result<std::vector<Dealt>> parse_beside(std::string_view text);

/// What the groups run, as ids and rows name it: `all_reduce-float-sum-65536B-out-private+barrier`. `cells`: of the
/// first group, and of each of those that a sweep deals in turn.
[[nodiscard]] std::string deal_of(const std::vector<Cell>& cells);
/// Whether `text` has only the letters of a deal.
[[nodiscard]] bool is_deal(std::string_view text);

}  // namespace tutti::harness::cases
