// SPDX-License-Identifier: Apache-2.0
// A session: what one job's ranks do from start to end. The launcher writes the specification, every rank reads the
// same one; each runner then walks the same cells in the same order, and runner 0 reports.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/board/across.h"
#include "harness/board/board.h"
#include "harness/board/rank_calls.h"
#include "harness/board/rank_place.h"
#include "harness/board/rank_standing.h"
#include "harness/session/spec.h"
#include "impl/transports/domain.h"
#include "impl/types/status.h"

namespace tutti::harness::session {

/// Messages to the launcher, by type:
///   begin  index of the cell that runner 0 begins, in decimal
///   cell   its rows, one JSON object per line
///   samples  before it, where they are asked for: lines of samples, in parts (harness/record/samples.h)
///   blocks  before it, where they are counted: the medians of a case's blocks (harness/record/block_medians.h)
///   ranks  before it: what the samples of a case show of each rank (harness/record/rank_tally.h)
///   facts  JSON object: floors_ns (object: of a sample in which nothing is done, by backend where samples start after
///          its own barrier, else `all`), clock_tick_ns, clock_read_ns, bound (the cores that each runner may run on),
///          and what each backend says of itself; also ready_s, from the start of
///          the oldest process of a rank until all systems were open; after a cell first_calls_ns, what the first call
///          of each backend took; at the end of a job on several machines: clocks, with bound_ns and change_ns
///          (Runner::Clocks); of a check whose order is drawn: order, with steps and trace (harness/measure/order.h)
///   soak   what a soak found (harness/soak/soak.h)
///   trained  what a training came to with one way of adding up gradients (harness/train/train.h)
///   training  how far it is
///   trace  where it is asked for, before `trained`: lines of its calls, in parts
///   result  a part of what a call left on a rank (harness/repeat/result_message.h), before the row of its case
///   fault  what a trial of the cell came to (harness/faults/trial.h), one for each fault
using Send = std::function<Status(std::string_view type, std::string_view text)>;

/// What a job that hangs shows of its ranks: where each communicator stands, and its last operations, as its journal
/// has them. No standings where no rank has told of a wait; empty if the domain cannot be opened.
[[nodiscard]] RanksSeen seen_of(const SessionSpec& spec, int domain_fd);
/// What run_host_process asks of a machine (harness/hosts/host_process.h), whose ranks share that memory: of the others
/// nothing is known here. `payload`: the specification as the launcher gave it.
[[nodiscard]] RanksSeen seen_on_host(const std::string& payload, int machine, int domain_fd);
/// The standings of a domain that is open.
[[nodiscard]] std::vector<RankStanding> standings_of(const Domain& domain);

struct SessionPlace {
  Board board;
  int rank = 0;                         ///< processes: whose process this is
  RankPlace at = {};                    ///< of that rank, or of the first one of this process
  bool keeps_cores = false;             ///< somebody has bound this process, and it stays as it is
  int domain_fd = -1;                   ///< processes: the memory of the domain
  const AcrossPlace* across = nullptr;  ///< of a job on several machines: what its ranks need to meet
  int exchange_listener = -1;           ///< rank 0 of such a job: where the others are awaited
  int domain_listener = -1;
  Send send;  ///< called from runner 0's thread only
};
/// Runs the session on the ranks of this process; with threads and tasks these are all ranks.
[[nodiscard]] Status run_session(const SessionSpec& spec, const SessionPlace& place);

}  // namespace tutti::harness::session
