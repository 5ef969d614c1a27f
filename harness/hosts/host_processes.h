// SPDX-License-Identifier: Apache-2.0
// HostProcesses: the launcher's processes on other hosts (host_process.h), which it starts through an agent such as
// ssh, or by itself on this host, and talks with over TCP. In a job of a starter those of other hosts come by
// themselves (joined_hosts.h). Groups of ranks come and go over some of them: HostsStarter has the ranks of one group.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <poll.h>
#include <set>
#include <string>
#include <sys/types.h>
#include <vector>

#include "harness/floors.h"
#include "harness/hosts/agent_log.h"
#include "harness/hosts/frame_stream.h"
#include "harness/hosts/host_talk.h"
#include "harness/hosts/joined_hosts.h"
#include "impl/tcp/greeting.h"
#include "impl/tcp/secret.h"
#include "impl/tcp/socket.h"
#include "impl/types/status.h"

namespace tutti::harness::hosts {

struct HostsRequest {
  std::vector<std::string> hosts;  ///< as the agent takes them
  std::string agent = "ssh";
  std::string interface = {};  ///< see JobAcross
  std::string build = {};      ///< what all hosts must have
  std::string program = "/proc/self/exe";
  std::shared_ptr<JoinedHosts> joined = nullptr;
  std::vector<std::string> rails = {};  ///< see Invitation
  std::string control = {};             ///< of a job of a starter, at which `control_socket` listens
  int control_socket = -1;
  int log = -1;  ///< gets what the agents print
};

class HostProcesses {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  HostProcesses() = default;
  ~HostProcesses() { end(); }
  HostProcesses(const HostProcesses&) = delete;
  HostProcesses& operator=(const HostProcesses&) = delete;

  /// Starts all agents. Called once. Errors: see spawn, address_for; what was started before is ended.
  Status start(HostsRequest request);
  /// Appends what to wait for.
  void add_to(std::vector<pollfd>& set) const;
  /// Takes and sends what there is at this moment, and looks which hosts are lost.
  void service();
  /// Waits, without blocking, for agents that have ended.
  void reap();
  /// Ends all groups and all host processes. Takes at most about 6 s, mostly some ms.
  void end();

  [[nodiscard]] std::size_t size() const { return all_.size(); }
  [[nodiscard]] const std::string& name(int host) const { return of(host).name; }
  [[nodiscard]] const std::string& address() const { return address_; }  ///< at which they reach this host
  /// What the host says of itself, once it has come.
  [[nodiscard]] const std::optional<HostHello>& hello(int host) const { return of(host).hello; }
  /// Why it is lost, if it is.
  [[nodiscard]] const std::optional<Status>& loss(int host) const { return of(host).loss; }
  void lose(int host, const Status& why);
  /// One that is lost shall end by itself, if it still hears: it gets no other message.
  void dismiss(int host);
  [[nodiscard]] bool has_left(int host) const { return of(host).has_left; }
  /// Asks the examiner of the host's process. Requires: the host was not asked before.
  void examine(int host, const std::string& question);
  /// What its examiner has printed, or why there is no answer, once either is known.
  [[nodiscard]] const std::optional<Result<std::string>>& examined(int host) const { return of(host).examined; }
  /// When something came from it last.
  [[nodiscard]] TimePoint heard(int host) const { return of(host).heard; }
  /// "`ssh b` said: no route": how the agent of a host stands that has not come.
  [[nodiscard]] std::string absence(int host) const;
  /// Where they have to come to.
  [[nodiscard]] const std::string& listens_at() const { return listener_.address; }
  /// No other process is let in.
  void close_listener();

  /// Frames of a new group come to its inbox. What its hosts print goes to `log` while it is there.
  int open_group(std::vector<int> hosts, int log);
  void close_group(int group);
  void send(int host, int group, const Frame& frame) { at(host).stream.send(in_group(group, frame)); }
  struct News {
    int host = 0;
    Frame frame;
  };
  /// The oldest frame that was not taken.
  [[nodiscard]] std::optional<News> next_of(int group);
  /// Whether nothing of the group is left on those of its hosts that are not lost.
  [[nodiscard]] bool has_ended(int group) const;
  [[nodiscard]] bool has_ended_on(int group, int host) const { return groups_.at(group).ended.contains(host); }

 private:
  struct HostProcess {
    std::string name;
    bool is_here = false;
    pid_t agent = 0;
    std::optional<int> agent_status;
    TimePoint agent_ended{};  ///< when it was noticed
    Descriptor input;         ///< the agent's stdin; at its end the host process ends its ranks
    AgentLog log;
    FrameStream stream;
    bool has_come = false;
    std::optional<HostHello> hello;
    bool was_asked = false;  ///< see examine
    std::optional<Result<std::string>> examined;
    bool has_left = false;
    std::optional<Status> loss;
    TimePoint heard{};
  };
  /// A connection whose other end has not yet proved that it is of this job.
  struct Guest {
    Descriptor socket;
    tcp::Greeting greeting;
    TimePoint since;
  };
  struct Group {
    std::set<int> hosts, ended;
    std::deque<News> news;
    int log = -1;
  };

  [[nodiscard]] const HostProcess& of(int host) const { return all_[static_cast<std::size_t>(host)]; }
  [[nodiscard]] HostProcess& at(int host) { return all_[static_cast<std::size_t>(host)]; }
  [[nodiscard]] int number_of(const HostProcess& process) const { return static_cast<int>(&process - all_.data()); }
  /// The interface in an invitation; empty: the host process finds it.
  [[nodiscard]] std::string interface_of_invited() const;
  Status start_process(HostProcess& process, const std::string& program);
  [[nodiscard]] std::string agent_of(const HostProcess& process) const;
  void let_in();
  void greet();
  void admit(Guest& guest);
  void hear(HostProcess& process);
  Status take(HostProcess& process, Frame frame);
  Status take_hello(HostProcess& process, std::string_view text);
  static Status take_examined(HostProcess& process, Frame frame);
  Status take_of_group(int host, const Frame& frame);
  void forgive_own_standstill();
  void look_for_losses();
  void hand_on_logs();

  HostsRequest request_;
  tcp::Secret key_;  ///< of the hosts
  tcp::Listener listener_;
  std::string address_;
  std::vector<HostProcess> all_;
  std::list<Guest> guests_;
  std::map<int, Group> groups_;
  int next_group_ = kOnlyGroup;
  bool is_ending_ = false;
  TimePoint told_, served_;
};

}  // namespace tutti::harness::hosts
