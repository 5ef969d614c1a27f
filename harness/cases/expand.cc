// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/expand.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "harness/cases/compositions.h"
#include "harness/cases/groups.h"
#include "harness/cases/lists.h"
#include "impl/algorithms/added.h"
#include "impl/algorithms/algorithm.h"
#include "impl/communicator/selection.h"

namespace tutti::harness::cases {
namespace {

bool is_wildcard(std::string_view algorithm) { return algorithm == kAuto || algorithm == kAll; }

bool has_algorithm(Collective collective, std::string_view name) {
  return is_wildcard(name) || find_tuned(collective, name).is_ok();
}

Status check_roots(const Sweep& sweep) {
  const int most = std::ranges::max(sweep.ranks);
  for (const int root : sweep.roots.values) {
    if (root < most) continue;
    return error(Code::invalid_argument,
                 "root '{}' fits none of the rank counts ({}): allowed are 0 to {}: did you mean '{}'?", root,
                 fmt::join(sweep.ranks, ","), most - 1, most - 1);
  }
  return {};
}

/// A collective with a window needs a pair, and a pair that is named is one on some number of ranks.
Status check_pairings(const Sweep& sweep) {
  const int most = std::ranges::max(sweep.ranks);
  if (most < 2 && std::ranges::all_of(sweep.collectives, has_window)) {
    return error(Code::invalid_argument, "{} on 1 rank: it needs a pair: allowed are 2 to {} ranks: did you mean '2'?",
                 to_string(sweep.collectives.front()), kMaxRanks);
  }
  if (std::ranges::none_of(sweep.collectives, has_pairs)) return {};
  if (sweep.pairs.is_all && most < 2) {
    return error(Code::invalid_argument, "pairs 'all': there are none on 1 rank: did you mean 'neighbours'?");
  }
  for (const Pairing& pair : sweep.pairs.values) {
    if (pair.second < most) continue;
    return error(Code::invalid_argument,
                 "pair '{}-{}' fits none of the rank counts ({}): allowed are two of the ranks 0 to {}{}", pair.first,
                 pair.second, fmt::join(sweep.ranks, ","), most - 1,
                 most < 2 ? std::string(": did you mean 'neighbours'?")
                          : fmt::format(": did you mean '{}-{}'?", std::min(pair.first, most - 2), most - 1));
  }
  return {};
}

Status check_algorithms(const Sweep& sweep) {
  for (const std::string& name : sweep.algorithms) {
    const auto has_it = [&](Collective collective) { return has_algorithm(collective, name); };
    if (std::ranges::any_of(sweep.collectives, has_it)) continue;
    return find_tuned(sweep.collectives.front(), name).status();
  }
  return {};
}

/// A file fits some v form on some number of ranks.
Status check_counts(const Sweep& sweep) {
  std::vector<Problem> problems;
  for (const Collective collective : sweep.collectives) {
    if (!has_counts(collective)) continue;
    for (const int ranks : sweep.ranks) problems.push_back({.collective = collective, .ranks = ranks});
  }
  for (const Counts& counts : sweep.counts) {
    const auto fits_here = [&](const Problem& problem) { return fits(counts, problem); };
    if (problems.empty()) continue;
    for (const Dtype dtype : sweep.dtypes.values) {
      if (!sweep.dtypes.is_all) TUTTI_RETURN_IF_ERROR(in_elements(counts, sweep.counts_unit, dtype).status());
    }
    if (std::ranges::any_of(problems, fits_here)) continue;
    return error(Code::invalid_argument, "counts: they fit none of the rank counts: {}",
                 misfit(counts, problems.back()));
  }
  return {};
}

Status check(const Sweep& sweep, PairExists exists) {
  const bool is_complete = !sweep.collectives.empty() && !sweep.sizes.empty() && !sweep.ranks.empty() &&
                           !sweep.dtypes.values.empty() && !sweep.ops.values.empty() && !sweep.buffers.empty();
  if (!is_complete)
    return error(Code::invalid_argument, "a sweep needs a collective, a size, a rank count, a dtype and an op");
  TUTTI_RETURN_IF_ERROR(check_pairs(sweep, exists));
  TUTTI_RETURN_IF_ERROR(check_roots(sweep));
  TUTTI_RETURN_IF_ERROR(check_counts(sweep));
  TUTTI_RETURN_IF_ERROR(check_pairings(sweep));
  return check_algorithms(sweep);
}

/// Walks the axes, from the outermost to the innermost, and makes a cell of every combination that can be.
class Expander {
 public:
  Expander(const Sweep& sweep, PairExists exists) : sweep_(sweep), exists_(exists) {}

  Expansion run() {
    for (const int ranks : sweep_.ranks) {
      for (const std::string& transport : transports_of(sweep_)) {
        for (const Collective collective : sweep_.collectives) {
          cell_ = Cell{};
          cell_.collective = collective;
          cell_.transport = transport;
          cell_.ranks = ranks;
          cell_.ranks_as = sweep_.ranks_as;
          cell_.cadence = sweep_.cadence;
          expand_work();
        }
      }
    }
    return std::move(expansion_);
  }

 private:
  /// Those of the call; with groups, which may differ by one, those that every group has.
  [[nodiscard]] int ranks_of_each() const {
    if (!sweep_.groups.is_any()) return cell_.ranks;
    return static_cast<int>(members_of(sweep_.groups, sweep_.groups.count - 1, cell_.ranks).size());
  }

  void expand_work() {
    if (!has_data(cell_.collective)) return finish(0);
    const bool reduces = is_reducing(cell_.collective);
    for (const Dtype dtype : sweep_.dtypes.values) {
      for (const Op op : reduces ? sweep_.ops.values : std::vector{Op::none}) {
        cell_.dtype = dtype;
        cell_.op = op;
        expand_roots();
      }
    }
  }

  void expand_roots() {
    std::vector<int> roots{0};
    if (is_rooted(cell_.collective)) roots = sweep_.roots.values;
    if (is_rooted(cell_.collective) && sweep_.roots.is_all) {
      roots.resize(static_cast<std::size_t>(ranks_of_each()));
      std::iota(roots.begin(), roots.end(), 0);
    }
    for (const int root : roots) {
      cell_.root = root;
      expand_pairs();
    }
  }

  void expand_pairs() {
    std::vector<Pairing> pairs{Pairing{}};
    if (has_pairs(cell_.collective)) pairs = sweep_.pairs.values;
    if (has_pairs(cell_.collective) && sweep_.pairs.is_all) {
      for (int first = 0; first < ranks_of_each(); ++first) {
        for (int second = first + 1; second < ranks_of_each(); ++second) {
          pairs.push_back({.first = first, .second = second});
        }
      }
    }
    for (const Pairing& pair : pairs) {
      for (const int window : has_window(cell_.collective) ? sweep_.windows : std::vector{1}) {
        cell_.pairing = pair;
        cell_.pairing.window = window;
        expand_memory();
      }
    }
  }

  void expand_memory() {
    const Placement usual = cell_.collective == Collective::broadcast ? Placement::in : Placement::out;
    for (const Placement placement : sweep_.placements.value_or(std::vector{usual})) {
      for (const Buffers buffers : sweep_.buffers) {
        cell_.is_in_place = placement == Placement::in;
        cell_.buffers = buffers;
        expand_counts();
      }
    }
  }

  /// A file's counts are not scaled: they are one cell, whatever the sizes.
  void expand_counts() {
    for (const Counts& counts : has_counts(cell_.collective) ? sweep_.counts : std::vector{Counts()}) {
      const Result<Counts> mine = in_elements(with_seed(counts, sweep_.seed), sweep_.counts_unit, cell_.dtype);
      if (!mine.is_ok()) {
        leave_out(expansion_.left_out, std::string(mine.status().message()));
        continue;
      }
      cell_.counts = mine.value();
      if (counts.pattern == Pattern::file) {
        finish(0);
      } else {
        for (const std::int64_t size : sweep_.sizes) finish(size);
      }
    }
    cell_.counts = {};
  }

  /// The cell with `size` bytes: added, merged or left out.
  void finish(std::int64_t size) {
    if (sweep_.groups.is_any()) return finish_contention(size);
    Cell cell = cell_;
    if (!fits_sweep(cell, size)) return;
    Case key;
    static_cast<Cell&>(key) = cell;
    if (seen_.insert(case_id(key)).second) expansion_.cells.push_back(cell);
  }

  /// What each group runs alone, and together with the others: two cells for each group, one after the other.
  void finish_contention(std::int64_t size) {
    std::vector<Cell> first_of_deal, of_groups;
    for (int group = 0; group < sweep_.groups.count; ++group) {
      const std::size_t turn = group == 0 || sweep_.beside.empty() ? 0 : (group - 1) % sweep_.beside.size() + 1;
      Cell cell = turn == 0 ? cell_ : beside(sweep_.beside[turn - 1]);
      const std::vector<int> members = members_of(sweep_.groups, group, cell_.ranks);
      cell.among = {.groups = to_string(sweep_.groups), .group = group, .ranks = static_cast<int>(members.size())};
      const std::int64_t usual = has_data(cell_.collective) ? size : sweep_.sizes.front();
      if (!fits_sweep(cell, turn == 0 ? size : sweep_.beside[turn - 1].bytes.value_or(usual))) return;
      if (first_of_deal.size() == turn) first_of_deal.push_back(cell);
      of_groups.push_back(cell);
    }
    if (!take_same_steps(of_groups)) {
      return leave_out(expansion_.left_out,
                       "groups of different placements, or with a barrier, in streaming or on shared buffers");
    }
    const std::string deal = first_of_deal.size() > 1 ? deal_of(first_of_deal) : std::string();
    Case key;
    static_cast<Cell&>(key) = of_groups.front();
    key.among.deal = deal;
    if (!seen_.insert(case_id(key)).second) return;
    for (Cell& cell : of_groups) {
      cell.among.deal = deal;
      for (const bool is_together : {false, true}) {
        cell.among.is_together = is_together;
        expansion_.cells.push_back(cell);
      }
    }
  }

  /// Whether their blocks have the same calls (harness/measure/block.h): those of a stream and those on shared buffers
  /// are verified otherwise in place, and so are barriers.
  [[nodiscard]] static bool take_same_steps(const std::vector<Cell>& cells) {
    const Cell& first = cells.front();
    return std::ranges::all_of(cells, [&](const Cell& cell) {
      const bool is_alike =
          cell.is_in_place == first.is_in_place && has_data(cell.collective) == has_data(first.collective);
      const bool is_shared = cell.buffers == Buffers::shared || first.buffers == Buffers::shared;
      return is_alike || (cell.cadence != Cadence::streaming && !is_shared);
    });
  }

  /// What a group runs beside the first one, on data of the same kind.
  [[nodiscard]] Cell beside(const Dealt& dealt) const {
    Cell cell;
    cell.collective = dealt.collective;
    cell.transport = cell_.transport;
    cell.ranks = cell_.ranks;
    cell.ranks_as = cell_.ranks_as;
    cell.cadence = cell_.cadence;
    if (has_window(cell.collective)) cell.pairing.window = sweep_.windows.front();
    if (!has_data(cell.collective)) return cell;
    const bool has_like = has_data(cell_.collective);
    cell.dtype = has_like ? cell_.dtype : sweep_.dtypes.values.front();
    if (is_reducing(cell.collective)) cell.op = cell_.op != Op::none ? cell_.op : sweep_.ops.values.front();
    if (is_rooted(cell.collective)) cell.root = cell_.root;
    const Placement usual = cell.collective == Collective::broadcast ? Placement::in : Placement::out;
    cell.is_in_place = sweep_.placements ? cell_.is_in_place : usual == Placement::in;
    if (has_like) cell.buffers = cell_.buffers;
    return cell;
  }

  /// Sets the bytes of the cell. False: it cannot be, and is left out.
  bool fits_sweep(Cell& cell, std::int64_t size) {
    const auto lacks = [&](std::string reason) {
      leave_out(expansion_.left_out, std::move(reason));
      return false;
    };
    const int ranks = cell.ranks_of_call();
    if (cell.op != Op::none && !exists_(cell.dtype, cell.op)) return lacks(no_such_pair(cell.dtype, cell.op));
    if (!takes_op(cell.collective, cell.op)) return lacks(no_such_op(cell.collective, cell.op));
    if (cell.root >= ranks) return lacks(fmt::format("root {} on {} ranks", cell.root, ranks));
    if (has_window(cell.collective) && ranks < 2) {
      return lacks(fmt::format("{} on 1 rank, which is no pair", to_string(cell.collective)));
    }
    if (cell.pairing.second >= ranks) {
      return lacks(fmt::format("pair {}-{} on {} ranks", cell.pairing.first, cell.pairing.second, ranks));
    }
    bool has_any = false;
    for (const std::string& name : sweep_.algorithms) {
      if (has_algorithm(cell.collective, name)) {
        has_any = true;
      } else {
        leave_out(expansion_.left_out, fmt::format("{} has no algorithm {}", to_string(cell.collective), name));
      }
    }
    if (!has_any) return false;
    if (!fits(cell.counts, cell.problem())) return lacks(misfit(cell.counts, cell.problem()));
    set_bytes(cell, size);
    const bool may_differ = cell.counts.pattern == Pattern::file || is_drawn(cell.counts.pattern);
    if (!cell.is_in_place || !may_differ || blocks_of(cell).is_same_both_ways()) return true;
    return lacks(fmt::format(
        "in place all_to_all_v sends what it receives: {} do not",
        cell.counts.pattern == Pattern::file ? "the file's counts" : fmt::format("counts '{}'", cell.counts.name)));
  }

  const Sweep& sweep_;
  PairExists exists_;
  Cell cell_;
  Expansion expansion_;
  std::set<std::string> seen_;
};

}  // namespace

Status check_ops(std::span<const Collective> collectives, std::span<const Op> ops) {
  std::vector<Collective> reducing;
  std::ranges::copy_if(collectives, std::back_inserter(reducing), is_reducing);
  for (const Op op : ops) {
    const auto takes_it = [op](Collective collective) { return takes_op(collective, op); };
    if (reducing.empty() || std::ranges::any_of(reducing, takes_it)) continue;
    std::vector<std::string_view> others;
    for (const Op other : all_ops()) {
      if (takes_op(reducing.front(), other)) others.push_back(to_string(other));
    }
    return error(Code::invalid_argument, "op '{}' does not exist for '{}': {}: allowed are {}", to_string(op),
                 to_string(reducing.front()), no_such_op(reducing.front(), op), fmt::join(others, " "));
  }
  return {};
}

Status check_pairs(const Sweep& sweep, PairExists exists) {
  if (!sweep.ops.is_all) TUTTI_RETURN_IF_ERROR(check_ops(sweep.collectives, sweep.ops.values));
  const bool are_named = !sweep.dtypes.is_all && !sweep.ops.is_all;
  if (!are_named || std::ranges::none_of(sweep.collectives, is_reducing)) return {};
  for (const Dtype dtype : sweep.dtypes.values) {
    for (const Op op : sweep.ops.values) {
      if (exists(dtype, op)) continue;
      std::vector<std::string_view> others;
      for (const Op other : all_ops()) {
        if (exists(dtype, other)) others.push_back(to_string(other));
      }
      return error(Code::invalid_argument, "op '{}' does not exist for dtype '{}': allowed are {}", to_string(op),
                   to_string(dtype), fmt::join(others, " "));
    }
  }
  return {};
}

std::string no_such_pair(Dtype dtype, Op op) {
  if (domain_of(op) == OpDomain::integers && !is_integer(dtype))
    return fmt::format("{} exists for integers only", to_string(op));
  return fmt::format("{} has no {}", to_string(dtype), to_string(op));
}

std::string no_such_op(Collective collective, Op op) {
  return fmt::format("{} has no {}: nothing says by what the sum over some of the ranks is divided",
                     to_string(collective), to_string(op));
}

void leave_out(std::vector<LeftOut>& left_out, std::string reason) {
  const auto same = std::ranges::find(left_out, reason, &LeftOut::reason);
  if (same != left_out.end()) {
    ++same->cells;
  } else {
    left_out.push_back({.cells = 1, .reason = std::move(reason)});
  }
}

bool pair_exists(Dtype dtype, Op op) { return op_exists(op, dtype); }

Result<Expansion> expand(const Sweep& sweep, PairExists exists) {
  TUTTI_RETURN_IF_ERROR(check(sweep, exists));
  return Expander(sweep, exists).run();
}

std::vector<Case> cases_of(const Cell& cell, const Sweep& sweep) {
  std::vector<Case> cases;
  const auto add = [&](std::string_view backend, std::string_view algorithm) {
    Case one;
    static_cast<Cell&>(one) = cell;
    one.backend = backend;
    one.algorithm = algorithm;
    append_new(cases, std::move(one));
  };
  for (const std::string& backend : sweep.backends) {
    const bool is_composed = is_composition(backend);
    if (is_composed && find_composition(cell.collective, composition_of(backend)) == nullptr) continue;
    if (is_composed || backend_of(backend) != kOwnBackend) {
      add(backend, kNone);
      continue;
    }
    for (const std::string& name : sweep.algorithms) {
      if (name == kAuto) add(backend, name);
      for (const Algorithm* algorithm : algorithms_of(cell.collective)) {
        const bool is_named = name == kAll || without_tuning(name) == algorithm->name;
        if (!is_named || !has_steps(*algorithm, cell.problem(), cell.is_in_place)) continue;
        add(backend, fmt::format("{}{}", algorithm->name, tuning_behind(name)));
      }
    }
  }
  return cases;
}

}  // namespace tutti::harness::cases
