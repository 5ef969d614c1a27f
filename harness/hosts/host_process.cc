// SPDX-License-Identifier: Apache-2.0
#include "harness/hosts/host_process.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <poll.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "harness/hosts/examiner.h"
#include "harness/hosts/frame_stream.h"
#include "harness/hosts/host_talk.h"
#include "harness/hosts/joined_hosts.h"
#include "harness/machine/allowed_cores.h"
#include "harness/machine/clock.h"
#include "harness/machine/machine.h"
#include "harness/process/agent.h"
#include "harness/process/interrupts.h"
#include "harness/process/waits.h"
#include "impl/bootstrap/meeting.h"
#include "impl/tcp/greeting.h"
#include "impl/tcp/interface.h"
#include "impl/tcp/secret.h"
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
constexpr auto kReadTick = 10ms;  // while a stack is read, mostly for some 10 ms
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
                   "the program at {} did not prove that it is of this job", invitation.address);
    }
  }
  return error(Code::unavailable, "the launcher does not answer at {}", invitation.address);
}

/// What a host process has for all its groups.
struct HostPlace {
  tcp::Secret key;
  std::string interface;
  std::string control;  ///< see Invitation
  int control_socket = -1;
};

/// The connection to the launcher, and the groups of ranks that it asks for.
class HostProcess {
 public:
  /// `on_lost_launcher`: empty if the invitation, and the launcher's end, come over stdin.
  HostProcess(FrameStream stream, HostPlace place, const OnLostLauncher& on_lost_launcher, const HostProgram& program)
      : stream_(std::move(stream)), place_(std::move(place)), on_lost_launcher_(on_lost_launcher), program_(program) {}

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
      for (auto& [group, work] : works_) work.step();
      say_examined();
      say_alive();
      if (!is_to_end_) why = check();
    }
    return conclude(why);
  }

 private:
  /// What came for a group that has not begun.
  struct Opening {
    std::string payload;
    tcp::Listener exchange, domain;
  };

  void wait() {
    std::vector<pollfd> set = {{interrupts_.descriptor(), POLLIN, 0},
                               {reads_stdin() ? STDIN_FILENO : -1, POLLIN, 0},
                               {stream_.descriptor(), stream_.events(), 0}};
    for (const auto& [group, work] : works_) work.add_to(set);
    const bool reads = std::ranges::any_of(works_, [](const auto& one) { return one.second.reads_stacks(); });
    const auto tick = reads ? kReadTick : kHostTick;
    const std::int64_t due_ns = monotonic_ns() + std::chrono::nanoseconds(tick).count();
    ::poll(set.data(), set.size(), static_cast<int>(tick.count()));
    for (auto& [group, work] : works_) work.look_for_standstill(due_ns, monotonic_ns());
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
      if (type == "leave") {
        is_to_end_ = true;
      } else if (type == "examine") {
        garbled_ = examine(frame.value()->text);
      } else if (type == "meet" || type == "payload" || type == "job" || type == "recall" || type == "end") {
        garbled_ = take_of_group(*frame.value());
      } else if (type != "alive") {
        garbled_ = error(Code::io, "the launcher sends '{}', which is no message of a launcher", shown(type));
      }
      if (!garbled_.is_ok()) return;
    }
  }

  Status examine(const std::string& question) {
    if (examiner_) return error(Code::io, "the launcher sends a second question for the examiner");
    examiner_.emplace();
    if (program_.examiner.empty()) {
      say({"unexamined", error_text(error(Code::unavailable, "it has no examiner"))});
    } else if (const Status started = examiner_->start(program_.examiner, question); !started.is_ok()) {
      say({"unexamined", error_text(started)});
    }
    return {};
  }

  void say_examined() {
    if (!examiner_) return;
    const auto examined = examiner_->step();
    if (!examined) return;
    say(examined->is_ok() ? Frame{"examined", examined->value()} : Frame{"unexamined", error_text(examined->status())});
  }

  Status take_of_group(const Frame& sent) {
    TUTTI_ASSIGN_OR_RETURN(auto of_group, group_frame_from(sent));
    auto& [group, frame] = of_group;
    if (frame.type == "end") {
      end(group);
    } else if (frame.type == "recall") {
      recall(group);
    } else if (works_.contains(group)) {
      return error(Code::io, "the launcher sends a second job for group {}", group);
    } else if (frame.type == "meet") {
      if (const Status met = meet(group, frame.text); !met.is_ok()) say(in_group(group, {"unable", error_text(met)}));
    } else if (frame.type == "payload") {
      openings_[group].payload = std::move(frame.text);
    } else {
      begin(group, frame.text);
    }
    return {};
  }

  /// Listens for the ranks of the group's other hosts, at `address`; empty: at this host's usual one. Errors: those of
  /// listen_on.
  Status meet(int group, const std::string& address) {
    Opening& opening = openings_[group];
    const std::string& interface = address.empty() ? place_.interface : address;
    TUTTI_ASSIGN_OR_RETURN(opening.exchange, tcp::listen_on(interface));
    TUTTI_ASSIGN_OR_RETURN(opening.domain, tcp::listen_on(interface));
    const MeetingPlace place{.exchange_address = opening.exchange.address, .domain_address = opening.domain.address};
    say(in_group(group, {"meets", to_json(place)}));
    return {};
  }

  void begin(int group, const std::string& text) {
    const auto send = [this, group](const Frame& frame) { say(in_group(group, frame)); };
    auto job = job_from_json(text);
    if (!job.is_ok()) return send({"unable", error_text(job.status())});
    Opening opening = std::move(openings_[group]);
    openings_.erase(group);
    const auto [at, is_new] = works_.try_emplace(group,
                                                 WorkPlace{.key = tcp::to_text(key_of_group(place_.key, group)),
                                                           .control = place_.control,
                                                           .control_socket = place_.control_socket,
                                                           .exchange = std::move(opening.exchange),
                                                           .domain = std::move(opening.domain)},
                                                 send, program_.look);
    if (const Status started = at->second.start(std::move(opening.payload), std::move(job).value()); !started.is_ok()) {
      at->second.fail(started);
    }
  }

  /// Tells what the group's ranks called last, and where they are.
  void recall(int group) {
    const auto work = works_.find(group);
    if (work == works_.end()) return say(in_group(group, {"recalled", ""}));
    work->second.recall();
  }

  /// Leaves nothing of the group here.
  void end(int group) {
    openings_.erase(group);
    if (const auto work = works_.find(group); work != works_.end()) {
      work->second.end("");
      works_.erase(work);
    }
    say(in_group(group, {"ended", ""}));
  }

  void say_alive() {
    if (Clock::now() - said_ < kUsualSilence / 2) return;
    said_ = Clock::now();
    say({"alive", ""});
  }

  Status conclude(const Status& why) {
    if (!why.is_ok()) say({"failed", error_text(why)});  // before the ends of its ranks say less
    for (auto& [group, work] : works_) work.end(word_of_loss());
    if (examiner_) examiner_->end();
    // The launcher ends a job that has failed and one that is done alike.
    const bool is_done = std::ranges::all_of(works_, [](const auto& one) { return one.second.is_done(); });
    say({"left", ""});
    for (const auto end = Clock::now() + 2s; stream_.is_open() && !stream_.has_sent_all() && Clock::now() < end;) {
      pollfd one{.fd = stream_.descriptor(), .events = stream_.events(), .revents = 0};
      ::poll(&one, 1, static_cast<int>(kHostEndTick.count()));
      stream_.go_on();
    }
    return why.is_ok() && !is_done && !reads_stdin() ? error(Code::aborted, "the job has failed") : why;
  }

  /// What ranks of the launcher's own host say of its end, which they do not see: it was another process that let them
  /// in.
  [[nodiscard]] std::string word_of_loss() const {
    const bool is_lost = !is_to_end_ && (is_alone_ || !stream_.is_open() || ::getppid() != launcher_);
    if (!reads_stdin() || !is_lost) return {};
    return fmt::format("the first rank's process of this host (pid {}) ended without a word: killed, or crashed",
                       launcher_);
  }

  FrameStream stream_;
  HostPlace place_;
  OnLostLauncher on_lost_launcher_;
  const HostProgram& program_;
  Interrupts interrupts_;
  const pid_t launcher_ = ::getppid();  ///< or its agent
  Status garbled_;                      ///< what the launcher says is not understood
  bool is_to_end_ = false, is_alone_ = false;
  Clock::time_point heard_, looked_, said_;
  std::map<int, Opening> openings_;   ///< by group
  std::map<int, Work> works_;         ///< by group
  std::optional<Examiner> examiner_;  ///< since the launcher asked for it
};

/// The address of each rail. Rails need networks of their own: what two have in common goes over one of them.
std::vector<HostRail> rails_of(const Invitation& invitation) {
  std::vector<HostRail> rails;
  std::vector<std::string> networks;
  for (const std::string& name : invitation.rails) {
    auto address = tcp::address_of_interface(name);
    if (!address.is_ok()) {
      networks.emplace_back();
      rails.push_back({.address = {}, .problem = std::string(address.status().message())});
      continue;
    }
    std::string network = tcp::subnet_of(address.value());
    const auto same = std::ranges::find(networks, network);
    HostRail rail{.address = std::move(address).value(), .problem = {}};
    if (same != networks.end()) {
      rail.problem = fmt::format("rails '{}' and '{}' are both in the network {}: the kernel sends over one of them",
                                 invitation.rails[static_cast<std::size_t>(same - networks.begin())], name, network);
    }
    networks.push_back(std::move(network));
    rails.push_back(std::move(rail));
  }
  return rails;
}

Status serve(const Invitation& invitation, const HostProgram& program, const OnLostLauncher& on_lost_launcher) {
  ::signal(SIGPIPE, SIG_IGN);  // the agent may be gone before us
  auto reached = connect_to_launcher(invitation);
  if (reached.status().code() == Code::aborted && on_lost_launcher) on_lost_launcher("is gone");
  TUTTI_ASSIGN_OR_RETURN(ToLauncher launcher, std::move(reached));
  const machine::Machine described = describe_machine();
  HostHello hello{.build = program.build,
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
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  hello.topology_address = variable("SLURM_TOPOLOGY_ADDR");
  hello.topology_pattern = variable("SLURM_TOPOLOGY_ADDR_PATTERN");
  hello.rails = rails_of(invitation);
  TUTTI_ASSIGN_OR_RETURN(const tcp::Secret key, tcp::secret_from(invitation.key));
  HostProcess process(FrameStream(std::move(launcher.socket), launcher.session),
                      {.key = key,
                       .interface = hello.interface,
                       .control = invitation.control,
                       .control_socket = invitation.control_socket},
                      on_lost_launcher, program);
  process.say({"hello", to_json(hello)});
  return process.run();
}

}  // namespace

Status run_host_process(const HostProgram& program) {
  TUTTI_ASSIGN_OR_RETURN(const std::string line, read_line());
  TUTTI_ASSIGN_OR_RETURN(const Invitation invitation, invitation_from(line));
  // The ranks that this process starts have them too.
  if (!invitation.backends.empty()) ::setenv(kBackendFolders, invitation.backends.c_str(), 1);
  if (!invitation.transports.empty()) ::setenv(kTransportFolders, invitation.transports.c_str(), 1);
  return serve(invitation, program, {});
}

Status serve_as_host_process(const Invitation& invitation, const HostProgram& program,
                             const OnLostLauncher& on_lost_launcher) {
  return serve(invitation, program, on_lost_launcher);
}

}  // namespace tutti::harness::hosts
