// SPDX-License-Identifier: Apache-2.0
// The specification of a session: what the launcher tells every rank of a job to do. All ranks read the same text.
#pragma once

#include <chrono>
#include <cstdint>
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
#include "harness/machine/memory.h"
#include "impl/transports/domain.h"
#include "impl/types/status.h"

namespace tutti::harness::session {

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
  int overlap_calls = 0;            ///< measuring: above 0, overlap too, with this many calls while computing
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
/// Null where no case has this number.
[[nodiscard]] const Case* case_numbered(const SessionSpec& spec, std::uint32_t number);

/// While the reference `index` starts or ends, the board has this number.
[[nodiscard]] std::uint32_t number_of_reference(const SessionSpec& spec, std::size_t index);
/// What the board's number stands for: the id of a case, or which reference starts or ends.
[[nodiscard]] std::string name_of_number(const SessionSpec& spec, std::uint32_t number);

/// The domain of a job: the same in the launcher, which makes its memory, and in the ranks. Processes share memory by
/// `shm`, ranks of one process by `local`.
[[nodiscard]] DomainShape domain_shape(const SessionSpec& spec);

/// What the ranks of a session will find, once they are started: less what they take themselves.
[[nodiscard]] MemoryLeft memory_for(const SessionSpec& spec, MemoryLeft now = memory_left());
/// Of a session: nothing for limits that it does not measure, and with a budget no more than takes a small part of it
/// to be cleared.
[[nodiscard]] double most_for_limits(const SessionSpec& spec);

}  // namespace tutti::harness::session
