// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/conformance.h"

#include <algorithm>
#include <set>

#include "harness/cases/backend_name.h"
#include "harness/cases/lists.h"
#include "harness/cases/transports.h"
#include "impl/algorithms/algorithm.h"
#include "impl/execute/resources.h"
#include "impl/schedule/segment.h"
#include "impl/transports/transport.h"
#include "impl/types/names.h"

namespace tutti::harness::cases {
namespace {

constexpr Count kAwkward = 1023;
constexpr Count kManySlices = 123567;  ///< elements, of a block or of all blocks of a v form: of floats 30 slots
constexpr int kWindow = 3;             ///< of the cases of every count
constexpr Count kFew = 17;             ///< elements beyond the longest call that is one segment
/// Where kManySlices elements make a rank's buffer longer than this, their dtype has one byte. A block then still has 7
/// slots, and no block begins at a line. With a longer dtype, half of a check's time would go to a few long blocks of
/// many ranks.
constexpr std::int64_t kMostBytesOfBaseDtype = std::int64_t{1} << 20U;
/// Beyond this number of ranks a quarter of that, 7 slots: a one-shot reduction reads as much as all inputs P times
/// over.
constexpr int kMostRanksOfManySlices = 128;
/// A kernel does not know of the ranks. Beyond this number of ranks, each dtype and each op has a case, but not each
/// pair of them.
constexpr int kMostRanksOfAllPairs = 5;

Count many_slices(int ranks) { return ranks > kMostRanksOfManySlices ? kManySlices / 4 : kManySlices; }

constexpr Count kEndless = 1 << 24;  ///< elements of a block: what can be cut into segments is

/// How a call of `count` elements is cut, on the transport of such ranks on one host.
Count segments_of(const Algorithm& algorithm, const Problem& problem, RanksIn in, Dtype dtype, Count count,
                  Buffers buffers) {
  const DomainShape shape = best_transport(in).shape(problem.ranks, 1, 0);
  const auto segment =
      choose_segment(schedule_of(algorithm, problem), {.count = count,
                                                       .dtype = dtype,
                                                       .op = is_reducing(problem.collective) ? Op::sum : Op::none,
                                                       .buffers = buffers,
                                                       .resources = resources_of(shape)});
  return segment.is_ok() ? (count + segment.value() - 1) / segment.value() : 0;
}

/// The fewest segments of its forms that can be cut at all; 1 where none can. Private buffers are staged and long
/// shared ones are not, which moves the edge.
Count segments_of(const Algorithm& algorithm, const Problem& problem, RanksIn in, Dtype dtype, Count count) {
  Count fewest = 0;
  for (const Buffers buffers : {Buffers::private_, Buffers::shared}) {
    if (segments_of(algorithm, problem, in, dtype, kEndless, buffers) <= 1) continue;
    const Count segments = segments_of(algorithm, problem, in, dtype, count, buffers);
    fewest = fewest == 0 ? segments : std::min(fewest, segments);
  }
  return std::max<Count>(fewest, 1);
}

/// Elements per block with which every form of the algorithm has a full segment and a tail. The segment of a long call
/// is rounded down. So a call that is a little longer than it may still be one segment: the edge is searched.
Count above_one_segment(const Algorithm& algorithm, const Problem& problem, RanksIn in, Dtype dtype) {
  const Count pieces = segments_of(algorithm, problem, in, dtype, kEndless);
  if (pieces <= 1) return kAwkward + kFew;
  Count whole = 1, cut = kEndless;  // one segment, more than one
  while (cut - whole > 1) {
    const Count middle = whole + (cut - whole) / 2;
    (segments_of(algorithm, problem, in, dtype, middle) > 1 ? cut : whole) = middle;
  }
  const std::int64_t bytes =
      2 * problem.ranks * problem.pairing.window * buffer_bytes(problem, cut + kFew, size_of(dtype));
  return bytes <= kMostCaseBytes ? cut + kFew : kAwkward + kFew;
}

class Builder {
 public:
  explicit Builder(const Sweep& sweep) : sweep_(sweep), counts_(sweep.counts) {
    for (Counts& counts : counts_) counts = with_seed(counts, sweep.seed);
    choose_base();
    const auto is_byte = [&](Dtype dtype) {
      return size_of(dtype) == 1 && is_integer(dtype) && op_exists(base_op_, dtype);
    };
    const auto byte = std::ranges::find_if(sweep.dtypes.values, is_byte);
    byte_dtype_ = byte != sweep.dtypes.values.end() ? *byte : base_dtype_;
  }

  /// `algorithm`: null for a backend whose algorithms have no names.
  void add_algorithm(Collective collective, const Algorithm* algorithm, int ranks) {
    if (!has_op_of(collective)) return leave_out(left_out_, no_such_op(collective, sweep_.ops.values.front()));
    const std::set<int> roots = is_rooted(collective) ? std::set{0, ranks - 1} : std::set{0};
    if (has_window(collective) && ranks < 2) {
      return leave_out(left_out_, fmt::format("{} on 1 rank, which is no pair", to_string(collective)));
    }
    for (const int root : roots) {
      Problem problem{.collective = collective, .ranks = ranks, .root = root};
      if (has_window(collective)) problem.pairing.window = kWindow;
      if (has_counts(collective)) {
        add_v_forms(base(algorithm, problem, 0));
        continue;
      }
      if (has_data(collective)) {
        add_counts(algorithm, problem);
      } else {
        add(base(algorithm, problem, 0));
      }
      if (root == 0) add_types(base(algorithm, problem, ranks + 1));
      if (has_window(collective) || has_pairs(collective)) add_pairings(algorithm, problem);
    }
    for (int root = 1; root < ranks - 1 && is_rooted(collective); ++root) {  // every other root once
      Case one = base(algorithm, {.collective = collective, .ranks = ranks, .root = root}, ranks + 1);
      if (has_counts(collective)) one.counts = counts_.back();
      if (!fits(one.counts, one.problem())) continue;
      set_count(one, ranks + 1);
      add(one);
    }
  }
  /// Of the cases that are added from here on.
  void set_backend(const std::string& backend) { backend_ = backend; }
  void set_transport(const std::string& transport) { transport_ = transport; }
  [[nodiscard]] Conformance take() { return {.cases = std::move(cases_), .left_out = std::move(left_out_)}; }

 private:
  /// The first dtype and op that exist together.
  void choose_base() {
    base_dtype_ = sweep_.dtypes.values.front();
    base_op_ = sweep_.ops.values.front();
    for (const Dtype dtype : sweep_.dtypes.values) {
      for (const Op op : sweep_.ops.values) {
        if (!op_exists(op, dtype)) continue;
        base_dtype_ = dtype;
        base_op_ = op;
        return;
      }
    }
  }
  /// The base op, or the next one that the collective has.
  [[nodiscard]] Op base_op_of(Collective collective) const {
    if (takes_op(collective, base_op_)) return base_op_;
    const auto fits = [&](Op op) { return takes_op(collective, op) && op_exists(op, base_dtype_); };
    const auto other = std::ranges::find_if(sweep_.ops.values, fits);
    return other == sweep_.ops.values.end() ? base_op_ : *other;
  }
  [[nodiscard]] bool has_op_of(Collective collective) const {
    return !is_reducing(collective) || takes_op(collective, base_op_of(collective));
  }
  [[nodiscard]] Case base(const Algorithm* algorithm, const Problem& problem, Count count) const {
    return base(algorithm, problem, count, base_dtype_);
  }
  [[nodiscard]] Case base(const Algorithm* algorithm, const Problem& problem, Count count, Dtype dtype) const {
    Case one;
    one.collective = problem.collective;
    one.backend = backend_;
    one.transport = transport_;
    one.dtype = has_data(problem.collective) ? dtype : Dtype::f32;
    one.op = is_reducing(problem.collective) ? base_op_of(problem.collective) : Op::none;
    one.ranks = problem.ranks;
    one.ranks_as = sweep_.ranks_as;
    one.root = problem.root;
    one.pairing = problem.pairing;
    set_count(one, count);
    one.algorithm = algorithm == nullptr ? kNone : algorithm->name;
    return one;
  }
  void add_counts(const Algorithm* algorithm, const Problem& problem) {
    const int ranks = problem.ranks;
    for (const Count count : std::set<Count>{0, 1, ranks - 1, ranks, ranks + 1, kAwkward}) {
      add_forms(base(algorithm, problem, count));
    }
    const Count count = many_slices(ranks);
    const bool is_of_bytes = buffer_bytes(problem, count, size_of(base_dtype_)) > kMostBytesOfBaseDtype;
    const Dtype dtype = is_of_bytes ? byte_dtype_ : base_dtype_;
    add_forms(base(algorithm, problem, count, dtype));
    const RanksIn in = ranks_in(sweep_.ranks_as);
    if (algorithm != nullptr && segments_of(*algorithm, problem, in, dtype, count) < 2) {
      add_forms(base(algorithm, problem, above_one_segment(*algorithm, problem, in, base_dtype_)));
    }
  }
  /// Windows that the user asked for, of short messages and of long ones, and pairs of ranks that are no neighbours.
  void add_pairings(const Algorithm* algorithm, Problem problem) {
    for (const int window : has_window(problem.collective) ? sweep_.windows : std::vector<int>()) {
      problem.pairing.window = window;
      for (const Count count : {Count{1}, kAwkward}) add_forms(base(algorithm, problem, count));
    }
    const int last = problem.ranks - 1;
    if (!has_pairs(problem.collective) || last < 2) return;
    for (const int first : std::set{0, 1, last - 1}) {
      problem.pairing.first = first;
      problem.pairing.second = last;
      add_forms(base(algorithm, problem, kAwkward));
    }
  }
  void add_v_forms(Case one) {
    for (const Counts& counts : counts_) {
      one.counts = counts;
      if (!fits(counts, one.problem())) {
        leave_out(left_out_, misfit(counts, one.problem()));
        continue;
      }
      for (const Count elements : elements_of(one)) {
        set_bytes(one, elements * static_cast<std::int64_t>(size_of(one.dtype)));
        add_placements(one);
      }
      // Types and patterns have nothing to do with each other: those of the last pattern are enough.
      if (one.root == 0 && counts == counts_.back()) add_types(one);
    }
  }
  /// A file says how many there are.
  static std::set<Count> elements_of(const Case& one) {
    if (one.counts.pattern == Pattern::file) return {0};
    return {0, 1, one.ranks + 1, kAwkward, many_slices(one.ranks)};
  }
  void add_placements(Case one) {
    for (const bool is_in_place : {false, true}) {
      if (is_in_place && !blocks_of(one).is_same_both_ways()) continue;
      one.is_in_place = is_in_place;
      add(one);
    }
    one.is_in_place = false;
    one.buffers = Buffers::shared;
    add(one);
  }

  static void set_count(Case& one, Count count) {
    if (has_counts(one.collective)) return set_bytes(one, count * static_cast<std::int64_t>(size_of(one.dtype)));

    one.count = has_data(one.collective) ? count : 0;
    one.bytes = buffer_bytes(one.problem(), one.count, size_of(one.dtype));
  }

  void add_forms(Case one) {
    for (const bool is_in_place : {false, true}) {
      for (const Buffers buffers : {Buffers::private_, Buffers::shared}) {
        one.is_in_place = is_in_place;
        one.buffers = buffers;
        add(one);
      }
    }
  }

  void add_types(Case one) {
    if (!has_data(one.collective)) return;
    const std::vector<Op> ops = is_reducing(one.collective) ? sweep_.ops.values : std::vector{Op::none};
    std::set<Op> met;
    for (const Dtype dtype : sweep_.dtypes.values) {
      for (const Op op : ops) {
        if (!op_exists(op, dtype)) {
          leave_out(left_out_, no_such_pair(dtype, op));
          continue;
        }
        if (!takes_op(one.collective, op)) {
          leave_out(left_out_, no_such_op(one.collective, op));
          continue;
        }
        const bool is_first_of_dtype = one.dtype != dtype || met.empty();
        if (!met.insert(op).second && !is_first_of_dtype && one.ranks > kMostRanksOfAllPairs) continue;
        one.dtype = dtype;
        one.op = op;
        set_count(one, kAwkward);
        add(one);
      }
    }
  }

  void add(const Case& one) {
    if (seen_.insert(case_id(one)).second) cases_.push_back(one);
  }

  const Sweep& sweep_;
  std::string backend_;
  std::string transport_;
  std::vector<Counts> counts_;
  Dtype base_dtype_{};
  Dtype byte_dtype_{};  ///< the base dtype where none of one byte is asked for
  Op base_op_{};
  std::vector<Case> cases_;
  std::vector<LeftOut> left_out_;
  std::set<std::string> seen_;
};

}  // namespace

Result<Conformance> conformance_cases(const Sweep& sweep) {
  TUTTI_RETURN_IF_ERROR(check_pairs(sweep, pair_exists));
  Builder builder(sweep);
  std::set<std::string> wanted(sweep.algorithms.begin(), sweep.algorithms.end());
  const bool is_all = wanted.erase("all") > 0;
  std::set<std::string> used;
  std::vector<std::string> names;
  const auto add_all = [&](int ranks) {
    for (const Collective collective : sweep.collectives) {
      for (const Algorithm* algorithm : algorithms_of(collective)) {
        append_new(names, std::string(algorithm->name));
        const bool is_wanted = wanted.contains(std::string(algorithm->name));
        if (is_wanted) used.emplace(algorithm->name);
        if (is_all || is_wanted) builder.add_algorithm(collective, algorithm, ranks);
      }
    }
  };
  const std::vector<std::string> transports = transports_of(sweep);
  const std::vector<std::string> backends =
      sweep.backends.empty() ? std::vector{std::string(kOwnBackend)} : sweep.backends;
  bool has_own = false;
  for (const int ranks : sweep.ranks) {
    for (const std::string& backend : backends) {
      const bool is_own = backend_of(backend) == kOwnBackend;
      has_own |= is_own;
      builder.set_backend(backend);
      for (const std::string& transport : transports) {
        builder.set_transport(transport);
        if (is_own) add_all(ranks);
      }
      if (is_own) continue;
      for (const Collective collective : sweep.collectives) builder.add_algorithm(collective, nullptr, ranks);
    }
  }
  if (!has_own) return builder.take();
  for (const std::string& name : wanted) {
    if (!used.contains(name)) return unknown_name("algorithm of the collectives that are checked", name, names);
  }
  return builder.take();
}

}  // namespace tutti::harness::cases
