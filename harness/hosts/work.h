// SPDX-License-Identifier: Apache-2.0
// Work: what a host process does for one group of ranks. A group has its own secret, control socket, board, memory,
// timeout and end. A host process may hold several at once: none of them knows of another one, or of a connection to
// the launcher. Each sends its frames (host_talk.h) through a function.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <poll.h>
#include <set>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "harness/board/board.h"
#include "harness/board/rank_calls.h"
#include "harness/board/rank_standing.h"
#include "harness/board/segment.h"
#include "harness/hosts/host_talk.h"
#include "harness/launch/children.h"
#include "harness/launch/connections.h"
#include "harness/machine/standstill.h"
#include "harness/process/stacks.h"
#include "impl/bootstrap/meeting.h"
#include "impl/tcp/socket.h"
#include "impl/types/status.h"

namespace tutti::harness::hosts {

/// What the memory that the ranks of host `host` share shows of each rank of the job.
using LookAtRanks = std::function<RanksSeen(const std::string& payload, int host, int domain_fd)>;

/// Where a group is, and what it may use there.
struct WorkPlace {
  std::string key = {};         ///< of the group, for its ranks
  std::string control = {};     ///< at which control_socket listens
  int control_socket = -1;      ///< see Invitation
  tcp::Listener exchange = {};  ///< of host 0, for rank 0; not open: of another host
  tcp::Listener domain = {};    ///< as well
};

class Work final : private Connections::Events {
 public:
  /// Sends a frame to the launcher, without blocking.
  using Send = std::function<void(const Frame&)>;

  /// `look` outlives it. It is called if ranks have waited for most of the timeout, and at a recall.
  Work(WorkPlace place, Send send, const LookAtRanks& look)
      : place_(std::move(place)), send_(std::move(send)), look_(look) {}
  ~Work() override { children_.end(); }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  /// Makes the memory, listens for the ranks, and starts those that it has to start. Called once. Errors: those of
  /// prepare_limits, make_segment, control_listener and spawn.
  Status start(std::string payload, HostJob job);
  /// Appends what to wait for.
  void add_to(std::vector<pollfd>& set) const { connections_.add_to(set); }
  /// The host process was to go on at `due_ns`, and does so at `now_ns`: no rank is late by what it stood still.
  void look_for_standstill(std::int64_t due_ns, std::int64_t now_ns);
  /// Takes and sends what there is at this moment: messages, exits and stacks of ranks, and now and then their states.
  void step();
  /// Sends what its ranks called last. The next steps send their stacks, and at last that this was all. Only the first
  /// call does anything.
  void recall();
  /// Whether a step may have to wait for a stack.
  [[nodiscard]] bool reads_stacks() const { return stacks_.has_value(); }
  /// Reports to the launcher that the group cannot go on.
  void fail(const Status& why) { send_({"unable", error_text(why)}); }
  /// Ends the ranks, and leaves nothing of the group here. Ranks that came by themselves are sent `farewell`, and end
  /// by themselves. May be called before start, or after a start that failed. Takes at most about 1 s, mostly some ms.
  void end(std::string_view farewell);

  /// Whether all ranks of this host have said bye.
  [[nodiscard]] bool is_done() const;

 private:
  struct Visitor {  ///< at the other end of a connection
    pid_t pid = 0;
    bool has_said_bye = false;
    bool is_gone = false;  ///< its connection has ended
  };

  void on_hello(int rank, pid_t pid) override;
  void on_frame(int rank, const Frame& frame) override;
  void on_closed(int rank) override;
  void on_garbage(int rank, pid_t pid, const std::string& what) override;
  void on_unfit(const Status& why) override { fail(why); }

  /// The memory that the ranks of this host share. Errors: those of make_segment.
  Status make_memory();
  void serve(Descriptor listener);
  void send_exits();
  void send_reports();
  [[nodiscard]] RankReport report_of(int rank, std::int64_t now_ns) const;
  /// The process of a rank; 0: it has not come.
  [[nodiscard]] pid_t pid_of(int rank) const;
  void send_standings();
  void send_stacks();
  /// Sends a frame for each rank of this host that `all` [rank] has.
  template <class Known, class ToText>
  void send_known(std::string_view type, const std::vector<Known>& all, ToText to_text);
  void kill_visitors() const;

  [[nodiscard]] bool are_joined() const { return place_.control_socket >= 0; }
  [[nodiscard]] bool is_child(int rank) const { return rank < job_.first + job_.started; }
  [[nodiscard]] int after_last() const { return job_.first + job_.here; }
  [[nodiscard]] Visitor& visitor(int rank) { return visitors_[static_cast<std::size_t>(rank - job_.first)]; }
  [[nodiscard]] const Visitor& visitor(int rank) const {
    return visitors_[static_cast<std::size_t>(rank - job_.first)];
  }

  WorkPlace place_;
  Send send_;
  const LookAtRanks& look_;
  HostJob job_;
  std::string payload_;
  std::vector<Visitor> visitors_;  ///< from the host's first rank on
  Descriptor payload_segment_, board_segment_, domain_;
  Mapping board_memory_;
  std::optional<Board> board_;
  Connections connections_;
  bool is_serving_ = false;
  Standstill stood_;
  std::set<int> exited_;  ///< ranks whose exit has been sent
  std::chrono::steady_clock::time_point reported_{}, looked_up_{};
  Children children_;
  bool is_recalled_ = false;
  std::optional<StackReader> stacks_;  ///< from a recall until it is answered
};

}  // namespace tutti::harness::hosts
