// SPDX-License-Identifier: Apache-2.0
// Connections: the launcher's ends of all control connections (impl/bootstrap/control.h). It accepts them, hands
// each rank its descriptors after its hello, and cuts what comes into frames. It never blocks: what all ranks are given
// is small, and a payload of any size goes as a descriptor.
#pragma once

#include <functional>
#include <poll.h>
#include <string>
#include <sys/types.h>
#include <vector>

#include "harness/floors.h"
#include "impl/bootstrap/control.h"

namespace tutti::harness::launch {

struct HostInfo;

/// A socket at which `ranks` ranks of this host find their launcher. A copy of `open`, or, if that is -1, one at the
/// name `name`. Errors: those of listen_at; resource.
[[nodiscard]] Result<Descriptor> control_listener(int open, const std::string& name, int ranks);

/// Type of the last frame to a rank that came by itself: its launcher ends in good order. The text is what the rank is
/// to say of that, or empty. A connection that ends without it has lost its launcher.
inline constexpr const char* kEnd = "end";
/// Sends that frame to every process that waits at the socket and has not been accepted.
void turn_away_waiting(int listener);

class Connections {
 public:
  /// What `service` found. A rank of -1 is a peer that said no hello.
  class Events {
   public:
    virtual ~Events() = default;
    virtual void on_hello(int rank, pid_t pid) = 0;
    virtual void on_frame(int rank, const Frame& frame) = 0;
    virtual void on_closed(int rank) = 0;
    virtual void on_garbage(int rank, pid_t pid, const std::string& what) = 0;
    virtual void on_unfit(const Status& why) = 0;  ///< a rank came, and cannot be one: the job cannot go on
    /// A host cannot go on, or is gone; `first_rank` is there.
    virtual void on_lost_host(int /*first_rank*/, const Status& /*why*/) {}
    /// All hosts have come, and this is what they say of themselves.
    virtual void on_hosts(const std::vector<HostInfo>& /*all*/) {}
  };

  using Welcome = std::function<Frame(int rank)>;
  struct Expected {
    int ranks = 1;
    int first = 0;               ///< number of the first of them
    std::string arguments = {};  ///< that one which came by itself says it was started with; empty: any
  };
  /// These ranks will say hello at `listener`; each gets its `welcome` with `descriptors`, rank 0 also those
  /// `for_rank_0`. They must outlive this.
  void serve(Descriptor listener, Expected expected, Welcome welcome, std::vector<int> descriptors,
             std::vector<int> for_rank_0 = {});
  /// Appends what to wait for.
  void add_to(std::vector<pollfd>& set) const;
  /// Accepts and reads all there is at this moment.
  void service(Events& events);
  /// Sends every peer a frame of type kEnd; once, after the job.
  void dismiss(std::string_view text);

 private:
  struct Peer {
    Descriptor socket;
    pid_t pid = 0;
    int rank = -1;
    FrameReader reader;
  };
  void accept_all(Events& events);
  void read_all(Peer& peer, Events& events);
  bool take_frames(Peer& peer, Events& events);
  /// Errors: mismatch if the job cannot go on; unavailable if the peer alone is refused; io.
  Status greet(Peer& peer, const Frame& hello, Events& events);
  static Status turn_away(const Peer& peer, int rank);

  Descriptor listener_;
  std::vector<Peer> peers_;
  int first_ = 0;
  std::string arguments_;
  std::vector<bool> is_taken_;  ///< ranks that said hello, from the first one on
  Welcome welcome_;
  std::vector<int> descriptors_, for_rank_0_;
};

}  // namespace tutti::harness::launch
