// SPDX-License-Identifier: Apache-2.0
// A sweep is what the user asked for: one list per axis of the cells, and how to run them. The parsers here turn the
// text of each option into a value. They are the whole grammar of the sweep options, for flags and for suite files
// alike.
//
// Every parser has the same grammar for lists: commas between items, `all` where a list of everything makes sense, no
// item twice in the result. An error is `invalid_argument` with a message of at most five lines. It names the value,
// what is allowed and the nearest right one. The caller puts the option's name in front.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/cases/case.h"
#include "harness/cases/conditions.h"
#include "harness/cases/groups.h"

namespace tutti::harness::cases {

/// A list of values, or `all`: the two differ where a combination does not exist. What is named and does not exist is
/// the user's mistake; what arises from `all` is left out.
template <class T>
struct Choice {
  std::vector<T> values = {};
  bool is_all = false;
};

struct Sweep {
  std::vector<Collective> collectives = {};
  std::vector<std::int64_t> sizes = {};  ///< bytes asked for
  Choice<Dtype> dtypes = {{Dtype::f32}, false};
  Choice<Op> ops = {{Op::sum}, false};
  Choice<int> roots = {{0}, false};  ///< no values with `all`: every rank is a root
  std::vector<int> ranks = {};
  RanksAs ranks_as = RanksAs::processes;
  std::vector<std::string> backends = {};                 ///< empty: all found
  std::vector<std::string> algorithms = {"auto"};         ///< `auto`, `all` or names
  std::vector<std::string> transports = {};               ///< empty: the best there is; see transports_of
  std::optional<std::vector<Placement>> placements = {};  ///< empty: the default of each collective
  std::vector<Buffers> buffers = {Buffers::private_};
  std::vector<Counts> counts = {Counts()};        ///< of the v forms
  CountsUnit counts_unit = CountsUnit::elements;  ///< of the files among them
  Cadence cadence = Cadence::isolated;
  std::vector<int> windows = {kUsualWindow};     ///< of the collectives that have one
  Choice<Pairing> pairs = {{Pairing{}}, false};  ///< no values with `all`: every pair of ranks, each alone
  Groups groups = {};                            ///< of a contention
  std::vector<Dealt> beside = {};                ///< what its groups after the first run, in turn; empty: the same
  std::uint64_t seed = 1;
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);  ///< of one cell
  std::optional<std::chrono::nanoseconds> budget = {};          ///< of the whole sweep
  int launches = 1;                                             ///< times that the whole sweep is started afresh
};

/// Those of its cells.
[[nodiscard]] std::vector<std::string> transports_of(const Sweep& sweep);

inline constexpr std::string_view kDefaultSizes = "8:64M:x4";
inline constexpr std::size_t kMaxSizes = 4096;
inline constexpr int kMaxLaunches = 1000;

/// Bytes: `4096`, `64K`, `1.5M`, `2G`, `1T` (binary, either case, also as `64KB` and `64KiB`).
[[nodiscard]] Result<std::int64_t> parse_bytes(std::string_view text);
/// Items `4M`, `8:64M:x4` (start, times 4 up to at most stop) and `0:1K:+128` (start, plus 128 up to at most stop).
[[nodiscard]] Result<std::vector<std::int64_t>> parse_sizes(std::string_view text);
/// Items `4` and `1:128` (every number between), 1 to `most`.
[[nodiscard]] Result<std::vector<int>> parse_ranks(std::string_view text, int most = kMaxRanks);
/// As parse_ranks from 0, or `all`. Whether a root fits the rank counts is `expand`'s to say.
[[nodiscard]] Result<Choice<int>> parse_roots(std::string_view text);

[[nodiscard]] Result<std::vector<Collective>> parse_collectives(std::string_view text);
[[nodiscard]] Result<Choice<Dtype>> parse_dtypes(std::string_view text);
[[nodiscard]] Result<Choice<Op>> parse_ops(std::string_view text);
[[nodiscard]] Result<std::vector<Placement>> parse_placements(std::string_view text);
[[nodiscard]] Result<std::vector<Buffers>> parse_buffer_kinds(std::string_view text);
/// Patterns and files, see parse_counts. A file with a comma in its name stands alone.
[[nodiscard]] Result<std::vector<Counts>> parse_counts_list(std::string_view text);
/// As parse_ranks, 1 to kMaxWindow.
[[nodiscard]] Result<std::vector<int>> parse_windows(std::string_view text);
/// `neighbours`, pairs such as `0-3`, or `all`. Whether a pair fits the rank counts is `expand`'s to say.
[[nodiscard]] Result<Choice<Pairing>> parse_pairs(std::string_view text);
/// `auto`, `all`, or names of algorithms of any collective. An error lists those of `collectives` alone, or all if it
/// is empty.
[[nodiscard]] Result<std::vector<std::string>> parse_algorithms(std::string_view text,
                                                                std::span<const Collective> collectives = {});
/// Names; which there are the code that runs them knows.
[[nodiscard]] Result<std::vector<std::string>> parse_transports(std::string_view text);
/// Names among `known`, with settings or without them (settings.h), or `all`. One that is named twice is there with its
/// twin (case.h): `tutti,tutti` are `tutti` and `tutti:2`.
[[nodiscard]] Result<std::vector<std::string>> parse_backends(std::string_view text,
                                                              const std::vector<std::string>& known);

/// A whole number from 1 to kMaxLaunches.
[[nodiscard]] Result<int> parse_launches(std::string_view text);

/// `20us`, `500ms`, `1.5s`, `4m`, `1h`: a number above 0 and its unit, also as `sec`, `min`, `hours` and the like.
[[nodiscard]] Result<std::chrono::nanoseconds> parse_duration(std::string_view text);
/// A duration of at least 1ms: deadlines are counted in them.
[[nodiscard]] Result<std::chrono::nanoseconds> parse_timeout(std::string_view text);

/// `64M` for 67108864: the shortest text that parse_bytes reads back.
[[nodiscard]] std::string format_bytes(std::int64_t bytes);

}  // namespace tutti::harness::cases
