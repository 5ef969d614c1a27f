// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/conditions.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "harness/cases/case.h"
#include "harness/cases/kinds.h"
#include "harness/cases/sweep.h"
#include "harness/machine/caches.h"
#include "harness/machine/flush.h"
#include "harness/text/read_file.h"
#include "impl/types/names.h"
#include "impl/types/number.h"

namespace tutti::harness::cases {
namespace {

constexpr std::array kCheckings{Named{Checking::every, "every"}, Named{Checking::sample, "sample"},
                                Named{Checking::none, "none"}};
constexpr std::array kValues{Named{Values::exact, "exact"}, Named{Values::random, "random"},
                             Named{Values::special, "special"}};
constexpr std::array kCacheStates{Named{CacheState::hot, "hot"}, Named{CacheState::cold, "cold"},
                                  Named{CacheState::rotate, "rotate"}};
constexpr std::array kSynchronisations{Named{Synchronisation::roundtime, "roundtime"},
                                       Named{Synchronisation::dissemination, "dissemination"},
                                       Named{Synchronisation::library, "library"}};

const Conditions kUsual;
constexpr int kMostMisalign = 63;  ///< the last byte of a cache line
constexpr int kMostInCrowd = 64;

/// Empty where it is as usual.
std::string unusual_text(std::string text, bool is_usual) { return is_usual ? std::string() : std::move(text); }

Status read_cache(Conditions& values, std::string_view text) {
  TUTTI_RETURN_IF_ERROR(store(parse_cache_state(text), values.cache));
  if (values.cache == CacheState::rotate && last_level_cache().bytes == 0) {
    return error(Code::unavailable, "'{}' needs the size of the last-level cache, which this machine does not tell",
                 text);
  }
  if (values.cache != CacheState::cold || can_flush()) return {};
  return error(Code::unavailable,
               "'{}' needs an instruction that flushes a cache line, which this CPU has not: 'hot' is there", text);
}

/// A duration as parse_duration reads it back.
std::string duration_text(std::chrono::nanoseconds duration) {
  const auto [us, ns] = std::div(duration.count(), std::int64_t{1000});
  return ns == 0 ? fmt::format("{}us", us) : fmt::format("{}.{:03}us", us, ns);
}

/// What `checked_on` ends with: `timed; random values`.
std::string unusual_values_in(std::string_view field) {
  for (const Values values : {Values::random, Values::special}) {
    const std::string name = fmt::format("{} values", to_string(values));
    if (field.ends_with("; " + name)) return name;
  }
  return {};
}

/// Of a file that a user names, or what `table_text_of` says of one that the launcher has read: ranks read no file.
Status read_table(Conditions& values, std::string_view text) {
  const std::size_t end = text.find('\n');
  std::string name(text.substr(0, end)), content;
  if (end != text.npos) {
    content = text.substr(end + 1);
  } else {
    TUTTI_ASSIGN_OR_RETURN(content, read_file(name, kMostInTable));
  }
  const std::size_t slash = name.rfind('/');
  const std::string_view last = std::string_view(name).substr(slash == name.npos ? 0 : slash + 1);
  auto table = SelectionTable::parse(shown(last), std::move(content));
  if (!table.is_ok()) return error(table.status().code(), "'{}': {}", shown(name), table.status().message());
  values.selection.table = std::make_shared<const SelectionTable>(std::move(table).value());
  return {};
}
std::string table_text_of(const Conditions& values) {
  const auto& table = values.selection.table;
  return table == nullptr ? std::string() : table->name() + "\n" + table->text();
}

Status check_skew(const Conditions& values, const Beside& beside) {
  if (values.skew < beside.timeout) return {};
  return error(Code::invalid_argument, "must be shorter than --timeout, which is {} ms",
               std::chrono::duration_cast<std::chrono::milliseconds>(beside.timeout).count());
}

Status check_misalign(const Conditions& values, const Beside& beside) {
  if (beside.dtypes.empty()) return {};
  // Sizes are powers of two: what fits the largest fits all.
  const Dtype largest = std::ranges::max(beside.dtypes, {}, size_of);
  const auto element = static_cast<int>(size_of(largest));
  if (values.misalign % element == 0) return {};
  const int nearest = (values.misalign + element / 2) / element * element;
  return error(Code::invalid_argument, "{} is no multiple of the {} bytes of {}: did you mean {}?", values.misalign,
               element, to_string(largest), std::clamp(nearest, element, kMostMisalign + 1 - element));
}

constexpr std::array kClashesOfCache{Clash{.own = "rotate",
                                           .option = "--check",
                                           .value = "every",
                                           .why = "whose fresh data bring a call's buffers into the caches",
                                           .meant = "--check sample"},
                                     Clash{.option = "--cadence",
                                           .value = "streaming",
                                           .why = "where the operations of a sample follow each other",
                                           .meant = "--cadence isolated"}};
constexpr std::array kClashesOfSkew{Clash{.option = "--cadence",
                                          .value = "streaming",
                                          .why = "where the operations of a sample follow each other",
                                          .meant = "--cadence isolated"}};
constexpr std::array kClashesOfSlow{
    Clash{.option = "--ranks-as",
          .kinds = [](const RankKind& kind) { return kind.is_on_device || kind.ranks_of_runner != 1; },
          .why = "which have no core of their own to be slow on",
          .meant = "--ranks-as processes"},
};
constexpr std::array kClashesOfOverlap{
    Clash{.option = "--ranks-as",
          .kinds = [](const RankKind& kind) { return !kind.is_on_device && kind.ranks_of_runner != 1; },
          .why = "whose one thread would compute for all ranks in turn",
          .meant = "--ranks-as processes"},
    Clash{.option = "--cadence",
          .value = "streaming",
          .why = "where each operation begins when the last has ended",
          .meant = "--cadence isolated"},
    Clash{.option = "--cache", .why = "which is measured without computing", .meant = "--cache hot"},
    Clash{.option = "--skew", .why = "which is measured without computing", .meant = "one of the two"}};

/// The percent of `20%`; empty: it is none.
std::optional<int> percent_in(std::string_view text) {
  constexpr int kMostPercent = 10'000;
  if (!text.ends_with('%')) return {};
  const auto percent = parse_number(text.substr(0, text.size() - 1), "", 1, kMostPercent);
  return percent.is_ok() ? std::optional(percent.value()) : std::nullopt;
}

/// The number of a rank; empty: it is none.
std::optional<int> rank_in(std::string_view text) {
  const auto rank = parse_number(text, "", 0, kMaxRanks - 1);
  return rank.is_ok() ? std::optional(rank.value()) : std::nullopt;
}

Result<SlowRank> parse_slow_rank(std::string_view text) {
  const std::size_t colon = text.find(':');
  const auto rank = rank_in(text.substr(0, colon));
  const auto percent = colon == text.npos ? std::nullopt : percent_in(text.substr(colon + 1));
  if (rank && percent) return SlowRank{.rank = *rank, .percent = *percent};
  return error(Code::invalid_argument, "'{}' is not RANK:PERCENT, with 1% to 10000%: did you mean '{}:20%'?",
               shown(text), rank.value_or(1));
}

Result<SlowLink> parse_slow_link(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view pair = text.substr(0, colon);
  const std::size_t dash = pair.find('-');
  const auto first = rank_in(pair.substr(0, dash));
  const auto second = dash == pair.npos ? std::nullopt : rank_in(pair.substr(dash + 1));
  const auto percent = colon == text.npos ? std::nullopt : percent_in(text.substr(colon + 1));
  const bool is_pair = first && second && *first != *second;
  if (is_pair && percent) {
    return SlowLink{.first = std::min(*first, *second), .second = std::max(*first, *second), .percent = *percent};
  }
  return error(Code::invalid_argument,
               "'{}' is not RANK-RANK:PERCENT, with two ranks and 1% to 10000%: did you mean '{}:20%'?", shown(text),
               is_pair ? pair : "0-1");
}

std::string slow_rank_text(const SlowRank& slow) {
  return slow.rank < 0 ? std::string() : fmt::format("{}:{}%", slow.rank, slow.percent);
}
std::string slow_link_text(const SlowLink& slow) {
  return slow.first < 0 ? std::string() : fmt::format("{}-{}:{}%", slow.first, slow.second, slow.percent);
}

const std::array kConditions{
    Condition{
        .option = "--cache",
        .value = "STATE",
        .usual = "hot",
        .help = "hot: buffers are where the call before left them; cold: flushed from all caches before each call; "
                "rotate: each call takes the next of several sets of them, together twice the last-level cache",
        .example = "cold",
        .read = read_cache,
        .text = [](const Conditions& values) { return std::string(to_string(values.cache)); },
        .column = {.name = "cache",
                   .description = "hot: buffers are where the call before left them; cold: flushed from all caches "
                                  "before each call; rotate: each call takes the next of several sets of buffers; "
                                  "empty: nothing was measured",
                   .usual = "hot"},
        .clashes = kClashesOfCache,
        .names = [] { return names_in(kCacheStates); }},
    Condition{
        .option = "--sync",
        .value = "METHOD",
        .usual = "roundtime",
        .help = "how the ranks come together before a sample: roundtime (at an announced instant; where one is late it "
                "is repeated), dissemination (tutti's barrier), library (that of the system under test)",
        .example = "library",
        .read = [](Conditions& values,
                   std::string_view text) { return store(parse_synchronisation(text), values.sync); },
        .text = [](const Conditions& values) { return std::string(to_string(values.sync)); },
        .column = {.name = "sync",
                   .description = "how the ranks came together before a sample: roundtime (at an announced instant), "
                                  "dissemination (tutti's barrier) or library (that of the system under test); empty: "
                                  "nothing was measured",
                   .usual = "roundtime"},
        .names = [] { return names_in(kSynchronisations); }},
    Condition{
        .option = "--skew",
        .value = "TIME",
        .help =
            "one rank, another one in each call, enters this much later than the others; times are from its entry on",
        .example = "50us",
        .read = [](Conditions& values, std::string_view text) { return store(parse_duration(text), values.skew); },
        .text =
            [](const Conditions& values) {
              return unusual_text(duration_text(values.skew), values.skew == kUsual.skew);
            },
        .column = {.name = "skew",
                   .type = ConditionColumn::Type::number,
                   .unit = "us",
                   .description =
                       "by how much one rank, another one in each call, entered later than the others; times "
                       "are then from its entry on; empty: they entered together",
                   .words = "skew {} us (times are from the late rank's entry on)"},
        .field =
            [](const Conditions& values) {
              return unusual_text(fmt::format("{}", std::chrono::duration<double, std::micro>(values.skew).count()),
                                  values.skew == kUsual.skew);
            },
        .clashes = kClashesOfSkew,
        .check = check_skew},
    Condition{
        .option = "--slow-rank",
        .value = "R:PERCENT",
        .help = "rank R is slow on purpose: each of its MOVEs takes this much longer, such as 1:20%; of tutti's own "
                "collectives on ranks that share memory",
        .example = "1:20%",
        .read = [](Conditions& values,
                   std::string_view text) { return store(parse_slow_rank(text), values.slow_rank); },
        .text = [](const Conditions& values) { return slow_rank_text(values.slow_rank); },
        .column = {.name = "slow_rank",
                   .description = "the rank that was slow on purpose, and how much longer each of its MOVEs took: "
                                  "1:20%; empty: none was",
                   .words = "slow rank {}"},
        .clashes = kClashesOfSlow,
        .has_meaning = has_data,
        .lacks = "no data"},
    Condition{
        .option = "--slow-link",
        .value = "A-B:PERCENT",
        .help = "the link between ranks A and B is slow on purpose: each MOVE between their memory takes this much "
                "longer, in both directions, such as 0-1:20%; of tutti's own collectives on ranks that share memory",
        .example = "0-1:20%",
        .read = [](Conditions& values,
                   std::string_view text) { return store(parse_slow_link(text), values.slow_link); },
        .text = [](const Conditions& values) { return slow_link_text(values.slow_link); },
        .column = {.name = "slow_link",
                   .description = "the two ranks between which the link was slow on purpose, and how much longer each "
                                  "MOVE between them took: 0-1:20%; empty: none was",
                   .words = "slow link {}"},
        .clashes = kClashesOfSlow,
        .has_meaning = has_data,
        .lacks = "no data"},
    Condition{
        .option = "--overlap",
        .value = "CALLS",
        .help = "measures with nonblocking calls, and how much of each goes on while its ranks compute: without a call "
                "meanwhile, and with this many calls that test it",
        .example = "16",
        .read =
            [](Conditions& values, std::string_view text) {
              return store(parse_number(text, "a number of calls while computing", 1, 10'000), values.overlap_calls);
            },
        .text = [](const Conditions& values) { return unusual_number(values.overlap_calls, kUsual.overlap_calls); },
        .column = {.name = "overlap_calls",
                   .type = ConditionColumn::Type::integer,
                   .description = "calls that test the operation while its ranks compute, of time_overlapped_called",
                   .words = "nonblocking calls"},
        .clashes = kClashesOfOverlap,
        .has_meaning = has_data,
        .lacks = "no data"},
    Condition{
        .option = "--check",
        .value = "WHICH",
        .usual = "sample",
        .help = "results that are verified: every, sample (in each block the last one, one that is drawn, and "
                "one more on other data), none (verdict: unchecked)",
        .example = "every",
        .read = [](Conditions& values, std::string_view text) { return store(parse_checking(text), values.checking); },
        .text = [](const Conditions& values) { return std::string(to_string(values.checking)); },
        .column = {.usual = "sample", .words = "other data in every sample"},
        .told = {.column = "checked_on",
                 .unusual =
                     [](std::string_view field) { return std::string(field.starts_with("every ") ? "every" : ""); }},
        .names = [] { return names_in(kCheckings); }},
    Condition{
        .option = "--values",
        .value = "KIND",
        .usual = "exact",
        .help = "what inputs are made of: exact (every order of reduction gives the same bits); random, floats that "
                "are rounded, compared within a derived bound; special: NaN, infinities, zeros, subnormals, overflow",
        .example = "random",
        .read = [](Conditions& values, std::string_view text) { return store(parse_values(text), values.values); },
        .text = [](const Conditions& values) { return std::string(to_string(values.values)); },
        .column = {.usual = "exact values", .words = "{}"},
        .told = {.column = "checked_on", .unusual = unusual_values_in},
        .names = [] { return names_in(kValues); }},
    Condition{
        .option = "--misalign",
        .value = "BYTES",
        .usual = "0",
        .help = "every buffer begins this many bytes after a cache line: 0 to 63, a multiple of the element's size",
        .example = "8",
        .read =
            [](Conditions& values, std::string_view text) {
              return store(parse_number(text, "a number of bytes", 0, kMostMisalign), values.misalign);
            },
        .text = [](const Conditions& values) { return fmt::to_string(values.misalign); },
        .column = {.name = "misalign",
                   .type = ConditionColumn::Type::integer,
                   .unit = "bytes",
                   .description = "by how much every buffer began after a cache line; empty: nothing was measured",
                   .usual = "0 bytes",
                   .words = "buffers {} bytes after a cache line"},
        .check = check_misalign,
        .has_meaning = has_data,
        .lacks = "no data"},
    Condition{
        .option = "--crowd",
        .value = "N",
        .usual = "0",
        .help = "this many busy threads, 0 to 64, have the ranks' cores too on each host: what ranks meet beside other "
                "work",
        .example = "4",
        .read =
            [](Conditions& values, std::string_view text) {
              return store(parse_number(text, "a number of busy threads", 0, kMostInCrowd), values.crowd);
            },
        .text = [](const Conditions& values) { return fmt::to_string(values.crowd); },
        .column = {.name = "crowd",
                   .type = ConditionColumn::Type::integer,
                   .unit = "threads",
                   .description = "busy threads that had the ranks' cores too, on each host; empty: there were none",
                   .words = "{} busy threads beside the ranks"},
        .field = [](const Conditions& values) { return unusual_number(values.crowd, kUsual.crowd); }},
    Condition{
        .option = "--iterations",
        .value = "N",
        .help = "this many samples of each row, settled or not, and without --budget as long as that takes (default: "
                "until the interval is narrow)",
        .example = "100",
        .read =
            [](Conditions& values, std::string_view text) {
              return store(parse_number<std::int64_t>(text, "a number of samples", 1, 1'000'000), values.iterations);
            },
        .text = [](const Conditions& values) { return unusual_number(values.iterations, kUsual.iterations); }},
    Condition{.option = "--over-ranks",
              .help = "shows below each row what the fastest rank took, the mean over the ranks and the slowest, "
                      "medians of the samples; JSON and CSV have them then too. At the end it prints which ranks "
                      "came and ended last",
              .example = kAsked,
              .read =
                  [](Conditions& values, std::string_view text) {
                    values.tells_ranks = text == kAsked;
                    return Status();
                  },
              .text = [](const Conditions& values) { return unusual_text(std::string(kAsked), !values.tells_ranks); }},
    Condition{.option = "--table",
              .value = "FILE",
              .help =
                  "the selection table by which `auto` chooses, as `tutti tune` writes it (default: TUTTI_TABLE, or "
                  "what is built in); records name it and its hash",
              .example = "x.csv\ncollective,place,crowded,buffers,ranks_from,ranks_to,bytes_from,bytes_to,algorithm,"
                         "segment,stores,source\n",
              .read = read_table,
              .text = table_text_of},
    Condition{.option = "--no-limit",
              .help = "does not measure the machine's own limit beside each cell",
              .example = kAsked,
              .read =
                  [](Conditions& values, std::string_view text) {
                    values.has_limit = text != kAsked;
                    return Status();
                  },
              .text = [](const Conditions& values) { return unusual_text(std::string(kAsked), values.has_limit); }},
};

/// Stops compiling where a field was added: each has a row.
[[maybe_unused]] void count_fields(const Conditions& values) {
  [[maybe_unused]] const auto& [v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, v14, topology] = values;
  static_assert(std::tuple_size_v<decltype(kConditions)> == 14);
}

/// Ranks that have a device are thread blocks, whatever calls for them.
RanksAs kind_beside(const Beside& beside) {
  return beside.ranks_on == RanksOn::cores ? beside.ranks_as : RanksAs::blocks;
}

/// The text of another option, where it is not the usual one.
std::string text_beside(std::string_view option, const Conditions& values, const Beside& beside) {
  if (option == "--cadence") return std::string(to_string(beside.cadence));
  if (option == "--ranks-as") return std::string(to_string(kind_beside(beside)));
  const Condition* const condition = condition_of_option(option);
  std::string text = condition->text(values);
  return text == condition->usual ? std::string() : text;
}

Status check_clashes_of(const Condition& condition, const Conditions& values, const Beside& beside) {
  const std::string own = condition.text(values);
  for (const Clash& clash : condition.clashes) {
    const std::string other = text_beside(clash.option, values, beside);
    const bool is_own = clash.own.empty() ? own != condition.usual : own == clash.own;
    const bool is_other = clash.kinds != nullptr ? clash.kinds(*kind_beside(beside).operator->())
                          : clash.value.empty()  ? !other.empty()
                                                 : other == clash.value;
    if (!is_own || !is_other) continue;
    return error(Code::invalid_argument, "{}: '{}' has no meaning with {} {}, {}: did you mean {}?", condition.option,
                 own, clash.option, other, clash.why, clash.meant);
  }
  return {};
}

}  // namespace

std::string_view to_string(Checking checking) { return name_in(kCheckings, checking); }
std::string_view to_string(Values values) { return name_in(kValues, values); }
std::string_view to_string(CacheState cache) { return name_in(kCacheStates, cache); }
std::string_view to_string(Synchronisation how) { return name_in(kSynchronisations, how); }

Result<Checking> parse_checking(std::string_view text) {
  if (text == "last") return error(Code::invalid_argument, "'last' is no check any more: write 'sample'");
  return parse_kind("check", text, kCheckings);
}
Result<Values> parse_values(std::string_view text) { return parse_kind("kind of values", text, kValues); }
Result<CacheState> parse_cache_state(std::string_view text) {
  return parse_kind("state of the cache", text, kCacheStates);
}
Result<Synchronisation> parse_synchronisation(std::string_view text) {
  return parse_kind("synchronisation", text, kSynchronisations);
}

bool ReadTable::operator==(const ReadTable& other) const {
  if (table == nullptr || other.table == nullptr) return table == other.table;
  return table->name() == other.table->name() && table->text() == other.table->text();
}

const SelectionTable& table_of(const Conditions& conditions) {
  return SelectionTable::of(conditions.selection.table.get());
}

std::map<std::string, std::string> table_facts(const Conditions& conditions) {
  const SelectionTable& table = table_of(conditions);
  return {{"name", table.name()}, {"hash", table.hash()}};
}

std::span<const Condition> conditions() {
  static const std::vector<Condition> all = [] {
    std::vector<Condition> rows(kConditions.begin(), kConditions.end());
    rows.insert(rows.end(), topology_options().begin(), topology_options().end());
    return rows;
  }();
  return all;
}

const Condition* condition_of_option(std::string_view option) {
  const auto found = std::ranges::find(conditions(), option, &Condition::option);
  return found == conditions().end() ? nullptr : &*found;
}

const Condition* condition_of_column(std::string_view column) {
  const auto found = std::ranges::find_if(
      conditions(), [&](const Condition& one) { return !column.empty() && one.column.name == column; });
  return found == conditions().end() ? nullptr : &*found;
}

std::string field_of(const Condition& condition, const Conditions& values) {
  return condition.field != nullptr ? condition.field(values) : condition.text(values);
}

Status check_conditions(std::span<const Condition> rows, const Conditions& values, const Beside& beside) {
  for (const Condition& condition : rows) {
    TUTTI_RETURN_IF_ERROR(check_clashes_of(condition, values, beside));
    const Status fits = condition.check != nullptr ? condition.check(values, beside) : Status();
    if (!fits.is_ok()) return error(fits.code(), "{}: {}", condition.option, fits.message());
  }
  return {};
}

Status check_conditions(const Conditions& values, const Beside& beside) {
  return check_conditions(kConditions, values, beside);
}

}  // namespace tutti::harness::cases
