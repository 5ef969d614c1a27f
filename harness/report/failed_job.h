// SPDX-License-Identifier: Apache-2.0
// Why a run ended early, as fields: which rank of which host, in which operation and step, and whom it waits for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/board/rank_standing.h"

namespace tutti::harness::report {

/// Where a rank waits in one of the own communicators.
struct WaitingRank {
  int rank = 0;
  RankWait wait = {};
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
