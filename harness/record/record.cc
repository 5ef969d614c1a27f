// SPDX-License-Identifier: Apache-2.0
#include "harness/record/record.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "harness/text/number.h"
#include "impl/types/printable.h"

namespace tutti::harness::record {
namespace {

constexpr std::string_view kBetweenWords = "; ";  // of marks and disturbances

constexpr double kBytesPerMicrosecond = 1e-3;  // 1e9 bytes/s

Column of_condition(std::string_view name) {
  const Condition* const condition = condition_of_column(name);
  return {name, condition->column.unit, condition->column.description, condition};
}

/// In the order in which they were appended. A condition that is not named here has its column at the end; it is named
/// before another column is appended.
std::vector<Column> all_columns() {
  std::vector<Column> all{
      Column{"case", "", "the case's id; `--case` takes it", &Row::case_id},
      Column{"collective", "", "what was called", &Row::collective},
      Column{"backend", "", "the system under test", &Row::backend},
      Column{"algorithm", "", "the algorithm that ran; none for a reference, which chooses for itself",
             &Row::algorithm},
      Column{"transport", "", "how bytes move between the ranks", &Row::transport},
      Column{"buffers", "", "private, or shared: memory that every rank of the node can address", &Row::buffers},
      Column{"ranks", "", "number of ranks, P", &Row::ranks},
      Column{"dtype", "", "type of an element", &Row::dtype},
      Column{"op", "", "reduction, or none", &Row::op},
      Column{"root", "", "root's rank; empty where the collective has none", &Row::root},
      Column{"placement", "", "out (of place) or in (place)", &Row::placement},
      Column{"bytes", "bytes", "the larger of one rank's input and output; of a window one message's", &Row::bytes},
      Column{"count", "elements", "nccl-tests' count: elements of one block, of a v form the largest", &Row::count},
      Column{"cadence", "",
             "isolated: the ranks synchronise before every sample; streaming: before a loop of operations",
             &Row::cadence},
      Column{"launch", "", "which start of the ranks; ratios are taken only within one", &Row::launch},
      Column{"launches", "", "how many starts there were", &Row::launches},
      Column{"samples", "", "timed operations that count", &Row::samples},
      Column{"time_median", "us", "median of the time from the earliest start to the latest end over all ranks",
             &Row::time_median},
      Column{"time_ci_low", "us", "lower end of the median's 95 % interval", &Row::time_ci_low},
      Column{"time_ci_high", "us", "upper end of the median's 95 % interval", &Row::time_ci_high},
      Column{"time_min", "us", "fastest sample", &Row::time_min},
      Column{"time_p95", "us", "95th percentile; from 20 samples", &Row::time_p95},
      Column{"time_p99", "us", "99th percentile; from 100 samples", &Row::time_p99},
      Column{"time_max", "us", "slowest sample", &Row::time_max},
      Column{"algbw", "1e9 bytes/s", "bytes / time_median", &Row::algbw},
      Column{"busbw", "1e9 bytes/s", "algbw times the collective's factor, as in nccl-tests", &Row::busbw},
      Column{"limit_fraction", "", "limit_time / time_median: the share of the machine's limit that was reached",
             &Row::limit_fraction},
      Column{"verdict", "", "ok, wrong, unchecked, skipped or error", &Row::verdict},
      Column{"wrong", "elements", "elements that differ from the right result, over all ranks", &Row::wrong},
      Column{"slowest_rank", "", "the rank that most often ended last; if no sample counts, of all samples",
             &Row::slowest_rank},
      Column{"line_ns", "ns", "round trip of a cache line between the ranks while this was measured", &Row::line_ns},
      Column{"reason", "",
             "why the verdict is not ok, or why there is no time, no limit or fewer iterations; where wrong, the "
             "diagnosis",
             &Row::reason},
      Column{"ranks_as", "", "processes, threads, tasks or blocks", &Row::ranks_as},
      Column{"operations", "", "timed operations in one sample, whose time is their mean", &Row::operations},
      Column{
          "checked_on", "",
          "timed: the timed buffers, after a timed call; further: one more operation after a refill, since a loop in "
          "place feeds on its own results; every, last: as --check says; empty: nothing was "
          "checked. Then `3 passes of 15 ranks` where a narrow float cannot sum all ranks exactly (in one of the "
          "passes "
          "each rank contributed to each element); `random values`, `special values` as --values says; `special values "
          "too` of a check that had an operation on such besides",
          &Row::checked_on},
      Column{"counts", "", "how a v form's elements are shared out among its blocks; none for all others",
             &Row::counts},
      Column{"time_p90", "us", "90th percentile; from 10 samples", &Row::time_p90},
      Column{"autocorrelation", "", "of neighbouring samples (lag 1); the interval is widened by what it costs",
             &Row::autocorrelation},
      Column{"warm_up", "", "calls discarded before the first sample, until they stopped getting faster",
             &Row::warm_up},
      Column{
          "marks", "",
          "noisy: the interval is wider than it should be; near floor: the time is below five times that of a sample "
          "in which nothing is done; limit too low: faster than the limit by more than 5 %, a failure of the limit; "
          "late starts: more than a quarter of the samples are invalid; fewer iterations: --iterations asked for more "
          "samples; from the cost formula: `auto` chose the algorithm by it, since nothing was measured on such ranks; "
          "simulated on NAME: the table has it from `tutti simulate`, on a machine of that name; flat on unequal "
          "hosts: the algorithm is for hosts of equally many ranks, and took each rank for a host of "
          "its own; separated by semicolons; or empty",
          &Row::marks},
      Column{"limit_time", "us",
             "median time of the least data movement that does the same, without synchronisation, in this cell: see "
             "limit_way",
             &Row::limit_time},
      of_condition("cache"),
      of_condition("skew"),
      Column{
          "error_ulp", "ulp",
          "largest error of a float sum or product of random values, in units in the last place of the exact result; "
          "empty: nothing is rounded, or nothing was checked",
          &Row::error_ulp},
      Column{"error_ulp_mean", "ulp", "mean of the same, over the elements that were looked at", &Row::error_ulp_mean},
      Column{"same_on_ranks", "", "yes, no: whether all ranks had the same bits of it; empty where one rank has them",
             &Row::same_on_ranks},
      Column{"same_on_repeats", "", "yes, no: whether the operation gave the same bits again on the same data",
             &Row::same_on_repeats},
      of_condition("sync"),
      Column{"invalid_share", "",
             "samples that were made again because a rank entered late after the announced instant, of all that were "
             "made; empty where none was announced",
             &Row::invalid_share},
      Column{"arrival_skew", "us", "median time from the earliest to the latest arrival of a rank in a sample",
             &Row::arrival_skew},
      Column{"time_from_last", "us", "median of the time from the latest arrival to the latest end",
             &Row::time_from_last},
      Column{"last_rank", "",
             "the rank that most often arrived last; of a row marked late starts, the late samples too",
             &Row::last_rank},
      Column{
          "buffer_sets", "",
          "with cache rotate: sets of buffers that calls go through in turn, which with what is read between the calls "
          "have twice the last-level cache",
          &Row::buffer_sets},
      Column{"overlap", "%",
             "with --overlap: how much of the operation goes on while its ranks compute, 100 x (time_pure + "
             "time_computing "
             "- time_overlapped) / the lesser of the first two, within 0 and 100; all calls of the row are then "
             "nonblocking",
             &Row::overlap},
      Column{"overlap_called", "%", "the same with time_overlapped_called", &Row::overlap_called},
      of_condition("overlap_calls"),
      Column{"time_pure", "us", "median time of the operation, waited for at once", &Row::time_pure},
      Column{"time_computing", "us", "median time of as much computing without an operation", &Row::time_computing},
      Column{"time_overlapped", "us", "median time of both together, the operation waited for after the computing",
             &Row::time_overlapped},
      Column{"time_overlapped_called", "us",
             "the same with calls that test the operation, evenly spread over the computing",
             &Row::time_overlapped_called},
      Column{
          "disturbed", "",
          "what spoils measurements and was seen while this cell was measured, separated by semicolons: load (others "
          "had more than 10 % of the ranks' cores), steal (other machines of the host had more than 1 %), switches (a "
          "rank with a core was taken off it more than 500 times a second, and at least ten times), quota, heat (a "
          "core was stopped, or slowed down, for it), clock (changed by more than 5 %), "
          "stopped (all ranks of a host were stopped and continued, or the machine was paused); of the ranks' GPUs "
          "gpu_throttled, "
          "gpu_ecc (errors that could not be corrected), gpu_shared (others computed on it); of several hosts each "
          "word "
          "with its host, as quota on node2; or empty",
          &Row::disturbed},
      Column{"machine", "",
             "fingerprint of the machine: of its processor's name, the number of cores that may be used, and its "
             "machine id "
             "or host name; of several hosts, of all in their order; empty: it does not say",
             &Row::machine},
      Column{"host", "", "name of the host that this row comes from; of several, rank 0's; empty: it has none",
             &Row::host},
      Column{"timestamp", "", "when this row was finished: UTC, ISO 8601", &Row::timestamp},
      Column{"window", "messages",
             "what one rank of a pair sends in an operation, back to back: algbw is then window x bytes / "
             "time_median, and a message's share of the time is time_median / window; empty: the "
             "collective has none",
             &Row::window},
      Column{"pair", "",
             "neighbours: ranks 0 and 1, 2 and 3, ... at once; 0-3: these two, and all others idle; "
             "empty: the collective is not for one pair",
             &Row::pair},
      Column{"message_rate", "1/s",
             "messages of an operation / time_median, over all pairs and in both directions; empty "
             "without a window",
             &Row::message_rate},
      Column{"rank_time_min", "us",
             "with --over-ranks: median of what the fastest rank of a sample took, from its own entry to its own end",
             &Row::rank_time_min},
      Column{"rank_time_mean", "us", "the same of the mean over the ranks", &Row::rank_time_mean},
      Column{"rank_time_max", "us", "the same of the slowest rank", &Row::rank_time_max},
      of_condition("misalign"),
      Column{
          "starter", "",
          "what started the ranks: spawn (tutti itself), or the reference whose mpirun it was; ratios are taken only "
          "within one's launches; empty: another starter",
          &Row::starter},
      of_condition("device"),
      of_condition("lanes"),
      of_condition("block_threads"),
      Column{"gpu", "", "model of rank 0's GPU, in whose memory its buffers lie; empty: in the host's", &Row::gpu},
      Column{
          "time_on_gpu", "us",
          "median of what the slowest rank of a sample took by its GPU's clock: from an event on its stream before the "
          "operation to one after it; empty where calls have no stream",
          &Row::time_on_gpu},
      of_condition("pretended_hosts"),
      of_condition("ranks_per_cache"),
      of_condition("hosts"),
      Column{
          "memory", "",
          "where the system has its buffers: host, or gpu; times are compared within one only; empty: it was not run",
          &Row::memory},
      Column{
          "verified_by", "",
          "who compared the results: host; device, the one whose memory they lie in; teams, threads of the host that "
          "run the device's text; empty: none",
          &Row::verified_by},
      Column{
          "limit_way", "",
          "how limit_time was measured: movements, from buffer to buffer in shared memory; or on each rank's device, "
          "as many bytes as the rank reads and writes in them, by the faster of copy and triad; between machines "
          "stream, what has to leave each, sent to the next one; empty: it "
          "was not",
          &Row::limit_way},
      Column{"net_ns", "ns",
             "round trip of 8 bytes over TCP between two of the machines, beside the system under test, while this was "
             "measured; empty: ranks are on one, or outnumber cores",
             &Row::net_ns},
      of_condition("gpus"),
      Column{"graph", "",
             "yes: the operations were captured into a graph, whose launches were timed; empty: each was posted",
             &Row::graph},
      Column{"grouped", "", "operations that the library got as one group, if there were several", &Row::grouped},
      Column{"registered", "", "windows: shared buffers were registered as symmetric windows; empty: they were not",
             &Row::registered},
      Column{"clocks_bound", "us",
             "how well the clocks of the hosts were known while this was measured: half of the least round trip, the "
             "largest of its estimates; empty: ranks are on one",
             &Row::clocks_bound},
      Column{"step", "",
             "of a trace: the step that the times are of, or whole for all of them, with the gaps between their calls; "
             "empty: no trace",
             &Row::step},
      Column{
          "groups", "",
          "of a contention: how the job's ranks were dealt into groups: 2x4, two groups of four neighbours, or MOD:2, "
          "rank r in group r mod 2; ranks and slowest_rank are then those of the row's group; empty: there were no "
          "groups",
          &Row::groups},
      Column{"group", "", "of a contention: the group that the row is of, from 0", &Row::group},
      Column{"contention", "",
             "together: all groups ran at once; alone: the other groups waited; empty: there were no groups",
             &Row::contention},
      Column{"deal", "",
             "of a contention whose groups run different collectives: what the groups run, those after the first in "
             "turn; empty: all run the same",
             &Row::deal},
      Column{
          "slowdown", "",
          "of a row of a contention that ran together: its time / the time of the same group alone, from blocks that "
          "alternate: the middle of the ratios of each round",
          &Row::slowdown},
      Column{"slowdown_low", "", "lower end of the 95 % interval of slowdown", &Row::slowdown_low},
      Column{"slowdown_high", "", "upper end of the 95 % interval of slowdown", &Row::slowdown_high},
      Column{"table", "",
             "the selection table by which `auto` chose the algorithm: its name, a colon, and its hash; empty: the "
             "algorithm was named, or the system chose by itself",
             &Row::table},
  };
  for (const Condition& condition : conditions()) {
    const bool is_there = std::ranges::find(all, condition.column.name, &Column::name) != all.end();
    if (!condition.column.name.empty() && !is_there) all.push_back(of_condition(condition.column.name));
  }
  return all;
}

/// A field as text, by its type.
struct FieldText {
  const Row& row;

  std::optional<std::string> operator()(std::string Row::*member) const { return printable(row.*member); }
  std::optional<std::string> operator()(std::int64_t Row::*member) const { return fmt::to_string(row.*member); }
  std::optional<std::string> operator()(Verdict Row::*member) const { return std::string(to_string(row.*member)); }
  std::optional<std::string> operator()(std::optional<std::int64_t> Row::*member) const {
    const auto& value = row.*member;
    return value ? std::optional(fmt::to_string(*value)) : std::nullopt;
  }
  std::optional<std::string> operator()(std::optional<double> Row::*member) const {
    const auto& value = row.*member;
    return value && std::isfinite(*value) ? std::optional(fmt::format("{}", *value)) : std::nullopt;
  }
  std::optional<std::string> operator()(const Condition* condition) const {
    const auto field = row.conditions.find(condition->column.name);
    if (field != row.conditions.end()) return printable(field->second);
    return condition->column.type == ConditionColumn::Type::text ? std::optional(std::string()) : std::nullopt;
  }
};

/// Whether a column's member is of a condition whose field is of this type.
bool is_condition(const Member& member, ConditionColumn::Type type) {
  const auto* const condition = std::get_if<const Condition*>(&member);
  return condition != nullptr && (*condition)->column.type == type;
}

void set_condition(Row& row, const Condition& condition, const Conditions& values) {
  if (condition.column.name.empty()) return;
  std::string field = field_of(condition, values);
  if (!field.empty()) row.conditions[std::string(condition.column.name)] = std::move(field);
}

}  // namespace

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::ok:
      return "ok";
    case Verdict::wrong:
      return "wrong";
    case Verdict::unchecked:
      return "unchecked";
    case Verdict::skipped:
      return "skipped";
    case Verdict::error:
      return "error";
  }
  return "unknown";
}

std::span<const Verdict> all_verdicts() {
  static constexpr std::array kVerdicts{Verdict::ok, Verdict::wrong, Verdict::unchecked, Verdict::skipped,
                                        Verdict::error};
  return kVerdicts;
}

std::span<const Column> columns() {
  static const std::vector<Column> all = all_columns();
  return all;
}

bool is_appended(const Column& column) { return &column >= &columns()[kFirstColumns]; }

bool Column::is_text() const {
  return std::holds_alternative<std::string Row::*>(member) || std::holds_alternative<Verdict Row::*>(member) ||
         is_condition(member, ConditionColumn::Type::text);
}
bool Column::is_integer() const {
  return std::holds_alternative<std::int64_t Row::*>(member) ||
         std::holds_alternative<std::optional<std::int64_t> Row::*>(member) ||
         is_condition(member, ConditionColumn::Type::integer);
}
bool Column::may_be_empty() const {
  return std::holds_alternative<std::optional<std::int64_t> Row::*>(member) ||
         std::holds_alternative<std::optional<double> Row::*>(member) ||
         (std::holds_alternative<const Condition*>(member) && !is_text());
}

bool set_field(Row& row, const Condition& condition, std::string_view text) {
  if (text.empty()) return true;
  const ConditionColumn::Type type = condition.column.type;
  if (type == ConditionColumn::Type::integer && !number_in<std::int64_t>(text)) return false;
  if (type == ConditionColumn::Type::number && !number_in<double>(text)) return false;
  row.conditions[std::string(condition.column.name)] = printable(text);
  return true;
}

std::optional<std::string> field_text(const Row& row, const Column& column) {
  return std::visit(FieldText{row}, column.member);
}

bool has_mark(const Row& row, std::string_view mark) { return row.marks.find(mark) != std::string::npos; }

void add_mark(Row& row, std::string_view mark) {
  if (has_mark(row, mark)) return;
  if (!row.marks.empty()) row.marks += kBetweenWords;
  row.marks += mark;
}

std::vector<std::string_view> words_in(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    words.push_back(text.substr(0, text.find(kBetweenWords)));
    text.remove_prefix(std::min(text.size(), words.back().size() + kBetweenWords.size()));
  }
  return words;
}

void add_disturbances(std::string& seen, std::string_view words) {
  for (const std::string_view word : words_in(words)) {
    const auto known = words_in(seen);
    if (std::ranges::find(known, word) != known.end()) continue;
    if (!seen.empty()) seen += kBetweenWords;
    seen += word;
  }
}

bool is_disturbed_by(const Row& row, std::string_view cause) {
  return std::ranges::any_of(words_in(row.disturbed),
                             [&](std::string_view word) { return word.substr(0, word.find(' ')) == cause; });
}

std::string hosts_text(const Row& row) {
  const auto hosts = row.conditions.find("hosts");
  return hosts == row.conditions.end() ? "" : hosts->second;
}

std::vector<NamedHost> named_hosts(const Row& row) {
  const std::string text = hosts_text(row);
  auto hosts = text.empty() ? Result(std::vector<NamedHost>()) : parse_hosts(text);
  return hosts.is_ok() ? std::move(hosts).value() : std::vector<NamedHost>();
}

bool have_like_memory(const Row& row, const Row& other) {
  return row.memory.empty() || other.memory.empty() || row.memory == other.memory;
}

std::string system_of(const Row& row) {
  return row.algorithm == kNone ? row.backend : row.backend + "." + row.algorithm;
}

Row row_of(const Case& one) {
  Row row;
  row.case_id = case_id(one);
  row.collective = to_string(one.collective);
  row.backend = one.backend;
  row.algorithm = one.algorithm;
  row.transport = one.transport;
  row.buffers = buffers_name(one);
  row.ranks = one.ranks_of_call();
  row.ranks_as = to_string(one.ranks_as);
  row.dtype = dtype_name(one);
  row.op = to_string(one.op);
  if (is_rooted(one.collective)) row.root = one.root;
  row.placement = placement_name(one);
  row.bytes = one.bytes;
  row.count = one.count;
  row.cadence = to_string(one.cadence);
  row.counts = counts_name(one);
  if (has_window(one.collective)) row.window = one.pairing.window;
  row.pair = pair_name(one);
  if (one.among.is_any()) {
    row.groups = one.among.groups;
    row.group = one.among.group;
    row.contention = one.among.is_together ? kTogether : kAlone;
    row.deal = one.among.deal;
  }
  return row;
}

void set_conditions(Row& row, Collective collective, const Conditions& values) {
  for (const Condition& condition : conditions()) {
    const bool has_meaning = condition.has_meaning == nullptr || condition.has_meaning(collective);
    if (has_meaning) set_condition(row, condition, values);
  }
}

void set_conditions_of_ranks(Row& row, const Conditions& values) {
  for (const Condition& condition : conditions()) {
    if (condition.column.is_of_ranks) set_condition(row, condition, values);
  }
}

double bytes_one_way(const Row& row) {
  return static_cast<double>(row.bytes) * static_cast<double>(row.window.value_or(1));
}

void set_times(Row& row, const Summary& summary, const Problem& problem) {
  row.samples = summary.samples;
  row.time_median = summary.median;
  row.time_ci_low = summary.ci_low;
  row.time_ci_high = summary.ci_high;
  row.time_min = summary.min;
  row.time_p90 = summary.p90;
  row.time_p95 = summary.p95;
  row.time_p99 = summary.p99;
  row.time_max = summary.max;
  if (!summary.median || *summary.median <= 0) return;
  constexpr double kMicrosecondsPerSecond = 1e6;
  if (row.window) row.message_rate = messages_of(problem) / *summary.median * kMicrosecondsPerSecond;
  if (row.bytes == 0) return;
  row.algbw = bytes_one_way(row) / *summary.median * kBytesPerMicrosecond;
  row.busbw = *row.algbw * bus_factor(problem);
}

}  // namespace tutti::harness::record
