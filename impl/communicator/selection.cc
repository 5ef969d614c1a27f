// SPDX-License-Identifier: Apache-2.0
// What holds where no table of a file has a row (shipped_table.csv is one of these). The first row that fits is taken,
// so rows go from special to general; the last row of each collective fits everything. The rows that say so were
// measured on the cores of one host, on two ranks with a core each and on more ranks than cores. They were checked with
// `tutti run --algorithms all`. The others are from the cost formula.
#include "impl/communicator/selection.h"

#include <array>
#include <limits>
#include <optional>
#include <span>

#include "impl/communicator/selection_table.h"

namespace tutti {
namespace {

enum class Crowding : std::uint8_t { any, core_each, oversubscribed };

struct Row {
  Collective collective;
  std::optional<Buffers> buffers;  ///< nullopt: both
  Crowding crowding;
  int most_ranks;
  std::int64_t most_bytes;  ///< of one rank's buffer
  std::string_view algorithm;
  bool is_measured = false;  ///< else from the cost formula
};
constexpr bool kMeasured = true;

constexpr int kAnyRanks = std::numeric_limits<int>::max();
constexpr int kLinesOfScratch = 4096;
constexpr std::int64_t kAnyBytes = std::numeric_limits<std::int64_t>::max();

constexpr std::array kTable{
    Row{Collective::broadcast, std::nullopt, Crowding::any, 128, kAnyBytes, "direct", kMeasured},
    Row{Collective::broadcast, std::nullopt, Crowding::any, kAnyRanks, kAnyBytes, "knomial"},
    // From the cost formula: the rows of reduce, and those of more than 128 ranks. There a rank that waits for all
    // others costs more than a tree's rounds.
    Row{Collective::reduce, std::nullopt, Crowding::any, 128, kAnyBytes, "direct"},
    Row{Collective::reduce, std::nullopt, Crowding::any, kAnyRanks, kAnyBytes, "knomial"},
    Row{Collective::all_reduce, std::nullopt, Crowding::core_each, 8, 2048, "one_shot", kMeasured},
    Row{Collective::all_reduce, std::nullopt, Crowding::oversubscribed, 8, 4096, "one_shot", kMeasured},
    Row{Collective::all_reduce, std::nullopt, Crowding::oversubscribed, 32, 2048, "one_shot", kMeasured},
    Row{Collective::all_reduce, std::nullopt, Crowding::any, 128, kAnyBytes, "two_shot", kMeasured},
    // From the cost formula; on 130 ranks as tasks each was the fastest of the three at the end of its row.
    Row{Collective::all_reduce, std::nullopt, Crowding::any, kAnyRanks, 2048, "recursive_doubling"},
    Row{Collective::all_reduce, std::nullopt, Crowding::any, kAnyRanks, 65536, "halving"},
    Row{Collective::all_reduce, std::nullopt, Crowding::any, kAnyRanks, kAnyBytes, "ring"},
    // From the cost formula, to the end of the table. bruck and circulant reduce_scatter keep blocks in scratch, which
    // has lines for kLinesOfScratch ranks at most.
    Row{Collective::gather, std::nullopt, Crowding::any, 128, kAnyBytes, "direct"},
    Row{Collective::gather, std::nullopt, Crowding::any, kAnyRanks, kAnyBytes, "knomial"},
    Row{Collective::all_gather, std::nullopt, Crowding::any, 128, kAnyBytes, "direct"},
    Row{Collective::all_gather, std::nullopt, Crowding::any, kAnyRanks, 65536, "circulant"},
    Row{Collective::all_gather, std::nullopt, Crowding::any, kAnyRanks, kAnyBytes, "ring"},
    Row{Collective::scatter, std::nullopt, Crowding::any, 128, kAnyBytes, "direct"},
    Row{Collective::scatter, std::nullopt, Crowding::any, kAnyRanks, kAnyBytes, "knomial"},
    Row{Collective::reduce_scatter, std::nullopt, Crowding::any, 128, kAnyBytes, "direct"},
    Row{Collective::reduce_scatter, std::nullopt, Crowding::any, kLinesOfScratch, 65536, "circulant"},
    Row{Collective::reduce_scatter, std::nullopt, Crowding::any, kAnyRanks, kAnyBytes, "ring"},
    Row{Collective::all_to_all, std::nullopt, Crowding::any, 128, kAnyBytes, "direct"},
    Row{Collective::all_to_all, std::nullopt, Crowding::any, kLinesOfScratch, 65536, "bruck"},
    Row{Collective::all_to_all, std::nullopt, Crowding::any, kAnyRanks, kAnyBytes, "pairwise"},
    Row{Collective::gather_v, std::nullopt, Crowding::any, 64, kAnyBytes, "linear"},
    Row{Collective::gather_v, std::nullopt, Crowding::any, kAnyRanks, kAnyBytes, "knomial"},
    Row{Collective::all_gather_v, std::nullopt, Crowding::any, kAnyRanks, kAnyBytes, "halving"},
    Row{Collective::scatter_v, std::nullopt, Crowding::any, 64, kAnyBytes, "linear"},
    Row{Collective::scatter_v, std::nullopt, Crowding::any, kAnyRanks, kAnyBytes, "knomial"},
    Row{Collective::reduce_scatter_v, std::nullopt, Crowding::any, kAnyRanks, kAnyBytes, "pairwise"},
    Row{Collective::all_to_all_v, std::nullopt, Crowding::any, kAnyRanks, kAnyBytes, "pairwise"},
    Row{Collective::sendrecv, std::nullopt, Crowding::any, kAnyRanks, kAnyBytes, "direct"},
    Row{Collective::pingpong, std::nullopt, Crowding::any, kAnyRanks, kAnyBytes, "direct"},
    Row{Collective::scan, std::nullopt, Crowding::any, 128, 2048, "one_shot"},
    Row{Collective::scan, std::nullopt, Crowding::any, 128, kAnyBytes, "direct"},
    Row{Collective::scan, std::nullopt, Crowding::any, kAnyRanks, 65536, "recursive_doubling"},
    Row{Collective::scan, std::nullopt, Crowding::any, kAnyRanks, kAnyBytes, "chain"},
    Row{Collective::exscan, std::nullopt, Crowding::any, 128, 2048, "one_shot"},
    Row{Collective::exscan, std::nullopt, Crowding::any, 128, kAnyBytes, "direct"},
    Row{Collective::exscan, std::nullopt, Crowding::any, kAnyRanks, 65536, "recursive_doubling"},
    Row{Collective::exscan, std::nullopt, Crowding::any, kAnyRanks, kAnyBytes, "chain"},
    // Private messages cross a channel one by one; where they can be addressed they are read once.
    Row{Collective::bandwidth, Buffers::shared, Crowding::any, kAnyRanks, kAnyBytes, "direct"},
    Row{Collective::bandwidth, Buffers::private_, Crowding::any, kAnyRanks, kAnyBytes, "channel"},
    Row{Collective::bibandwidth, Buffers::shared, Crowding::any, kAnyRanks, kAnyBytes, "direct"},
    Row{Collective::bibandwidth, Buffers::private_, Crowding::any, kAnyRanks, kAnyBytes, "channel"},
    Row{Collective::message_rate, Buffers::shared, Crowding::any, kAnyRanks, kAnyBytes, "direct"},
    Row{Collective::message_rate, Buffers::private_, Crowding::any, kAnyRanks, kAnyBytes, "channel"},
    Row{Collective::barrier, std::nullopt, Crowding::any, kAnyRanks, kAnyBytes, "dissemination"},
};

/// Between hosts: channels, and flags that everybody waits for. From the cost formula, except all_reduce of two ranks,
/// which was tried over TCP. A flag's line holds what one_shot sends there.
constexpr std::array kAcrossHosts{
    Row{Collective::broadcast, std::nullopt, Crowding::any, kAnyRanks, kAnyBytes, "knomial"},
    Row{Collective::reduce, std::nullopt, Crowding::any, kAnyRanks, kAnyBytes, "knomial"},
    Row{Collective::all_reduce, std::nullopt, Crowding::any, 2, 32, "one_shot"},
    Row{Collective::all_reduce, std::nullopt, Crowding::any, 2, 262144, "recursive_doubling"},
    Row{Collective::all_reduce, std::nullopt, Crowding::any, kAnyRanks, 32768, "recursive_doubling"},
    Row{Collective::all_reduce, std::nullopt, Crowding::any, kAnyRanks, kAnyBytes, "halving"},
    Row{Collective::gather, std::nullopt, Crowding::any, kAnyRanks, kAnyBytes, "knomial"},
    Row{Collective::all_gather, std::nullopt, Crowding::any, kAnyRanks, 65536, "circulant"},
    Row{Collective::all_gather, std::nullopt, Crowding::any, kAnyRanks, kAnyBytes, "ring"},
    Row{Collective::scatter, std::nullopt, Crowding::any, kAnyRanks, kAnyBytes, "knomial"},
    Row{Collective::reduce_scatter, std::nullopt, Crowding::any, kLinesOfScratch, 65536, "circulant"},
    Row{Collective::reduce_scatter, std::nullopt, Crowding::any, kAnyRanks, kAnyBytes, "ring"},
    Row{Collective::all_to_all, std::nullopt, Crowding::any, kLinesOfScratch, 4096, "bruck"},
    Row{Collective::all_to_all, std::nullopt, Crowding::any, kAnyRanks, kAnyBytes, "pairwise"},
    Row{Collective::sendrecv, std::nullopt, Crowding::any, kAnyRanks, kAnyBytes, "channel"},
    Row{Collective::pingpong, std::nullopt, Crowding::any, kAnyRanks, kAnyBytes, "channel"},
    Row{Collective::scan, std::nullopt, Crowding::any, kAnyRanks, 65536, "recursive_doubling"},
    Row{Collective::scan, std::nullopt, Crowding::any, kAnyRanks, kAnyBytes, "chain"},
    Row{Collective::exscan, std::nullopt, Crowding::any, kAnyRanks, 65536, "recursive_doubling"},
    Row{Collective::exscan, std::nullopt, Crowding::any, kAnyRanks, kAnyBytes, "chain"},
    Row{Collective::bandwidth, std::nullopt, Crowding::any, kAnyRanks, kAnyBytes, "channel"},
    Row{Collective::bibandwidth, std::nullopt, Crowding::any, kAnyRanks, kAnyBytes, "channel"},
    Row{Collective::message_rate, std::nullopt, Crowding::any, kAnyRanks, kAnyBytes, "channel"},
};

/// On devices, from the cost formula: another round takes a GPU as long as it takes to move some 4 MiB, and P ranks
/// move P * P buffers in one_shot. What is not here is as on a host whose ranks have a core each.
constexpr std::array kOnDevices{
    Row{Collective::all_reduce, std::nullopt, Crowding::any, 2, 1048576, "one_shot"},
    Row{Collective::all_reduce, std::nullopt, Crowding::any, 4, 262144, "one_shot"},
    Row{Collective::all_reduce, std::nullopt, Crowding::any, 8, 65536, "one_shot"},
    Row{Collective::all_reduce, std::nullopt, Crowding::any, 16, 16384, "one_shot"},
    Row{Collective::all_reduce, std::nullopt, Crowding::any, 32, 4096, "one_shot"},
    Row{Collective::all_reduce, std::nullopt, Crowding::any, 128, kAnyBytes, "two_shot"},
};

/// Where several hosts have equally many ranks, more than one: from the cost formula, until it is measured.
constexpr std::array kTwoLevels{
    Row{Collective::broadcast, std::nullopt, Crowding::any, kAnyRanks, kAnyBytes, "two_level"},
    Row{Collective::all_reduce, std::nullopt, Crowding::any, kAnyRanks, kAnyBytes, "two_level"},
    Row{Collective::all_gather, std::nullopt, Crowding::any, kAnyRanks, kAnyBytes, "two_level"},
    Row{Collective::reduce_scatter, std::nullopt, Crowding::any, kAnyRanks, kAnyBytes, "two_level"},
    Row{Collective::barrier, std::nullopt, Crowding::any, kAnyRanks, kAnyBytes, "two_level"},
};

/// On one host of several caches, whose ranks have a core each: as `tutti simulate` predicts for
/// harness/simulate/machines/epyc-7r13.toml, on 16 to 48 ranks. What is not here is as without caches.
constexpr std::array kSeveralCaches{
    Row{Collective::broadcast, std::nullopt, Crowding::core_each, 128, 2048, "nested"},
    Row{Collective::reduce, std::nullopt, Crowding::core_each, 128, 2048, "knomial"},
    Row{Collective::all_reduce, std::nullopt, Crowding::core_each, 16, 128, "nested_one_shot"},
    Row{Collective::all_reduce, std::nullopt, Crowding::core_each, 16, 2048, "circulant"},
    Row{Collective::all_reduce, std::nullopt, Crowding::core_each, 16, 32768, "nested_two_shot"},
    Row{Collective::all_reduce, std::nullopt, Crowding::core_each, 128, 128, "recursive_doubling"},
    Row{Collective::all_reduce, std::nullopt, Crowding::core_each, 128, 8192, "circulant"},
    Row{Collective::all_reduce, std::nullopt, Crowding::core_each, 128, 131072, "nested_two_shot"},
    Row{Collective::all_gather, std::nullopt, Crowding::core_each, 16, kAnyBytes, "nested"},
    Row{Collective::all_gather, std::nullopt, Crowding::core_each, 128, 4096, "circulant"},
    Row{Collective::all_gather, std::nullopt, Crowding::core_each, 128, kAnyBytes, "nested"},
    Row{Collective::reduce_scatter, std::nullopt, Crowding::core_each, 128, 8192, "circulant"},
    Row{Collective::reduce_scatter, std::nullopt, Crowding::core_each, 128, 524288, "nested"},
    Row{Collective::barrier, std::nullopt, Crowding::core_each, kAnyRanks, kAnyBytes, "nested"},
};

/// The row of one of the tables; null where none fits.
const Row* row_for(std::span<const Row> table, const Problem& problem, Buffers buffers, Crowding crowding,
                   std::int64_t bytes) {
  for (const Row& row : table) {
    const bool fits = row.collective == problem.collective && row.buffers.value_or(buffers) == buffers &&
                      (row.crowding == Crowding::any || row.crowding == crowding) && problem.ranks <= row.most_ranks &&
                      bytes <= row.most_bytes;
    if (fits) return &row;
  }
  return nullptr;
}

Crowding crowding_of(const Problem& problem, int cores) {
  return problem.ranks > cores ? Crowding::oversubscribed : Crowding::core_each;
}

/// What is built in; barriers and v forms on several hosts are of channels anyway.
const Row& built_in_row(const ChoiceOf& of) {
  const Problem& problem = of.problem;
  const std::int64_t bytes = has_counts(problem.collective) ? 0 : of.bytes;
  Crowding crowding = crowding_of(problem, of.cores);
  Buffers buffers = of.buffers;
  const Row* row = nullptr;
  const bool has_caches = problem.ranks_per_cache > 0 && problem.ranks > problem.ranks_per_cache;
  if (of.on == RanksPlace::one_host && has_caches) row = row_for(kSeveralCaches, problem, buffers, crowding, bytes);
  if (of.on != RanksPlace::one_host) crowding = Crowding::core_each;
  if (of.on == RanksPlace::device) row = row_for(kOnDevices, problem, buffers, crowding, bytes);
  if (of.on == RanksPlace::several_hosts) {
    buffers = Buffers::private_;
    if (problem.ranks_per_host > 1) row = row_for(kTwoLevels, problem, buffers, crowding, bytes);
    if (row == nullptr) row = row_for(kAcrossHosts, problem, buffers, crowding, bytes);
  }
  if (row == nullptr) row = row_for(kTable, problem, buffers, crowding, bytes);
  TUTTI_ASSERT(row != nullptr, "no row for {} on {} ranks", to_string(problem.collective), problem.ranks);
  return *row;
}

Chosen chosen_by(const TableRow& row, bool is_only_one) {
  Chosen chosen{
      .algorithm = row.algorithm, .tuning = row.tuning, .is_measured = is_only_one || row.source == "measured"};
  if (row.source.starts_with(kSimulatedSource)) chosen.simulated_on = row.source.substr(kSimulatedSource.size());
  return chosen;
}

}  // namespace

Chosen choose(const ChoiceOf& of) {
  const bool is_only_one = algorithms_of(of.problem.collective).size() == 1;
  for (const SelectionTable* const table : {of.table, &SelectionTable::shipped()}) {
    const TableRow* const row = table == nullptr ? nullptr : table->find(of);
    if (row == nullptr) continue;
    Chosen chosen = chosen_by(*row, is_only_one);
    const bool is_staged = !of.has_single_copies || of.buffers == Buffers::shared;
    if (is_staged && chosen.tuning.stores == Stores::single_copy) chosen.tuning.stores = Stores::tried;
    return chosen;
  }
  const Row& row = built_in_row(of);
  const auto algorithm = find_algorithm(row.collective, row.algorithm);
  TUTTI_ASSERT(algorithm.is_ok(), "the selection table names {} {}", to_string(row.collective), row.algorithm);
  // Nothing was measured elsewhere.
  const bool is_measured = row.is_measured && of.on == RanksPlace::one_host;
  return {.algorithm = algorithm.value(), .is_measured = is_only_one || is_measured};
}

std::string to_text(const TunedAlgorithm& tuned) { return std::string(tuned.algorithm->name) + to_text(tuned.tuning); }

Result<TunedAlgorithm> find_tuned(Collective collective, std::string_view text) {
  TunedAlgorithm tuned;
  TUTTI_ASSIGN_OR_RETURN(tuned.algorithm, find_algorithm(collective, without_tuning(text)));
  TUTTI_ASSIGN_OR_RETURN(tuned.tuning, tuning_from(tuning_behind(text)));
  return tuned;
}

Schedule schedule_of(const TunedAlgorithm& tuned, const Problem& problem) {
  Schedule schedule = schedule_of(*tuned.algorithm, problem);
  schedule.tuning = tuned.tuning;
  return schedule;
}

const Algorithm& choose_across_hosts(const Problem& problem, std::int64_t bytes) {
  return *choose({.problem = problem, .cores = problem.ranks, .bytes = bytes, .on = RanksPlace::several_hosts})
              .algorithm;
}

const Algorithm& choose_algorithm(const Problem& problem, Buffers buffers, int cores, std::int64_t bytes) {
  return *choose({.problem = problem, .buffers = buffers, .cores = cores, .bytes = bytes}).algorithm;
}

const Algorithm& choose_on_devices(const Problem& problem, Buffers buffers, std::int64_t bytes) {
  return *choose({.problem = problem,
                  .buffers = buffers,
                  .cores = problem.ranks,
                  .bytes = bytes,
                  .on = RanksPlace::device})
              .algorithm;
}

bool is_choice_measured(const Problem& problem, Buffers buffers, int cores, std::int64_t bytes, RanksPlace on) {
  return choose({.problem = problem, .buffers = buffers, .cores = cores, .bytes = bytes, .on = on}).is_measured;
}

}  // namespace tutti
