// SPDX-License-Identifier: Apache-2.0
#include "harness/hosts/host_process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <poll.h>
#include <set>
#include <unistd.h>
#include <utility>
#include <vector>

#include "harness/board/segment.h"
#include "harness/hosts/frame_stream.h"
#include "harness/hosts/host_talk.h"
#include "harness/hosts/joined_hosts.h"
#include "harness/launch/children.h"
#include "harness/launch/connections.h"
#include "harness/launch/control_name.h"
#include "harness/launch/limits.h"
#include "harness/machine/allowed_cores.h"
#include "harness/machine/clock.h"
#include "harness/machine/machine.h"
#include "harness/process/agent.h"
#include "harness/process/interrupts.h"
#include "harness/process/processes.h"
#include "harness/process/waits.h"
#include "impl/bootstrap/meeting.h"
#include "impl/tcp/greeting.h"
#include "impl/tcp/interface.h"
#include "impl/tcp/socket.h"
#include "impl/types/names.h"

namespace tutti::harness::hosts {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kInvitationPatience = 30s;
constexpr auto kConnectPatience = 10s;
constexpr auto kHostEndTick = 20ms;
constexpr auto kHostTick = 50ms;
constexpr auto kStandingsInterval = 500ms;
constexpr std::size_t kMostInvitation = 65536;

Result<std::string> read_line() {
  std::string line;
  const auto end = Clock::now() + kInvitationPatience;
  while (line.size() < kMostInvitation) {
    if (!wait_readable(STDIN_FILENO, std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()))) break;
    char c = 0;
    const ssize_t n = ::read(STDIN_FILENO, &c, 1);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    if (c == '\n') return line;
    line += c;
  }
  return error(
      Code::invalid_argument,
      "no invitation on stdin: `tutti host` is started by tutti's launcher, through an agent that hands on what "
      "it is told on stdin");
}

struct ToLauncher {
  Descriptor socket;
  tcp::Session session;
};

Result<ToLauncher> connect_to_launcher(const Invitation& invitation) {
  TUTTI_ASSIGN_OR_RETURN(const tcp::Secret key, tcp::secret_from(invitation.key));
  TUTTI_ASSIGN_OR_RETURN(const tcp::Nonce nonce, tcp::draw_nonce());
  TUTTI_ASSIGN_OR_RETURN(Descriptor socket, tcp::connect_to(invitation.address));
  tcp::Greeting greeting = tcp::Greeting::of_client(
      key, nonce, {.role = tcp::Role::machine, .from = static_cast<std::uint32_t>(invitation.host)});
  bool is_connected = false;
  for (const auto end = Clock::now() + kConnectPatience; Clock::now() < end;) {
    const auto events = static_cast<short>(POLLIN | (!is_connected || greeting.wants_to_write() ? POLLOUT : 0));
    pollfd one{.fd = socket.get(), .events = events, .revents = 0};
    ::poll(&one, 1, 100);
    if (one.revents == 0) continue;
    if (const int failure = is_connected ? 0 : tcp::error_of(socket.get()); failure != 0) {
      // It listened when it said where.
      return error(failure == ECONNREFUSED ? Code::aborted : Code::unavailable,
                   "the launcher cannot be reached at {}: {}", invitation.address, std::strerror(failure));
    }
    is_connected = true;
    const auto state = greeting.step(socket.get());
    if (state == tcp::Greeting::State::done)
      return ToLauncher{.socket = std::move(socket), .session = greeting.session()};
    if (state == tcp::Greeting::State::failed) {
      return error(greeting.has_ended() ? Code::aborted : Code::mismatch,
                   "who listens at {} did not show that it is of this job", invitation.address);
    }
  }
  return error(Code::unavailable, "the launcher does not answer at {}", invitation.address);
}

class HostProcess : private Connections::Events {
 public:
  struct Place {
    int number = 0;                   ///< of this host
    std::string key;                  ///< of the job, for its ranks
    std::string control;              ///< of the job
    int control_socket = -1;          ///< see Invitation
    OnLostLauncher on_lost_launcher;  ///< empty: the invitation, and the launcher's end, come over stdin
    tcp::Listener exchange, domain;
  };
  HostProcess(FrameStream stream, Place place, const Standings& standings)
      : stream_(std::move(stream)),
        number_(place.number),
        key_(std::move(place.key)),
        control_(std::move(place.control)),
        control_socket_(place.control_socket),
        on_lost_launcher_(std::move(place.on_lost_launcher)),
        exchange_(std::move(place.exchange)),
        domain_listener_(std::move(place.domain)),
        standings_(standings) {}
  ~HostProcess() override { children_.end(); }
  HostProcess(const HostProcess&) = delete;
  HostProcess& operator=(const HostProcess&) = delete;

  void say(const Frame& frame) { stream_.send(frame); }

  /// To the end; why, where that is not what the launcher wants.
  Status run() {
    heard_ = looked_ = Clock::now();
    Status why;
    while (!is_to_end_ && why.is_ok()) {
      wait();
      forgive_own_standstill();
      stream_.go_on();
      take_orders();
      if (has_job_) look();
      if (!is_to_end_) why = check();
    }
    return conclude(why);
  }

 private:
  void on_hello(int rank, pid_t pid) override {
    visitor(rank).pid = pid;
    stream_.send({"up", fmt::format("{} {}", rank, pid)});
  }
  void on_frame(int rank, const Frame& frame) override {
    visitor(rank).has_said_bye |= frame.type == "bye";
    stream_.send({"from", fmt::format("{} {}\n{}", rank, frame.type, frame.text)});
  }
  void on_closed(int rank) override {
    if (rank < 0) return;
    stream_.send({"closed", std::to_string(rank)});
    // How one that came by itself exits only its starter learns.
    const Visitor& visitor = this->visitor(rank);
    if (!is_child(rank) && visitor.has_said_bye) stream_.send({"exit", fmt::format("{} {} 0", rank, visitor.pid)});
  }
  void on_garbage(int rank, pid_t pid, const std::string& what) override {
    // One that said no hello is counted as the host's first.
    stream_.send({"garbage", fmt::format("{} {} {}", rank < 0 ? job_.first : rank, pid, what)});
  }
  void on_unfit(const Status& why) override { fail(why); }

  void wait() {
    std::vector<pollfd> set = {{interrupts_.descriptor(), POLLIN, 0},
                               {reads_stdin() ? STDIN_FILENO : -1, POLLIN, 0},
                               {stream_.descriptor(), stream_.events(), 0}};
    if (has_job_) connections_.add_to(set);
    ::poll(set.data(), set.size(), static_cast<int>(kHostTick.count()));
    if (set[1].revents != 0) {
      char c = 0;
      is_alone_ |= ::read(STDIN_FILENO, &c, 1) <= 0;
    }
  }

  /// The time for which this process itself stood still is no silence of the launcher.
  void forgive_own_standstill() {
    const auto stood = Clock::now() - std::exchange(looked_, Clock::now());
    if (stood > kUsualSilence) heard_ += stood;
  }

  [[nodiscard]] Status check() const {
    if (interrupts_.signal() != 0) return error(Code::aborted, "{}", interruption_text(interrupts_.signal()));
    if (!garbled_.is_ok()) return garbled_;
    if (is_alone_ || !stream_.is_open()) return lose_launcher("is gone");
    if (Clock::now() - heard_ > kLauncherSilence) {
      return lose_launcher(fmt::format("has said nothing for {} s", kLauncherSilence.count()));
    }
    return {};
  }

  [[nodiscard]] bool reads_stdin() const { return !on_lost_launcher_; }
  [[nodiscard]] Status lose_launcher(std::string_view what) const {
    if (on_lost_launcher_) on_lost_launcher_(what);
    return error(Code::aborted, "the launcher {}", what);
  }

  void fail(const Status& why) { stream_.send({"failed", error_text(why)}); }

  void take_orders() {
    for (;;) {
      auto frame = stream_.next();
      if (!frame.is_ok()) {
        garbled_ = frame.status();
        return;
      }
      if (!frame.value()) return;
      heard_ = Clock::now();
      const std::string& type = frame.value()->type;
      if (type == "payload") {
        payload_ = std::move(frame.value()->text);
      } else if (type == "end") {
        is_to_end_ = true;
      } else if (type == "job" && !has_job_) {
        const Status started = start(frame.value()->text);
        if (!started.is_ok()) fail(started);
      } else if (type != "alive") {
        garbled_ = type == "job"
                       ? error(Code::io, "the launcher sends a second job")
                       : error(Code::io, "the launcher sends '{}', which is no message of a launcher", shown(type));
        return;
      }
    }
  }

  Status start(const std::string& text) {
    TUTTI_ASSIGN_OR_RETURN(job_, job_from_json(text));
    job_.place.key = key_;
    job_.place.lead_ns = monotonic_ns() - job_.launcher_ns;
    Job job;
    job.ranks = job_.ranks;
    job.first_rank = job_.first;
    job.ranks_here = job_.started;
    job.awaits_others = job_.started < job_.here;
    job.arguments = {"rank"};
    visitors_.resize(static_cast<std::size_t>(job_.here));
    TUTTI_RETURN_IF_ERROR(prepare_limits(needs_of(job)));
    TUTTI_ASSIGN_OR_RETURN(payload_segment_, make_text_segment("tutti-payload", payload_));
    TUTTI_ASSIGN_OR_RETURN(board_segment_, make_segment("tutti-board", Board::bytes(job.ranks)));
    TUTTI_ASSIGN_OR_RETURN(board_memory_, Mapping::map(board_segment_.get(), Board::bytes(job.ranks)));
    board_.emplace(board_memory_.data(), job.ranks);
    std::vector<int> descriptors = {payload_segment_.get(), board_segment_.get()};
    if (job_.domain_bytes > 0) {
      TUTTI_ASSIGN_OR_RETURN(domain_, make_segment("tutti-domain", job_.domain_bytes));
      descriptors.push_back(domain_.get());
    }
    const auto welcome = [this](int rank) {
      return Frame{"welcome", fmt::format("{} {} {} {} {}\n{}\n{}", job_.ranks, job_.ranks, job_.domain_bytes, number_,
                                          rank - job_.first, job_.place.key, to_json(job_.place))};
    };
    const std::string name = control_socket_ < 0 ? control_name_of(control_, job_.first) : control_;
    TUTTI_ASSIGN_OR_RETURN(Descriptor listener, control_listener(control_socket_, name, job_.here));
    connections_.serve(std::move(listener), {.ranks = job_.here, .first = job_.first, .arguments = job_.arguments},
                       welcome, std::move(descriptors), {exchange_.socket.get(), domain_listener_.socket.get()});
    has_job_ = true;
    stream_.send({"awaits", ""});
    return job_.started == 0 ? Status() : children_.start(job, name, "", STDERR_FILENO);
  }

  void look() {
    children_.reap();  // before reading: whatever a dead child sent is then told before its death
    connections_.service(*this);
    for (const Child& child : children_.all()) {
      if (!child.wait_status || !told_.insert(child.rank).second) continue;
      stream_.send({"exit", fmt::format("{} {} {}", child.rank, child.pid, *child.wait_status)});
    }
    tell_statuses();
  }

  void tell_statuses() {
    const auto now = Clock::now();
    if (now - told_statuses_ < kStatusInterval) return;
    told_statuses_ = now;
    const std::int64_t now_ns = monotonic_ns();
    std::vector<RankReport> reports;
    std::int64_t longest_ns = 0;
    for (int rank = job_.first; rank < job_.first + job_.here; ++rank) {
      const RankStatus& status = board_->status(rank);
      const auto [since, granted_ns] = announced_on(status);
      const pid_t pid =
          is_child(rank) ? children_.all()[static_cast<std::size_t>(rank - job_.first)].pid : visitor(rank).pid;
      const auto info = process_info(pid);
      const char state = info ? info->state : pid == 0 ? 'S' : 'X';  // one that has not come is not known yet
      if (since != 0) longest_ns = std::max(longest_ns, now_ns - since);
      reports.push_back({.waited_ns = since == 0 ? 0 : std::max<std::int64_t>(now_ns - since, 1),
                         .granted_ns = granted_ns,
                         .operation = status.operation.load(std::memory_order_relaxed),
                         .case_index = status.case_index.load(std::memory_order_relaxed),
                         .activity = status.activity.load(std::memory_order_relaxed),
                         .state = state});
    }
    stream_.send({"status", to_lines(reports)});
    if (longest_ns > job_.timeout_ns / 4 * 3 && now - told_standings_ > kStandingsInterval) {
      told_standings_ = now;
      tell_standings();
    }
  }

  void tell_standings() {
    const std::vector<RankStanding> all = standings_(payload_, number_, domain_.get());
    for (int rank = job_.first; rank < job_.first + job_.here && rank < static_cast<int>(all.size()); ++rank) {
      stream_.send({"standing", fmt::format("{} {}", rank, to_json(all[static_cast<std::size_t>(rank)]))});
    }
  }

  Status conclude(const Status& why) {
    if (!why.is_ok()) fail(why);  // before the ends of its ranks say less
    if (board_) board_->abort_flag().store(1, std::memory_order_release);
    children_.end();
    kill_visitors();
    if (has_job_) connections_.service(*this);  // what the dead had sent
    if (are_joined()) connections_.dismiss(word_of_loss());
    // The launcher ends a job that has failed and one that is done alike.
    const bool is_done = std::ranges::all_of(visitors_, [](const Visitor& one) { return one.has_said_bye; });
    stream_.send({"ended", ""});
    for (const auto end = Clock::now() + 2s; stream_.is_open() && !stream_.has_sent_all() && Clock::now() < end;) {
      pollfd one{.fd = stream_.descriptor(), .events = stream_.events(), .revents = 0};
      ::poll(&one, 1, static_cast<int>(kHostEndTick.count()));
      stream_.go_on();
    }
    return why.is_ok() && !is_done && !reads_stdin() ? error(Code::aborted, "the job has failed") : why;
  }

  /// Whether somebody else has started the ranks, and the first of them is the launcher's process, or this one.
  [[nodiscard]] bool are_joined() const { return control_socket_ >= 0; }
  /// What ranks of the launcher's own host say of its end, which they do not see: it was another process that let them
  /// in.
  [[nodiscard]] std::string word_of_loss() const {
    const bool is_lost = !is_to_end_ && (is_alone_ || !stream_.is_open() || ::getppid() != launcher_);
    if (!reads_stdin() || !is_lost) return {};
    return fmt::format("the first rank's process of this host (pid {}) ended without a word: killed, or crashed",
                       launcher_);
  }

  /// Ranks that the launcher's start command has started, unless they are done. They would end with this process, but
  /// for those that are stopped.
  void kill_visitors() const {
    if (are_joined()) return;  // they end with the job's exit code
    for (std::size_t i = static_cast<std::size_t>(job_.started); i < visitors_.size(); ++i) {
      if (visitors_[i].pid > 0 && !visitors_[i].has_said_bye) ::kill(visitors_[i].pid, SIGKILL);
    }
  }

  struct Visitor {  ///< at the other end of a connection
    pid_t pid = 0;
    bool has_said_bye = false;
  };
  [[nodiscard]] Visitor& visitor(int rank) { return visitors_[static_cast<std::size_t>(rank - job_.first)]; }
  [[nodiscard]] bool is_child(int rank) const { return rank < job_.first + job_.started; }

  FrameStream stream_;
  int number_;
  std::string key_, control_;
  int control_socket_;
  OnLostLauncher on_lost_launcher_;
  std::vector<Visitor> visitors_;  ///< from the host's first rank on
  tcp::Listener exchange_, domain_listener_;
  const Standings& standings_;
  Interrupts interrupts_;
  HostJob job_;
  std::string payload_;
  const pid_t launcher_ = ::getppid();  ///< or its agent
  Status garbled_;                      ///< what the launcher says is not understood
  bool has_job_ = false, is_to_end_ = false, is_alone_ = false;
  Clock::time_point heard_, looked_, told_statuses_, told_standings_;
  Descriptor payload_segment_, board_segment_, domain_;
  Mapping board_memory_;
  std::optional<Board> board_;
  Connections connections_;
  std::set<int> told_;
  Children children_;
};

}  // namespace

namespace {

Status serve(const Invitation& invitation, const std::string& build, const Standings& standings,
             const OnLostLauncher& on_lost_launcher) {
  ::signal(SIGPIPE, SIG_IGN);  // the agent may be gone before us
  auto reached = connect_to_launcher(invitation);
  if (reached.status().code() == Code::aborted && on_lost_launcher) on_lost_launcher("is gone");
  TUTTI_ASSIGN_OR_RETURN(ToLauncher launcher, std::move(reached));
  const machine::Machine described = describe_machine();
  HostHello hello{.build = build,
                  .name = tcp::hostname(),
                  .kernel = running_kernel(),
                  .cores = static_cast<int>(allowed_cores().size()),
                  .description = machine_to_json(described),
                  .fingerprint = fingerprint_of(described)};
  if (invitation.interface.empty()) {
    TUTTI_ASSIGN_OR_RETURN(hello.interface, tcp::own_address(launcher.socket.get()));
  } else {
    TUTTI_ASSIGN_OR_RETURN(hello.interface, tcp::address_of_interface(invitation.interface));
  }
  tcp::Listener exchange, domain;
  if (invitation.host == 0) {
    TUTTI_ASSIGN_OR_RETURN(exchange, tcp::listen_on(hello.interface));
    TUTTI_ASSIGN_OR_RETURN(domain, tcp::listen_on(hello.interface));
    hello.exchange_address = exchange.address;
    hello.domain_address = domain.address;
  }
  HostProcess process(FrameStream(std::move(launcher.socket), launcher.session),
                      {.number = invitation.host,
                       .key = invitation.key,
                       .control = invitation.control,
                       .control_socket = invitation.control_socket,
                       .on_lost_launcher = on_lost_launcher,
                       .exchange = std::move(exchange),
                       .domain = std::move(domain)},
                      standings);
  process.say({"hello", to_json(hello)});
  return process.run();
}

}  // namespace

Status run_host_process(const std::string& build, const Standings& standings) {
  TUTTI_ASSIGN_OR_RETURN(const std::string line, read_line());
  TUTTI_ASSIGN_OR_RETURN(const Invitation invitation, invitation_from(line));
  // The ranks that this process starts have them too.
  if (!invitation.backends.empty()) ::setenv(kBackendFolders, invitation.backends.c_str(), 1);
  if (!invitation.transports.empty()) ::setenv(kTransportFolders, invitation.transports.c_str(), 1);
  return serve(invitation, build, standings, {});
}

Status serve_as_host_process(const Invitation& invitation, const std::string& build, const Standings& standings,
                             const OnLostLauncher& on_lost_launcher) {
  return serve(invitation, build, standings, on_lost_launcher);
}

}  // namespace tutti::harness::hosts
