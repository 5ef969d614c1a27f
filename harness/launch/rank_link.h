// SPDX-License-Identifier: Apache-2.0
// RankLink: a rank's end of the connection to the launcher. It has what the rank was given, and takes what the rank
// reports. There is one per process. With threads or tasks the process comes as rank 0 and serves all ranks of the
// job.
//
// The rank does not outlive the launcher: the kernel kills it with the launcher, or a thread that sleeps in poll does.
// That thread tells of a launcher that has ended without a word to a rank that came by itself.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "harness/board/across.h"
#include "harness/board/board.h"
#include "harness/board/rank_place.h"
#include "harness/board/segment.h"
#include "impl/bootstrap/control.h"

namespace tutti::harness::launch {

class RankLink {
 public:
  /// Connects to the launcher named in the environment (TUTTI_CONTROL) as the rank named there (TUTTI_RANK, or what
  /// a start command says), and waits until that begins the job. Errors: unavailable (not started by a launcher, or
  /// another user is there), aborted (it is gone), mismatch (mpirun's number of ranks is not the launcher's), io,
  /// timeout.
  [[nodiscard]] static Result<RankLink> connect();

  [[nodiscard]] int rank() const { return rank_; }
  /// Whether a starter, not the launcher, has started this rank. TUTTI_ARGUMENTS then has its arguments.
  [[nodiscard]] static bool has_come_by_itself();
  [[nodiscard]] int ranks() const { return ranks_; }
  [[nodiscard]] const RankPlace& place() const { return place_; }
  [[nodiscard]] const std::string& payload() const { return payload_; }
  [[nodiscard]] Board board() const { return Board(board_memory_.data(), ranks_); }
  [[nodiscard]] int domain_fd() const { return domain_.get(); }  ///< -1 if the job has no domain
  [[nodiscard]] std::size_t domain_bytes() const { return domain_bytes_; }

  /// Null if all ranks are on one host.
  [[nodiscard]] const AcrossPlace* across() const { return across_ ? &*across_ : nullptr; }
  [[nodiscard]] const AcrossListeners& listeners() const { return listeners_; }

  /// Any thread may send. Errors: io, invalid_argument (too long, or a reserved type).
  Status send(std::string_view type, std::string_view text);
  /// The last word of a rank that is done. It then exits with 0.
  Status finish();
  /// The last word of a rank that gives up: the launcher ends the job and reports `why` with its code. Waits for that
  /// end for a moment: were we to exit, mpirun would end the others before the launcher could see how they are.
  Status fail(const Status& why);

  /// Before and after whatever may wait for another rank; see board.h.
  void announce(Activity activity, std::uint32_t case_index);
  void settle();

 private:
  RankLink() = default;
  Status start_watching();
  Status receive_welcome();
  Status send_any(std::string type, std::string text);

  int rank_ = 0;
  int ranks_ = 1;
  RankPlace place_;
  std::string payload_;
  Descriptor socket_;
  Descriptor domain_;
  std::size_t domain_bytes_ = 0;
  std::optional<AcrossPlace> across_;
  AcrossListeners listeners_;
  Mapping board_memory_;
  std::unique_ptr<std::mutex> sending_ = std::make_unique<std::mutex>();
};

}  // namespace tutti::harness::launch
