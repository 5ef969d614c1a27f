// SPDX-License-Identifier: Apache-2.0
// `tutti check --faults`: the verifier on trial. Faults are put into right collectives, and each of them must be found.
#include <algorithm>
#include <chrono>
#include <map>
#include <random>

#include <fmt/format.h>

#include "harness/cases/expand.h"
#include "harness/faults/trial.h"
#include "harness/launch/launch.h"
#include "harness/machine/clock.h"
#include "harness/measure/memory.h"
#include "harness/session/session.h"
#include "harness/text/counted.h"
#include "harness/text/streams.h"
#include "src/check.h"
#include "src/jobs.h"
#include "src/program.h"
#include "src/request.h"
#include "src/session_messages.h"
#include "src/transports.h"

namespace tutti::program {
namespace {

using harness::Case;
using harness::SessionSpec;
using harness::TrialOutcome;
using harness::TrialResult;

constexpr int kWindow = 3;  ///< messages of a collective that has one

using Outcomes = std::map<TrialOutcome, int>;

struct FaultPlace {
  int ranks = 0;
  std::string transport = {};
};

/// One case for each collective, class of dtypes (or dtype, where they are named) and op; the rest is drawn.
std::vector<std::vector<Case>> fault_cells(const harness::Sweep& sweep, bool has_dtypes, const FaultPlace& place,
                                           int& left_out) {
  std::vector<Dtype> dtypes = sweep.dtypes.values;
  std::mt19937_64 random(sweep.seed);
  if (!has_dtypes) {
    dtypes.clear();
    for (const harness::DtypeClass which : harness::all_dtype_classes()) {
      std::vector<Dtype> members;
      std::ranges::copy_if(all_dtypes(), std::back_inserter(members),
                           [which](Dtype dtype) { return harness::class_of(dtype) == which; });
      dtypes.push_back(members[random() % members.size()]);
    }
  }
  std::vector<std::vector<Case>> cells;
  for (const Collective collective : sweep.collectives) {
    for (const Dtype dtype : has_data(collective) ? dtypes : std::vector{Dtype::f32}) {
      for (const Op op : is_reducing(collective) ? sweep.ops.values : std::vector{Op::none}) {
        const bool has_pair = !has_window(collective) || place.ranks > 1;
        if (!has_pair) continue;  // a window on one rank moves nothing
        if (!op_exists(op, dtype) || !takes_op(collective, op)) {
          ++left_out;
          continue;
        }
        Case one;
        one.collective = collective;
        if (has_window(collective)) one.pairing.window = kWindow;
        one.dtype = dtype;
        one.op = op;
        one.ranks = place.ranks;
        one.ranks_as = sweep.ranks_as;
        one.transport = place.transport;
        one.algorithm = "auto";
        cells.push_back({std::move(one)});
      }
    }
  }
  return cells;
}

/// A dtype and an op that are named exist together; of a class, a dtype that has no such op is left out.
Status check_pairs(const harness::Sweep& sweep, bool has_dtypes) {
  if (std::ranges::none_of(sweep.collectives, is_reducing)) return {};
  if (!sweep.ops.is_all) TUTTI_RETURN_IF_ERROR(harness::check_ops(sweep.collectives, sweep.ops.values));
  for (const Op op : sweep.ops.values) {
    for (const Dtype dtype : sweep.dtypes.values) {
      if (op_exists(op, dtype) || sweep.ops.is_all || sweep.dtypes.is_all || !has_dtypes) continue;
      std::string others;
      for (const Op other : all_ops()) {
        if (op_exists(other, dtype)) others += fmt::format(" {}", to_string(other));
      }
      return error(Code::invalid_argument, "--ops: '{}' of '{}' does not exist: allowed are{}", to_string(op),
                   to_string(dtype), others);
    }
  }
  return {};
}

std::string title_of(const Case& one) {
  if (!has_data(one.collective))
    return fmt::format("{}, {}", to_string(one.collective), harness::counted(one.ranks, "rank"));
  const std::string op = one.op == Op::none ? "" : fmt::format(" {}", to_string(one.op));
  return fmt::format("{}, {} ({}){}, {}", to_string(one.collective), to_string(harness::class_of(one.dtype)),
                     to_string(one.dtype), op, harness::counted(one.ranks, "rank"));
}

/// Prints trials as they come.
class TrialMessages final : public SessionMessages {
 public:
  TrialMessages(const SessionSpec& spec, Outcomes& tally, int& unnamed)
      : SessionMessages(spec, {{"begin", [this](std::string_view text) { begin(text); }},
                               {"fault", [this](std::string_view text) { add(text); }}}),
        tally_(tally),
        unnamed_(unnamed) {}

  [[nodiscard]] std::string case_name(std::uint32_t index) const override {
    return index < spec_.cells.size() ? "faults in " + title_of(spec_.cells[index].front()) : "the start of the job";
  }

 private:
  void begin(std::string_view text) const {
    if (const auto index = cell_begun(text)) harness::print("{}\n", title_of(spec_.cells[*index].front()));
  }
  void add(std::string_view text) {
    const auto result = harness::trial_from_json(text);
    note(result.status());
    if (result.is_ok()) print(result.value());
  }
  void print(const TrialResult& result) {
    ++tally_[result.outcome];
    const bool is_caught = result.outcome == TrialOutcome::caught;
    if (is_caught && !result.names_cause) ++unnamed_;
    const bool is_bad = !is_caught && result.outcome != TrialOutcome::not_applicable;
    harness::print("  {:<16} {:<20} {}\n", to_string(result.outcome), to_string(result.fault), result.text);
    if (is_bad) harness::print("    {}\n", result.case_id);
    if (is_caught && !result.names_cause) harness::print("    its cause is not named: {}\n", result.case_id);
  }

  Outcomes& tally_;
  int& unnamed_;
};

int run_trials(const SessionSpec& spec, const harness::Topology& topology, const Reach& reach,
               TrialMessages& messages) {
  const auto outcome = harness::launch_placed(job_of(spec, topology, {}, reach), messages);
  if (!outcome.is_ok()) return complain(outcome.status());
  const int code = exit_code_of(outcome.value());
  if (code == exit_ok) return messages.failure().is_ok() ? exit_ok : complain(messages.failure());
  if (code != exit_interrupted) complain(outcome.value().failure);
  return code;
}

}  // namespace

int check_faults(const Settings& settings, bool has_dtypes) {
  const harness::Sweep& sweep = settings.sweep;
  const auto faults = harness::parse_faults(settings.faults);
  if (!faults.is_ok()) return complain(error(Code::invalid_argument, "--faults: {}", faults.status().message()));
  for (const int ranks : sweep.ranks) {
    if (ranks >= 2) continue;
    return complain(error(Code::invalid_argument, "--ranks {}: faults are put between ranks, 2 or more", ranks));
  }
  if (const Status pairs = check_pairs(sweep, has_dtypes); !pairs.is_ok()) return complain(pairs);
  Outcomes tally;
  int unnamed = 0;
  std::size_t cells = 0;
  int left_out = 0;
  const std::int64_t begin = harness::monotonic_ns();
  int code = exit_ok;
  std::vector<FaultPlace> places;
  for (const int ranks : sweep.ranks) {
    for (const std::string& transport : transports_of(sweep)) {
      places.push_back({.ranks = ranks, .transport = transport});
    }
  }
  for (const FaultPlace& place : places) {
    SessionSpec spec = session_of(settings);
    spec.ranks = place.ranks;
    set_transport(place.transport, spec);
    spec.task = harness::FaultsTask{.faults = settings.faults};
    spec.cells = fault_cells(sweep, has_dtypes, place, left_out);
    std::vector<std::vector<Case>> longest;
    for (const std::vector<Case>& cell : spec.cells) longest.push_back({harness::longest_draw(cell.front())});
    const auto topology = harness::topology_of(spec);
    if (!topology.is_ok()) return complain(topology.status());
    spec.heap_bytes =
        harness::heap_bytes_for(longest, spec.conditions.cache, harness::memory_for(spec, topology.value()));
    cells += spec.cells.size();
    TrialMessages messages(spec, tally, unnamed);
    code = run_trials(spec, topology.value(), settings.reach, messages);
    if (code != exit_ok) break;
  }
  harness::print(
      "# faults: {} in {} as {}, seed {}: {} caught ({} without a named cause), {} missed, {} not applicable, {} "
      "not injected, {} wrong without a fault; {:.1f} s\n",
      faults.value().size(), harness::counted(cells, "cell"), to_string(sweep.ranks_as), sweep.seed,
      tally[TrialOutcome::caught], unnamed, tally[TrialOutcome::missed], tally[TrialOutcome::not_applicable],
      tally[TrialOutcome::not_injected], tally[TrialOutcome::wrong_without],
      static_cast<double>(harness::monotonic_ns() - begin) * 1e-9);
  if (left_out > 0) harness::print("# left out: {} x a dtype and an op that do not exist together\n", left_out);
  if (code != exit_ok) return code;
  const bool is_trusted =
      tally[TrialOutcome::missed] + tally[TrialOutcome::not_injected] + tally[TrialOutcome::wrong_without] == 0;
  if (!is_trusted) return exit_wrong;
  if (tally[TrialOutcome::caught] > 0) return exit_ok;
  return complain(error(Code::unavailable, "nothing was tried: no fault applies to what was chosen"));
}

}  // namespace tutti::program
