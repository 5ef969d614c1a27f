// SPDX-License-Identifier: Apache-2.0
// The specification of a session: what the launcher tells every rank of a job to do. All ranks read the same text.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "harness/cases/case.h"
#include "harness/cases/conditions.h"
#include "harness/cases/topology.h"
#include "harness/machine/memory.h"
#include "harness/record/record.h"
#include "harness/verify/memory.h"
#include "impl/types/status.h"

namespace tutti::harness::session {

/// Cells are measured.
struct MeasureTask {
  bool tells_samples = false;  ///< every sample is reported
  std::int64_t end_ns = 0;     ///< CLOCK_MONOTONIC by which the whole sweep should be over; 0: no budget
  int cells_after = 0;         ///< cells of jobs after this one, which share the budget
  /// The cells are the calls of the trace of this name, which are replayed one after the other; empty: they are not.
  std::string trace = {};
  std::vector<std::string> steps = {};     ///< of each call of a trace
  std::vector<std::int64_t> gaps_ns = {};  ///< before each; empty: there are none
  /// Blocks of each system, after which a cell is over, and whose medians are reported; 0: cells settle. Iterations are
  /// shared out to so many blocks, each in whatever state the machine is, and no medians are reported.
  int blocks = 0;

  bool operator==(const MeasureTask&) const = default;
};
/// Cells are checked.
struct CheckTask {
  /// Draws the order in which tasks take their steps; without it they take turns.
  std::optional<std::uint64_t> order_seed = {};

  bool operator==(const CheckTask&) const = default;
};
/// A mix of operations runs; there are no cells.
struct SoakTask {
  std::int64_t operations = 0;
  std::optional<std::uint64_t> order_seed = {};  ///< as CheckTask's

  bool operator==(const SoakTask&) const = default;
};
/// Faults are put into a case of each cell, one after the other, and the verifier has to find them.
struct FaultsTask {
  std::string faults = {};  ///< see parse_faults

  bool operator==(const FaultsTask&) const = default;
};

/// Cells are called several times on the same input, and all results are reported.
struct RepeatTask {
  int calls = 2;  ///< of each case

  bool operator==(const RepeatTask&) const = default;
};

/// A network is trained (harness/train/train.h); there are no cells.
struct TrainTask {
  std::vector<std::string> gradients = {};   ///< the ways in which they are added up
  std::vector<std::string> algorithms = {};  ///< of the own backend
  bool has_shared_buffers = false;
  std::string folder = {};  ///< of MNIST's files; empty: digits are drawn
  int images = 1024;        ///< to learn from, at most
  int batch = 64;           ///< of all ranks together
  int epochs = 2;
  std::int64_t bucket_bytes = 32768;
  int rate_millionths = 50'000;
  int momentum_millionths = 900'000;
  bool is_traced = false;  ///< every call is reported

  bool operator==(const TrainTask&) const = default;
};

struct SessionSpec {
  std::variant<MeasureTask, CheckTask, SoakTask, FaultsTask, TrainTask, RepeatTask> task = {};
  int ranks = 1;
  RanksAs ranks_as = RanksAs::processes;
  std::vector<std::vector<Case>> cells = {};  ///< the cases of each cell are interleaved
  std::vector<std::string> references = {};   ///< backends to load, without the own one
  std::vector<std::string> on_gpus = {};      ///< those of them whose buffers lie in the memory of GPUs
  std::vector<std::string> twins = {};        ///< systems that are a backend a second time (case.h)
  std::string transport = {};                 ///< of the domain and of all cells; empty: the usual one of these ranks
  /// Folders of shared objects. They are never sent: each process has those with which it was started.
  std::vector<std::string> backend_directories = {}, transport_directories = {};
  std::uint64_t seed = 1;
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);
  std::size_t heap_bytes = 0;
  int launch = 1;                                ///< which start of the ranks this is
  std::string starter = std::string(kOwnSpawn);  ///< what started them, as rows say it
  Conditions conditions = {};

  /// Null where the task is another one.
  template <class Task>
  [[nodiscard]] const Task* as() const {
    return std::get_if<Task>(&task);
  }
  /// Of a check or a soak of tasks.
  [[nodiscard]] std::optional<std::uint64_t> order_seed() const;

  bool operator==(const SessionSpec&) const = default;
};

/// Calls `visit(word, member)` for every field that is sent but the task: the words of the text, which nothing else
/// names.
template <class Visit>
constexpr void visit_fields(std::type_identity<SessionSpec>, Visit visit) {
  visit("ranks", &SessionSpec::ranks);
  visit("ranks_as", &SessionSpec::ranks_as);
  visit("cells", &SessionSpec::cells);
  visit("references", &SessionSpec::references);
  visit("on_gpus", &SessionSpec::on_gpus);
  visit("twins", &SessionSpec::twins);
  visit("transport", &SessionSpec::transport);
  visit("seed", &SessionSpec::seed);
  visit("timeout_ns", &SessionSpec::timeout);
  visit("heap_bytes", &SessionSpec::heap_bytes);
  visit("launch", &SessionSpec::launch);
  visit("starter", &SessionSpec::starter);
  visit("conditions", &SessionSpec::conditions);
}
template <class Visit>
constexpr void visit_fields(std::type_identity<MeasureTask>, Visit visit) {
  visit("tells_samples", &MeasureTask::tells_samples);
  visit("end_ns", &MeasureTask::end_ns);
  visit("cells_after", &MeasureTask::cells_after);
  visit("trace", &MeasureTask::trace);
  visit("steps", &MeasureTask::steps);
  visit("gaps_ns", &MeasureTask::gaps_ns);
  visit("blocks", &MeasureTask::blocks);
}
template <class Visit>
constexpr void visit_fields(std::type_identity<CheckTask>, Visit visit) {
  visit("order_seed", &CheckTask::order_seed);
}
template <class Visit>
constexpr void visit_fields(std::type_identity<SoakTask>, Visit visit) {
  visit("operations", &SoakTask::operations);
  visit("order_seed", &SoakTask::order_seed);
}
template <class Visit>
constexpr void visit_fields(std::type_identity<FaultsTask>, Visit visit) {
  visit("faults", &FaultsTask::faults);
}
template <class Visit>
constexpr void visit_fields(std::type_identity<RepeatTask>, Visit visit) {
  visit("calls", &RepeatTask::calls);
}
template <class Visit>
constexpr void visit_fields(std::type_identity<TrainTask>, Visit visit) {
  visit("gradients", &TrainTask::gradients);
  visit("algorithms", &TrainTask::algorithms);
  visit("has_shared_buffers", &TrainTask::has_shared_buffers);
  visit("folder", &TrainTask::folder);
  visit("images", &TrainTask::images);
  visit("batch", &TrainTask::batch);
  visit("epochs", &TrainTask::epochs);
  visit("bucket_bytes", &TrainTask::bucket_bytes);
  visit("rate_millionths", &TrainTask::rate_millionths);
  visit("momentum_millionths", &TrainTask::momentum_millionths);
  visit("is_traced", &TrainTask::is_traced);
}

[[nodiscard]] std::string to_json(const SessionSpec& spec);
/// A field that is not there is as usual. Errors: invalid_argument, also for a word that no field has; a specification
/// that cannot be read is a bug of the launcher.
[[nodiscard]] Result<SessionSpec> session_from_json(std::string_view text);

/// What a launcher has sent, with the folders of this process's own environment. Errors: those of session_from_json.
[[nodiscard]] Result<SessionSpec> session_in_payload(std::string_view payload);

/// The cases of all cells are numbered one after the other: so the board names them (RankStatus). Of the first case of
/// a cell; the others follow.
[[nodiscard]] std::uint32_t first_number_of(const SessionSpec& spec, std::size_t cell);
/// Null where no case has this number.
[[nodiscard]] const Case* case_numbered(const SessionSpec& spec, std::uint32_t number);

/// While the reference `index` starts or ends, the board has this number.
[[nodiscard]] std::uint32_t number_of_reference(const SessionSpec& spec, std::size_t index);
/// What the board's number stands for: the id of a case, or which reference starts or ends.
[[nodiscard]] std::string name_of_number(const SessionSpec& spec, std::uint32_t number);

/// Where its ranks are: `topology` below. Errors: those of cases::topology_of.
[[nodiscard]] Result<Topology> topology_of(const SessionSpec& spec);

/// Where the buffers of a system lie (its twin's too): those of thread blocks on a GPU there, those of a reference
/// where the specification says. Systems of one cell may differ in it.
[[nodiscard]] MemoryKind memory_kind_of(const SessionSpec& spec, const Topology& topology, std::string_view system);
/// Whether buffers of any system lie in the memory of a GPU.
[[nodiscard]] bool has_gpu_memory(const SessionSpec& spec, const Topology& topology);
/// The cases of a cell whose buffers lie there.
[[nodiscard]] std::vector<Case> cases_in(MemoryKind memory, const SessionSpec& spec, const Topology& topology,
                                         const std::vector<Case>& cell);

/// What the ranks of a session will find, once they are started: less what they take themselves.
[[nodiscard]] MemoryLeft memory_for(const SessionSpec& spec, const Topology& topology, MemoryLeft now = memory_left());
/// Of a session: nothing for limits that it does not measure, and with a budget no more than takes a small part of it
/// to be cleared.
[[nodiscard]] double most_for_limits(const SessionSpec& spec);

}  // namespace tutti::harness::session
