// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/groups.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "harness/cases/case.h"
#include "harness/cases/lists.h"
#include "harness/cases/sweep.h"
#include "harness/text/counted.h"
#include "impl/types/names.h"
#include "impl/types/number.h"

namespace tutti::harness::cases {
namespace {

constexpr std::string_view kModulo = "MOD:";

Status no_groups(std::string_view text) {
  return error(Code::invalid_argument,
               "'{}' is neither GROUPSxRANKS, such as 2x4, nor MOD:GROUPS, such as MOD:2: allowed are 2 to {} groups, "
               "of together at most {} ranks",
               shown(text), kMaxRanks, kMaxRanks);
}

/// What of a cell is its work, without the parts that do not apply.
std::string work_of(const Cell& cell) {
  std::vector<std::string> parts{std::string(to_string(cell.collective))};
  if (has_data(cell.collective)) {
    parts.emplace_back(to_string(cell.dtype));
    if (cell.op != Op::none) parts.emplace_back(to_string(cell.op));
    if (is_rooted(cell.collective)) parts.push_back(fmt::format("root{}", cell.root));
    parts.push_back(fmt::format("{}B", cell.bytes));
    parts.emplace_back(placement_name(cell));
    parts.emplace_back(buffers_name(cell));
  }
  return fmt::format("{}", fmt::join(parts, "-"));
}

}  // namespace

Result<Groups> parse_groups(std::string_view text) {
  if (text.starts_with(kModulo) || text.starts_with("mod:")) {
    const auto count = parse_number(text.substr(kModulo.size()), "", 2, kMaxRanks);
    if (!count.is_ok()) return no_groups(text);
    return Groups{.kind = Groups::Kind::modulo, .count = count.value()};
  }
  const std::size_t cross = text.find('x');
  if (cross == text.npos) return no_groups(text);
  const auto count = parse_number(text.substr(0, cross), "", 2, kMaxRanks);
  const auto each = parse_number(text.substr(cross + 1), "", 1, kMaxRanks);
  if (!count.is_ok() || !each.is_ok() || count.value() > kMaxRanks / each.value()) return no_groups(text);
  return Groups{.kind = Groups::Kind::adjacent, .count = count.value(), .ranks_of_each = each.value()};
}

std::string to_string(const Groups& groups) {
  switch (groups.kind) {
    case Groups::Kind::none:
      return {};
    case Groups::Kind::adjacent:
      return fmt::format("{}x{}", groups.count, groups.ranks_of_each);
    case Groups::Kind::modulo:
      return fmt::format("{}{}", kModulo, groups.count);
  }
  return {};
}

Status check_groups(const Groups& groups, int ranks) {
  if (groups.kind == Groups::Kind::adjacent && ranks != groups.count * groups.ranks_of_each) {
    return error(Code::invalid_argument, "'{}' deals {}, and --ranks is {}: did you mean --ranks {}?",
                 to_string(groups), counted(groups.count * groups.ranks_of_each, "rank"), ranks,
                 groups.count * groups.ranks_of_each);
  }
  if (groups.kind == Groups::Kind::modulo && ranks < groups.count) {
    return error(Code::invalid_argument, "'{}' needs a rank for each of {} groups, and there are {}: did you mean {}?",
                 to_string(groups), groups.count, ranks,
                 ranks < 2 ? fmt::format("--ranks {}", groups.count) : fmt::format("'{}{}'", kModulo, ranks));
  }
  return {};
}

int group_of(const Groups& groups, int rank) {
  return groups.kind == Groups::Kind::adjacent ? rank / groups.ranks_of_each : rank % groups.count;
}

std::vector<int> members_of(const Groups& groups, int group, int ranks) {
  std::vector<int> members;
  for (int rank = 0; rank < ranks; ++rank) {
    if (group_of(groups, rank) == group) members.push_back(rank);
  }
  return members;
}

Result<std::vector<Dealt>> parse_beside(std::string_view text) {
  std::vector<Dealt> list;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view item = text.substr(begin, end - begin);
    const std::size_t colon = item.find(':');
    Dealt& dealt = list.emplace_back();
    TUTTI_ASSIGN_OR_RETURN(dealt.collective, parse_collective(item.substr(0, colon)));
    if (colon != item.npos) {
      if (!has_data(dealt.collective)) {
        return error(Code::invalid_argument, "'{}': {} has no data: leave the size out", shown(item),
                     to_string(dealt.collective));
      }
      TUTTI_ASSIGN_OR_RETURN(dealt.bytes, parse_bytes(item.substr(colon + 1)));
    }
    begin = end + 1;
  }
  return list;
}

std::string deal_of(const std::vector<Cell>& cells) {
  std::vector<std::string> works;
  for (const Cell& cell : cells) works.push_back(work_of(cell));
  return fmt::format("{}", fmt::join(works, "+"));
}

bool is_deal(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '+';
  });
}

}  // namespace tutti::harness::cases
