// SPDX-License-Identifier: Apache-2.0
// Why a run ended early, as fields: which rank of which host, in which operation and step, and whom it waits for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/floors.h"

namespace tutti::harness::report {

/// Where a rank waits in one of the own communicators.
struct WaitingRank {
  int rank = 0;
  std::uint64_t operation = 0;             ///< its number, from 1; 0: a send or a receive
  std::optional<std::int64_t> step = {};   ///< of the operation's schedule
  std::optional<int> peer = {};            ///< the rank that it waits for
  std::optional<std::int64_t> bytes = {};  ///< of what it waits for
};

struct FailedJob {
  std::string message;      ///< one sentence
  std::string how;          ///< killed, hung, exited, ...
  std::optional<int> rank;  ///< that failed; empty where it could not be told
  std::string host;         ///< on which it ran
  std::string collective;   ///< that was measured; empty before the first
  std::string cell;         ///< its id
  std::vector<WaitingRank> waiting = {};

  /// One JSON object; operation, step, peer and bytes are those of the failed rank, else of the first that waits for
  /// it.
  [[nodiscard]] std::string json() const;
};

}  // namespace tutti::harness::report
