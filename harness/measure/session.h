// SPDX-License-Identifier: Apache-2.0
// A session: what one job's ranks do from start to end. The launcher writes the specification, every rank reads the
// same one; each host then walks the same cells in the same order, and host 0 reports.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/backends/slowed.h"
#include "harness/cases/bind.h"
#include "harness/cases/cache_state.h"
#include "harness/cases/case.h"
#include "harness/cases/checking.h"
#include "harness/cases/synchronisation.h"
#include "harness/cases/values.h"
#include "harness/launch/board.h"
#include "impl/transports/domain.h"
#include "impl/types/status.h"

namespace tutti::harness {

struct SessionSpec {
  enum class Mode : std::uint8_t { measure, check, soak, faults };

  Mode mode = Mode::measure;
  int ranks = 1;
  RanksAs ranks_as = RanksAs::processes;
  std::vector<std::vector<Case>> cells;  ///< the cases of each cell are interleaved
  std::vector<std::string> references;   ///< backends to load, without the own one
  std::vector<std::string> twins;        ///< systems that are a backend a second time (case.h)
  std::vector<std::string> backend_directories;
  std::uint64_t seed = 1;
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);
  std::int64_t end_ns = 0;  ///< CLOCK_MONOTONIC by which the whole sweep should be over; 0: no budget
  int cells_after = 0;      ///< cells of jobs after this one, which share the budget
  std::size_t heap_bytes = 0;
  std::optional<Bind> bind;                           ///< see masks_for
  std::int64_t operations = 0;                        ///< of a soak, which has no cells
  int launch = 1;                                     ///< which start of the ranks this is
  bool tells_samples = false;                         ///< measuring: every sample is reported
  std::int64_t iterations = 0;                        ///< measuring: above 0, so many samples of each case
  bool tells_ranks = false;                           ///< measuring: rows say what ranks took
  Checking checking = Checking::sample;               ///< measuring: which results are verified
  Values values = Values::exact;                      ///< measuring and checking: what inputs are made of
  CacheState cache = CacheState::hot;                 ///< measuring: where the buffers are at the start of a call
  Synchronisation sync = Synchronisation::roundtime;  ///< measuring: how ranks come together before a sample
  int overlap_calls = 0;            ///< measuring: above 0, overlap too, with so many calls while computing
  std::chrono::nanoseconds skew{};  ///< measuring: by how much one rank enters after the others
  bool has_limit = false;           ///< measuring: the machine's limit is measured in every cell that has one (limit.h)
  /// Draws the order of the ranks' steps in a check or a soak of tasks; without it they take turns.
  std::optional<std::uint64_t> order_seed;
  std::optional<SlowDown> slow_down = {};  ///< of the own backend
  std::string blind;                       ///< parts that the verifier on trial does not look at; see sight_without
  std::string faults;                      ///< put into a case of each cell, one after the other; see parse_faults
};

[[nodiscard]] std::string to_json(const SessionSpec& spec);
/// Errors: invalid_argument; a specification that cannot be read is a bug of the launcher.
[[nodiscard]] Result<SessionSpec> session_from_json(std::string_view text);

/// The cases of all cells are numbered one after the other: so the board names them (RankStatus). Of the first case of
/// a cell; the others follow.
[[nodiscard]] std::uint32_t first_number_of(const SessionSpec& spec, std::size_t cell);
/// Null where there is none.
[[nodiscard]] const Case* case_numbered(const SessionSpec& spec, std::uint32_t number);

/// While the reference `index` starts or ends, the board has this number.
[[nodiscard]] std::uint32_t number_of_reference(const SessionSpec& spec, std::size_t index);
/// What the board's number stands for: the id of a case, or which reference starts or ends.
[[nodiscard]] std::string name_of_number(const SessionSpec& spec, std::uint32_t number);

/// The domain of a job: the same in the launcher, which makes its memory, and in the ranks. Processes share memory by
/// `shm`, ranks of one process by `local`.
[[nodiscard]] DomainShape domain_shape(const SessionSpec& spec);
/// Cores that the ranks of a job use together: what `auto` chooses by, the same in the launcher and in all ranks. Not
/// for a thread that is pinned.
[[nodiscard]] int cores_together(RanksAs ranks_as);

/// Messages to the launcher, by type:
///   begin  index of the cell that host 0 begins, in decimal
///   cell   its rows, one JSON object per line
///   samples  before it, where they are asked for: lines of samples, in parts (harness/report/samples.h)
///   facts  JSON object: floors_ns (object: of a sample in which nothing is done, by backend where samples start after
///          its own barrier, else `all`), clock_tick_ns, clock_read_ns, bound (the cores that each host may run on),
///          and what each backend says of itself; of a check whose order is drawn: order, with steps and trace
///          (harness/measure/order.h)
///   soak   what a soak found (harness/soak/soak.h)
///   fault  what a trial of the cell came to (harness/faults/trial.h), one for each fault
using Send = std::function<Status(std::string_view type, std::string_view text)>;

/// What a Listener says of the ranks of a job that hangs (harness/launch/job.h): where each communicator stands.
[[nodiscard]] std::vector<std::string> standings_of(const SessionSpec& spec, int domain_fd);
/// The same of a domain that is open; empty where no rank has told of a wait.
[[nodiscard]] std::vector<std::string> standings_of(const Domain& domain);

struct SessionPlace {
  Board board;
  int rank = 0;        ///< processes: whose process this is
  int domain_fd = -1;  ///< processes: the memory of the domain
  Send send;           ///< called from host 0's thread only
};
/// Runs the session on the ranks of this process; with threads and tasks these are all ranks.
[[nodiscard]] Status run_session(const SessionSpec& spec, const SessionPlace& place);

}  // namespace tutti::harness
