// SPDX-License-Identifier: Apache-2.0
#include "harness/report/table.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/cases/dealt_ranks.h"
#include "harness/record/launches.h"
#include "harness/report/table_text.h"
#include "harness/text/counted.h"
#include "impl/types/host_list.h"
#include "impl/types/status.h"

namespace tutti::harness::report {
namespace {

bool is_own(const Row& row) { return row.backend == kOwnBackend; }

/// The other system's row, where `rows` has exactly one of a reference: what the own rows are compared with.
const Row* reference_of(std::span<const Row> rows) {
  const auto is_reference = [](const Row& row) { return !is_own(row); };
  if (std::ranges::count_if(rows, is_reference) != 1) return nullptr;
  return &*std::ranges::find_if(rows, is_reference);
}

bool is_side_by_side(std::span<const Row> rows) { return rows.size() == 2 && rows[0].backend != rows[1].backend; }

/// "rank 1", "rank 1 on node2" of a row on named hosts.
std::string name_of_rank(const Row& row, std::int64_t rank) {
  const std::string name = fmt::format("rank {}", rank);
  const std::vector<NamedHost> hosts = named_hosts(row);
  if (rank < 0 || rank >= row.ranks || row.ranks > slots_of(hosts)) return name;
  const int host = dealt_to(hosts, static_cast<int>(row.ranks)).host_of(static_cast<int>(rank));
  return fmt::format("{} on {}", name, hosts[static_cast<std::size_t>(host)].name);
}

/// ": rank 1 on node2 (3 rows), rank 0 on node1 (1 row)", the most frequent one first.
std::string late_text(const std::map<std::string, std::int64_t>& rows_of_rank) {
  constexpr std::size_t kMostNamed = 4;
  std::vector<std::pair<std::string, std::int64_t>> sorted(rows_of_rank.begin(), rows_of_rank.end());
  std::ranges::stable_sort(sorted, std::ranges::greater(), &std::pair<std::string, std::int64_t>::second);
  std::vector<std::string> texts;
  for (const auto& [name, rows] : sorted) {
    if (texts.size() < kMostNamed) texts.push_back(fmt::format("{} ({})", name, counted(rows, "row")));
  }
  if (sorted.size() > kMostNamed) texts.push_back(fmt::format("and {} more", sorted.size() - kMostNamed));
  return texts.empty() ? "" : fmt::format(": {}", fmt::join(texts, ", "));
}

constexpr char kNoisySign = '~';        // after the interval
constexpr char kNearFloorSign = '\'';   // after the time
constexpr char kLimitTooLowSign = '!';  // after the share of the limit

/// Autocorrelation from which on the interval may cover less than it says (see harness/measure/README.md).
constexpr double kAlike = 0.5;

/// Wide enough for `dissemination`, with the space before it.
constexpr std::size_t kLeastAlgorithmWidth = 14;
constexpr std::size_t kLeastBackendWidth = 10;

/// The columns of a block: those that may be left out, and how wide the algorithm's is.
struct Shown {
  std::size_t backend_width = kLeastBackendWidth;
  std::size_t algorithm_width = kLeastAlgorithmWidth;
  bool has_count = true;
  bool has_backend = true;
  bool has_algorithm = true;
  bool has_algbw = true;
  bool has_busbw = true;
  bool has_limit = true;
  bool has_ratio = true;

  [[nodiscard]] Shown without_limit() const {
    Shown other = *this;
    other.has_limit = false;
    return other;
  }
};

/// time ci algbw busbw limit verdict.
std::string measures(const Row& row, const Shown& shown) {
  const std::string limit =
      fmt::format("{:>6}{}", ratio_text(row.limit_fraction), has_mark(row, kLimitTooLow) ? kLimitTooLowSign : ' ');
  return fmt::format(" {:>8}{}{:>5}{}{}{}{}{:>9}", number(row.time_median),
                     has_mark(row, kNearFloor) ? kNearFloorSign : ' ', interval(row),
                     has_mark(row, kNoisy) ? kNoisySign : ' ',
                     shown.has_algbw ? fmt::format("{:>7} ", number(row.algbw)) : "",
                     shown.has_busbw ? fmt::format("{:>7}", number(row.busbw)) : "", shown.has_limit ? limit : " ",
                     to_string(row.verdict));
}
std::string measures_names(const Shown& shown) {
  return fmt::format(" {:>8} {:>5} {}{}{} {:>9}", "time", "ci", shown.has_algbw ? fmt::format("{:>7} ", "algbw") : "",
                     shown.has_busbw ? fmt::format("{:>7}", "busbw") : "", shown.has_limit ? " limit" : "", "verdict");
}
std::string measures_units(const Shown& shown) {
  return fmt::format(" {:>8} {:>5} {}{}{} {:>9}", "(us)", "(%)", shown.has_algbw ? fmt::format("{:>7} ", "(GB/s)") : "",
                     shown.has_busbw ? fmt::format("{:>7}", "(GB/s)") : "", shown.has_limit ? "      " : "", "");
}
std::size_t measures_width(const Shown& shown) { return measures_names(shown).size(); }

/// A reference has no algorithm to show.
std::string algorithm_cell(const Row& row, std::string_view text, const Shown& shown) {
  return is_own(row) ? fmt::format(" {:>{}}", text, shown.algorithm_width - 1) : std::string();
}

/// How exact the results are, and where they are the same; empty where that is not known.
std::string accuracy_line(const Row& row) {
  if (!row.error_ulp || !row.error_ulp_mean) return {};
  std::string line = fmt::format("#   {}: error {:.3g} ulp at most, {:.3g} on average", system_of(row), *row.error_ulp,
                                 *row.error_ulp_mean);
  if (!row.same_on_ranks.empty()) line += fmt::format("; same bits on all ranks: {}", row.same_on_ranks);
  return line + fmt::format("; on all repeats: {}\n", row.same_on_repeats);
}

/// A message's share of the time, and how many there were in a second.
std::string messages_line(const Row& row) {
  if (!row.message_rate || !row.time_median || !row.window) return {};
  return fmt::format("#   {}: {:.4g} messages/s; {:.4g} us each (time / {})\n", system_of(row), *row.message_rate,
                     *row.time_median / static_cast<double>(*row.window), *row.window);
}

std::string overlap_line(const Row& row) {
  const auto calls = row.conditions.find("overlap_calls");
  if (!row.overlap || !row.overlap_called || calls == row.conditions.end()) return {};
  return fmt::format("#   {}: overlap with computing {:.0f} %, with {} calls meanwhile {:.0f} %\n", system_of(row),
                     *row.overlap, calls->second, *row.overlap_called);
}

std::string ranks_line(const Row& row) {
  if (!row.rank_time_min || !row.rank_time_mean || !row.rank_time_max) return {};
  return fmt::format("#   {}: over the ranks {} us the fastest, {} in the mean, {} the slowest\n", system_of(row),
                     number(row.rank_time_min), number(row.rank_time_mean), number(row.rank_time_max));
}

std::string banner(std::string_view name, std::size_t width) {
  return fmt::format("  {:-^{}}", fmt::format(" {} ", name), width - 2);
}

/// The cells whose samples resemble each other most.
std::string alike_line(std::vector<std::pair<double, std::string>> alike) {
  constexpr std::size_t kMostNamed = 3;
  if (alike.empty()) return {};
  std::ranges::sort(alike, std::greater());
  std::vector<std::string> named;
  for (std::size_t i = 0; i < std::min(alike.size(), kMostNamed); ++i) {
    named.push_back(fmt::format("{} {:.2f}", alike[i].second, alike[i].first));
  }
  if (alike.size() > kMostNamed) {
    named.push_back(fmt::format("and {} more (all: column autocorrelation of --csv)", alike.size() - kMostNamed));
  }
  return fmt::format("# autocorrelated: {} whose neighbouring samples resemble each other by {} or more: {}\n",
                     counted(alike.size(), "row"), kAlike, fmt::join(named, ", "));
}

/// Which backends have their buffers where, of cells in which they differ.
std::string memory_line(const std::map<std::string, std::set<std::string>>& backends_by_memory) {
  std::vector<std::string> parts;
  for (const auto& [memory, backends] : backends_by_memory) {
    parts.push_back(
        fmt::format("those of {} in {}", fmt::join(backends, ", "), memory == "host" ? "the host's" : "a GPU's"));
  }
  if (parts.empty()) return {};
  return fmt::format("# different memory: buffers lie, {}, so no ratio is taken between them\n",
                     fmt::join(parts, ", "));
}

/// Who tells a share of the limit: where the limit is one and the same, ours alone does.
bool has_own_limit(const Row& row, std::span<const Row> rows) {
  return is_own(row) || std::ranges::any_of(rows, [&](const Row& other) { return !have_like_memory(row, other); });
}

std::string heading_side_by_side(std::span<const Row> rows, const Shown& all) {
  std::string systems = fmt::format("#{:>22}", "");
  std::string names = fmt::format("#{:>10} {:>11}", "size", "count");
  std::string units = fmt::format("#{:>10} {:>11}", "(B)", "(elements)");
  for (const Row& row : rows) {
    const Shown shown = has_own_limit(row, rows) ? all : all.without_limit();
    systems += banner(row.backend, measures_width(shown) + (is_own(row) ? shown.algorithm_width : 0));
    names += algorithm_cell(row, "algorithm", shown) + measures_names(shown);
    units += algorithm_cell(row, "", shown) + measures_units(shown);
  }
  names += fmt::format("{:>7}", reference_of(rows) != nullptr ? "ratio" : "");
  return without_trailing_spaces(systems) + without_trailing_spaces(names) + without_trailing_spaces(units);
}

/// size count backend algorithm.
template <class Number>
std::string front_stacked(const Number& size, const Number& count, std::string_view backend, std::string_view algorithm,
                          const Shown& shown) {
  return fmt::format("{:>10}{}{}{}", size, shown.has_count ? fmt::format(" {:>11}", count) : "",
                     shown.has_backend ? fmt::format("  {:<{}}", backend, shown.backend_width) : "",
                     shown.has_algorithm ? fmt::format("{:>{}}", algorithm, shown.algorithm_width) : "");
}

std::string heading_stacked(const Shown& shown) {
  const auto front = [&](std::string_view size, std::string_view count, std::string_view backend,
                         std::string_view algorithm) {
    return "#" + front_stacked(size, count, backend, algorithm, shown);
  };
  const std::string names =
      front("size", "count", "backend", "algorithm") + measures_names(shown) + (shown.has_ratio ? "  ratio" : "");
  const std::string units = front("(B)", "(elements)", "", "") + measures_units(shown);
  return names + "\n" + without_trailing_spaces(units);
}

/// What stands in the column algorithm. Where no column says the backend it tells those apart too.
std::string name_stacked(const Row& row, const Shown& shown) {
  if (!shown.has_backend) return is_own(row) ? row.algorithm : system_of(row);
  return row.algorithm == kNone ? std::string(kMissing) : row.algorithm;
}

std::string lines_stacked(std::span<const Row> rows, const Shown& shown, const RatioOf& ratio) {
  const Row* reference = reference_of(rows);
  std::string lines;
  for (const Row& row : rows) {
    const bool is_compared = shown.has_ratio && reference != nullptr && is_own(row);
    lines += without_trailing_spaces(
        " " + front_stacked(row.bytes, row.count, row.backend, name_stacked(row, shown), shown) + measures(row, shown) +
        (is_compared ? fmt::format("{:>7}", ratio_text(ratio(row, *reference))) : ""));
  }
  return lines;
}

std::string line_side_by_side(std::span<const Row> rows, const Shown& all, const RatioOf& ratio) {
  std::string line = fmt::format(" {:>10} {:>11}", rows[0].bytes, rows[0].count);
  for (const Row& row : rows) {
    const Shown shown = has_own_limit(row, rows) ? all : all.without_limit();
    line += algorithm_cell(row, row.algorithm, shown) + measures(row, shown);
  }
  if (const Row* reference = reference_of(rows)) {
    const Row& ours = reference == &rows[0] ? rows[1] : rows[0];
    line += fmt::format("{:>7}", ratio_text(ratio(ours, *reference)));
  }
  return without_trailing_spaces(line);
}

/// The longest of the lines.
std::size_t width_of(std::string_view text) {
  std::size_t most = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    most = std::max(most, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return most;
}

/// Only their algorithms tell such rows apart.
bool has_a_backend_twice(std::span<const Row> rows) {
  std::set<std::string_view> backends;
  for (const Row& row : rows) backends.insert(row.backend);
  return backends.size() < rows.size();
}

/// How the rows of a cell stand in the room that there is.
struct Arrangement {
  Shown shown;
  bool is_side_by_side = false;
};
Arrangement arrangement_of(std::span<const Row> rows, const TableLayout& layout) {
  Arrangement arrangement;
  Shown& shown = arrangement.shown;
  shown.algorithm_width = std::max(kLeastAlgorithmWidth, layout.longest_algorithm + 1);
  shown.backend_width = std::max(kLeastBackendWidth, layout.longest_backend);
  shown.has_ratio = reference_of(rows) != nullptr;
  const std::size_t most = layout.width.value_or(std::string::npos);
  arrangement.is_side_by_side = is_side_by_side(rows) && width_of(heading_side_by_side(rows, shown)) <= most;
  if (arrangement.is_side_by_side) return arrangement;
  // What another column tells too goes first: the count with the size, either bandwidth with the time.
  bool Shown::*const name = has_a_backend_twice(rows) ? &Shown::has_backend : &Shown::has_algorithm;
  for (bool Shown::*const column :
       {&Shown::has_count, &Shown::has_algbw, &Shown::has_limit, &Shown::has_busbw, name, &Shown::has_ratio}) {
    if (width_of(heading_stacked(shown)) <= most) break;
    shown.*column = false;
  }
  return arrangement;
}

/// Whether the time is not known to within itself.
bool is_without_meaning(const Row& row) {
  if (!row.time_median || !row.time_ci_low || !row.time_ci_high) return false;
  return (*row.time_ci_high - *row.time_ci_low) / 2 > *row.time_median;
}

}  // namespace

std::optional<double> ratio_within_a_launch(const Row& ours, const Row& theirs) {
  const auto counts = [](const Row& row) {
    const bool is_usable = row.verdict == Verdict::ok || row.verdict == Verdict::unchecked;
    return is_usable && row.time_median && *row.time_median > 0;
  };
  if (!counts(ours) || !counts(theirs) || ours.launch != theirs.launch) return {};
  if (!have_like_memory(ours, theirs)) return {};
  return *ours.time_median / *theirs.time_median;
}

std::string Table::reasons(std::span<const Row> rows) {
  std::string lines;
  for (const Row& row : rows) {
    if (row.reason.empty()) continue;
    const std::string line = fmt::format("#   {} {}: {}\n", system_of(row), to_string(row.verdict), row.reason);
    if (told_.insert(line).second) lines += line;
  }
  return lines;
}

void Table::count(std::span<const Row> rows) {
  // A cell that several starters ran is one.
  const auto [first, is_new] = starters_.emplace(cell_of_case(rows[0].case_id), rows[0].starter);
  cells_ += is_new || first->second == rows[0].starter ? 1 : 0;
  for (const Row& row : rows) {
    ++verdicts_[row.verdict];
    noisy_ += has_mark(row, kNoisy) ? 1 : 0;
    near_floor_ += has_mark(row, kNearFloor) ? 1 : 0;
    limit_too_low_ += has_mark(row, kLimitTooLow) ? 1 : 0;
    late_starts_ += has_mark(row, kLateStarts) ? 1 : 0;
    if (has_mark(row, kLateStarts) && row.last_rank) ++late_ranks_[name_of_rank(row, *row.last_rank)];
    fewer_iterations_ += has_mark(row, kFewerIterations) ? 1 : 0;
    from_formula_ += has_mark(row, kFromFormula) ? 1 : 0;
    flat_on_hosts_ += has_mark(row, kFlatOnHosts) ? 1 : 0;
    const bool has_other_memory =
        std::ranges::any_of(rows, [&](const Row& other) { return !have_like_memory(row, other); });
    if (has_other_memory) backends_by_memory_[row.memory].insert(row.backend);
    if (row.autocorrelation.value_or(0) >= kAlike) alike_.push_back({*row.autocorrelation, row.case_id});
    if (!row.disturbed.empty()) {
      ++disturbed_;
      add_disturbances(disturbances_, row.disturbed);
    }
    if (row.verdict == Verdict::skipped) {
      const std::string why = fmt::format("{}: {}", row.backend, row.reason);
      const auto same = std::ranges::find(skipped_, why, &std::pair<std::string, std::int64_t>::first);
      same != skipped_.end() ? static_cast<void>(++same->second) : skipped_.push_back({why, 1});
    }
    const bool is_empty_call = row.bytes == 0 && row.collective != to_string(Collective::barrier);
    if (!is_own(row) || is_empty_call) continue;
    for (const Row& reference : rows) {
      const bool is_other = !is_own(reference) && cell_of_case(reference.case_id) == cell_of_case(row.case_id);
      const auto value = is_other ? ratio_(row, reference) : std::nullopt;
      if (!value) continue;
      if (is_without_meaning(row) || is_without_meaning(reference)) {
        ++ratios_[reference.backend].unknown;
        continue;
      }
      ratios_[reference.backend].add(*value);
      if (is_twin(reference.backend)) continue;  // nobody that could be the best
      references_.insert(reference.backend);
      double& worst = worst_[row.case_id];
      worst = std::max(worst, *value);
    }
  }
}

void Table::Ratios::add(double ratio) {
  ++cells;
  slower += ratio > 1 ? 1 : 0;
  log_sum += std::log(ratio);
}

std::string Table::Ratios::line(std::string_view of_whom) const {
  const std::string mean = cells == 0
                               ? ""
                               : fmt::format("geometric mean {} over {}, of which {} above 1",
                                             ratio_text(std::exp(log_sum / static_cast<double>(cells))), cells, slower);
  const std::string without =
      unknown == 0 ? "" : fmt::format("{}{} left out, as a ci is above 100 %", mean.empty() ? "" : "; ", unknown);
  return fmt::format("# ratio, time of {} / time of {}: {}{}\n", kOwnBackend, of_whom, mean, without);
}

std::string Table::cell(std::span<const Row> rows) {
  TUTTI_ASSERT(!rows.empty(), "a cell without rows");
  if (!rows[0].groups.empty()) return contention(rows);
  std::string text;
  const auto measured = std::ranges::find_if(rows, [](const Row& row) { return row.time_median.has_value(); });
  if (measured != rows.end()) conditions_ = conditions_line(*measured);  // a cell without times has those of the run
  const Arrangement arrangement = arrangement_of(rows, layout_);
  const Shown& shown = arrangement.shown;
  const bool is_in_one_line = arrangement.is_side_by_side;
  // Of several settings the column of backends says the same, and all stand in one block.
  const bool is_told = layout_.has_settings && std::ranges::all_of(rows, [](const Row& row) {
                         return instance_of(row.backend) == row.starter;
                       });
  const bool is_named = layout_.names_starter && !is_told && !rows[0].starter.empty();
  const std::string starter = is_named ? fmt::format(", started by {}", rows[0].starter) : "";
  std::string heading = fitted(fmt::format("# {}{}\n{}", title_of(rows[0]), starter, conditions_)) +
                        (is_in_one_line ? heading_side_by_side(rows, shown) : heading_stacked(shown));
  if (heading != heading_) {
    text = (heading_.empty() ? "" : "\n") + heading;
    heading_ = std::move(heading);
    told_.clear();
  }
  text += is_in_one_line ? line_side_by_side(rows, shown, ratio_) : lines_stacked(rows, shown, ratio_);
  std::string remarks;
  for (const Row& row : rows) {
    remarks += (shows_accuracy_ ? accuracy_line(row) : "") + messages_line(row) + overlap_line(row) + ranks_line(row);
  }
  text += fitted(remarks + reasons(rows));
  count(rows);
  return text;
}

std::string Table::fitted(std::string_view text) const {
  constexpr std::string_view kNext = "#   ";
  std::string result;
  while (!text.empty()) {
    std::string line(text.substr(0, text.find('\n')));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    while (layout_.width && line.size() > *layout_.width) {
      const std::size_t first_word = line.find_first_not_of("# ");
      const std::size_t within = line.rfind(' ', *layout_.width);
      const std::size_t at = within == std::string::npos || within <= first_word ? line.find(' ', first_word) : within;
      if (at == std::string::npos) break;  // a word that is longer than the width
      const std::size_t next = line.find_first_not_of(' ', at);
      if (next == std::string::npos) break;  // spaces alone
      result += line.substr(0, at) + "\n";
      line = std::string(kNext) + line.substr(next);
    }
    result += line + "\n";
  }
  return result;
}

std::int64_t Table::rows_with(Verdict verdict) const {
  const auto entry = verdicts_.find(verdict);
  return entry == verdicts_.end() ? 0 : entry->second;
}

std::string Table::footer(std::span<const LeftOut> left_out) const {
  std::int64_t rows = 0;
  std::string verdicts;
  for (const Verdict verdict : all_verdicts()) {
    rows += rows_with(verdict);
    verdicts += fmt::format("{}{} {}", verdicts.empty() ? "" : ", ", rows_with(verdict), to_string(verdict));
  }
  std::string text = fmt::format("# {} in {}: {}\n", counted(rows, "row"), counted(cells_, "cell"), verdicts);
  for (const auto& [reference, sum] : ratios_) text += sum.line(reference);
  if (references_.size() > 1) {
    Ratios to_best;
    for (const auto& [_, ratio] : worst_) to_best.add(ratio);
    text += to_best.line("the best of them in each cell");
  }
  if (noisy_ > 0) {
    text += fmt::format("# {} after ci: noisy, {} whose interval is not within 1 % (2 % below 50 us)\n", kNoisySign,
                        counted(noisy_, "row"));
  }
  if (near_floor_ > 0) {
    text += fmt::format("# {} after time: near floor, {} below five times a sample in which nothing is done\n",
                        kNearFloorSign, counted(near_floor_, "row"));
  }
  if (limit_too_low_ > 0) {
    text += fmt::format("# {} after limit: limit too low, {} faster than the limit by more than 5 %\n",
                        kLimitTooLowSign, counted(limit_too_low_, "row"));
  }
  if (late_starts_ > 0) {
    text += fmt::format("# late starts: {} in which a rank came late to more than a quarter of the samples{}\n",
                        counted(late_starts_, "row"), late_text(late_ranks_));
  }
  if (fewer_iterations_ > 0) {
    text += fmt::format("# fewer iterations: {} with fewer samples than --iterations asked for\n",
                        counted(fewer_iterations_, "row"));
  }
  if (from_formula_ > 0) {
    text += fmt::format(
        "# from the cost formula: {} whose algorithm `auto` chose by it: the table of measured choices has none for "
        "such "
        "ranks. Times and results are as good as all others; --algorithms all shows whether another is faster\n",
        counted(from_formula_, "row"));
  }
  if (flat_on_hosts_ > 0) {
    text += fmt::format(
        "# flat on unequal hosts: {} of an algorithm for hosts of equally many ranks, which took each rank for a host "
        "of its own\n",
        counted(flat_on_hosts_, "row"));
  }
  text += memory_line(backends_by_memory_);
  text += alike_line(alike_);
  if (disturbed_ > 0) {
    text += fmt::format("# disturbed while they were measured: {} (column disturbed): {}\n", counted(disturbed_, "row"),
                        disturbances_);
  }
  for (const auto& [reason, number_of_rows] : skipped_)
    text += fmt::format("# skipped: {} x {}\n", number_of_rows, reason);
  for (const LeftOut& item : left_out) text += fmt::format("# left out: {} x {}\n", item.cells, item.reason);
  return "\n" + fitted(text);
}

}  // namespace tutti::harness::report
