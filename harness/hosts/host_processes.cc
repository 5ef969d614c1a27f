// SPDX-License-Identifier: Apache-2.0
#include "harness/hosts/host_processes.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iterator>
#include <memory>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "harness/process/agent.h"
#include "harness/process/spawn.h"
#include "harness/process/waits.h"
#include "impl/bootstrap/meeting.h"
#include "impl/tcp/interface.h"
#include "impl/types/names.h"

namespace tutti::harness::hosts {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kPatienceWithGuests = 2s;
constexpr auto kHostsEndPatience = 4s;   // a host kills its ranks within about 2 s, mostly in some ms
constexpr auto kAgentPatience = 1s;      // and its agent then has nothing more to do
constexpr auto kReasonPatience = 300ms;  // the reason that a host gives may come later than the end of its agent

// A name server may take seconds to say that it does not know a name. This machine knows its own names without asking,
// so a name that is not found in time is another machine's.
constexpr std::size_t kMostLookups = 64;  // at once
constexpr auto kLookupPatience = 1s;

/// Names that are looked up by threads, which may go on after their result has lost its use.
struct Lookups {
  explicit Lookups(const std::vector<std::string>& of) : names(of), here(of.size()) {}
  void perform() {
    for (std::size_t i = next++; i < names.size() && !is_late; i = next++) {
      here[i] = tcp::is_this_machine(names[i]);
      ++done;
    }
  }
  const std::vector<std::string> names;
  std::vector<std::atomic<bool>> here;  ///< [name] whether it is this machine's
  std::atomic<std::size_t> next = 0, done = 0;
  std::atomic<bool> is_late = false;
};

/// [name] whether it is this machine's.
std::vector<char> are_here(const std::vector<std::string>& names) {
  const auto lookups = std::make_shared<Lookups>(names);
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for this thread
  for (std::size_t i = 0; i < std::min(names.size(), kMostLookups); ++i) {
    std::thread([lookups] { lookups->perform(); }).detach();
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  nap_until(
      kLookupPatience, [&] { return lookups->done == names.size(); }, 1ms);
  lookups->is_late = true;
  std::vector<char> here;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool is_own_name = names[i] == "localhost" || names[i] == tcp::hostname();
    here.push_back(is_own_name || lookups->here[i] ? 1 : 0);
  }
  return here;
}

}  // namespace

std::string HostProcesses::interface_of_invited() const {
  return request_.joined != nullptr ? request_.joined->interface : interface_elsewhere(request_.interface);
}

Status HostProcesses::start(HostsRequest request) {
  request_ = std::move(request);
  JoinedHosts* const joined = request_.joined.get();
  const std::string program = resolve_program(request_.program);
  std::string first_other;
  const std::vector<char> here = joined == nullptr ? are_here(request_.hosts) : std::vector<char>{};
  for (const std::string& name : request_.hosts) {
    HostProcess& process = all_.emplace_back();
    process.name = name;
    process.is_here = joined != nullptr ? all_.size() == 1 : here[all_.size() - 1] != 0;
    if (!process.is_here && first_other.empty()) first_other = name;
  }
  told_ = served_ = Clock::now();
  if (joined != nullptr) {
    if (!joined->listener.socket.is_open()) {
      return error(Code::invalid_argument, "the ranks of a starter serve one job, and this is the second");
    }
    key_ = joined->key;
    listener_ = std::move(joined->listener);
    return start_process(all_.front(), program);
  }
  if (!first_other.empty()) TUTTI_RETURN_IF_ERROR(word_for_agent(request_.agent, program).status());
  TUTTI_ASSIGN_OR_RETURN(address_, address_for(request_.interface, first_other));
  TUTTI_ASSIGN_OR_RETURN(key_, tcp::draw_secret());
  TUTTI_ASSIGN_OR_RETURN(listener_, tcp::listen_on(address_));
  for (HostProcess& process : all_) TUTTI_RETURN_IF_ERROR(start_process(process, program));
  return {};
}

Status HostProcesses::start_process(HostProcess& process, const std::string& program) {
  SpawnRequest spawned;
  std::string word = program;
  if (!process.is_here) {
    TUTTI_ASSIGN_OR_RETURN(spawned.command, agent_words(request_.agent, process.name));
    TUTTI_ASSIGN_OR_RETURN(word, word_for_agent(request_.agent, program));
  }
  spawned.command.insert(spawned.command.end(), {word, "host"});
  spawned.environment = {"TUTTI_CONTROL", "TUTTI_RANK"};
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return error(Code::resource, "cannot make a pair of sockets: {}", std::strerror(errno));
  process.input = Descriptor(ends[0]);
  const Descriptor its_end(ends[1]);
  spawned.input = its_end.get();
  TUTTI_RETURN_IF_ERROR(process.log.open());
  spawned.output = process.log.descriptor();
  spawned.kept = request_.control_socket;
  spawned.death_signal = SIGTERM;
  auto pid = spawn(spawned);
  if (!pid.is_ok()) return error(pid.status().code(), "host {}: {}", process.name, pid.status().message());
  process.agent = pid.value();
  const std::string line = to_line({.key = tcp::to_text(key_),
                                    .address = listener_.address,
                                    .host = number_of(process),
                                    .interface = interface_of_invited(),
                                    .control = request_.control,
                                    .control_socket = request_.control_socket,
                                    .backends = folders_in(kBackendFolders),
                                    .transports = folders_in(kTransportFolders),
                                    .rails = request_.rails});
  process.heard = Clock::now();
  // If it is gone already, its end says so.
  (void)::send(process.input.get(), line.data(), line.size(), MSG_NOSIGNAL);
  return {};
}

std::string HostProcesses::agent_of(const HostProcess& process) const {
  if (process.is_here || request_.joined != nullptr) return "its process";
  return agent_text(request_.agent, process.name);
}

std::string HostProcesses::absence(int host) const {
  const std::string said = of(host).log.last_words();
  return fmt::format("{} {}{}", agent_of(of(host)), said.empty() ? "has said nothing" : "said: ", shown(said));
}

void HostProcesses::close_listener() {
  listener_.socket.close();
  guests_.clear();
}

int HostProcesses::open_group(std::vector<int> hosts, int log) {
  groups_[next_group_] = {.hosts = {hosts.begin(), hosts.end()}, .ended = {}, .news = {}, .log = log};
  return next_group_++;
}

void HostProcesses::close_group(int group) {
  hand_on_logs();
  groups_.erase(group);
}

std::optional<HostProcesses::News> HostProcesses::next_of(int group) {
  const auto found = groups_.find(group);
  if (found == groups_.end() || found->second.news.empty()) return std::nullopt;
  News news = std::move(found->second.news.front());
  found->second.news.pop_front();
  return news;
}

bool HostProcesses::has_ended(int group) const {
  const Group& one = groups_.at(group);
  return std::ranges::all_of(one.hosts, [&](int host) { return of(host).loss || one.ended.contains(host); });
}

void HostProcesses::hand_on_logs() {
  for (HostProcess& process : all_) {
    int log = request_.log;
    for (const auto& [_, group] : groups_) {
      if (group.hosts.contains(number_of(process))) log = group.log;
    }
    process.log.hand_on(log);
  }
}

void HostProcesses::add_to(std::vector<pollfd>& set) const {
  if (listener_.socket.is_open()) set.push_back({listener_.socket.get(), POLLIN, 0});
  for (const Guest& guest : guests_) {
    set.push_back(
        {guest.socket.get(), static_cast<short>(POLLIN | (guest.greeting.wants_to_write() ? POLLOUT : 0)), 0});
  }
  for (const HostProcess& process : all_) {
    if (process.stream.is_open()) set.push_back({process.stream.descriptor(), process.stream.events(), 0});
  }
}

void HostProcesses::service() {
  hand_on_logs();
  forgive_own_standstill();
  if (!is_ending_) {
    let_in();
    greet();
  }
  for (HostProcess& process : all_) {
    process.stream.go_on();
    hear(process);
  }
  if (is_ending_) return;
  if (Clock::now() - told_ > kAliveInterval) {
    told_ = Clock::now();
    for (HostProcess& process : all_) process.stream.send({"alive", ""});
  }
  look_for_losses();
}

void HostProcesses::let_in() {
  while (listener_.socket.is_open() && tcp::make_room(guests_)) {
    Descriptor socket = tcp::accept_from(listener_.socket.get());
    if (!socket.is_open()) return;
    const auto nonce = tcp::draw_nonce();
    if (!nonce.is_ok()) return;
    guests_.push_back({.socket = std::move(socket),
                       .greeting = tcp::Greeting::of_server(key_, nonce.value(), tcp::Role::machine),
                       .since = Clock::now()});
  }
}

void HostProcesses::greet() {
  for (auto guest = guests_.begin(); guest != guests_.end();) {
    tcp::Greeting& greeting = guest->greeting;
    if (greeting.step(guest->socket.get()) == tcp::Greeting::State::claimed) {
      greeting.answer(tcp::Verdict::welcome);
      greeting.step(guest->socket.get());
    }
    const bool is_done = greeting.state() == tcp::Greeting::State::done;
    const bool is_stranger =
        greeting.state() == tcp::Greeting::State::failed || Clock::now() - guest->since > kPatienceWithGuests;
    if (is_done) admit(*guest);
    guest = is_done || is_stranger ? guests_.erase(guest) : std::next(guest);
  }
}

void HostProcesses::admit(Guest& guest) {
  const tcp::Claim& claim = guest.greeting.claim();
  if (claim.from >= all_.size()) return;
  HostProcess& process = all_[claim.from];
  if (process.has_come || process.loss) return;
  process.has_come = true;
  process.stream = FrameStream(std::move(guest.socket), guest.greeting.session());
  process.heard = Clock::now();
}

void HostProcesses::hear(HostProcess& process) {
  for (;;) {
    auto frame = process.stream.next();
    if (!frame.is_ok()) return lose(number_of(process), frame.status());
    if (!frame.value()) return;
    process.heard = Clock::now();
    if (const Status taken = take(process, *std::move(frame).value()); !taken.is_ok()) lose(number_of(process), taken);
  }
}

Status HostProcesses::take(HostProcess& process, Frame frame) {
  if (frame.type == "hello") return take_hello(process, frame.text);
  if (frame.type == "failed") return error_from(frame.text);
  if (frame.type == "examined" || frame.type == "unexamined") return take_examined(process, std::move(frame));
  if (frame.type == "left") process.has_left = true;
  if (frame.type == "left" || frame.type == "alive") return {};
  return take_of_group(number_of(process), frame);
}

Status HostProcesses::take_hello(HostProcess& process, std::string_view text) {
  TUTTI_ASSIGN_OR_RETURN(HostHello hello, hello_from_json(text));
  if (hello.build != request_.build) {
    return error(Code::unavailable, "its build is '{}', and this one is '{}'", hello.build, request_.build);
  }
  process.hello = std::move(hello);
  return {};
}

Status HostProcesses::take_examined(HostProcess& process, Frame frame) {
  if (!process.was_asked || process.examined) {
    return error(Code::io, "it sends '{}', which no question has asked for", frame.type);
  }
  if (frame.type == "unexamined") {
    process.examined = error_from(frame.text);
  } else if (frame.text.size() > kMostExaminedBytes) {
    process.examined = error(Code::io, "its answer has more than {} KiB", kMostExaminedBytes >> 10);
  } else {
    process.examined = std::move(frame.text);
  }
  return {};
}

Status HostProcesses::take_of_group(int host, const Frame& frame) {
  if (!is_of_group(frame.type)) {
    return error(Code::io, "it sends '{}', which is no message of a host", shown(frame.type));
  }
  TUTTI_ASSIGN_OR_RETURN(GroupFrame in, group_frame_from(frame));
  const auto group = groups_.find(in.group);
  if (group == groups_.end() || !group->second.hosts.contains(host)) return {};  // it has been closed meanwhile
  if (frame.type == "ended") {
    group->second.ended.insert(host);
  } else {
    group->second.news.push_back({.host = host, .frame = std::move(in.frame)});
  }
  return {};
}

/// The time for which this process itself stood still is no silence of others.
void HostProcesses::forgive_own_standstill() {
  const auto stood = Clock::now() - std::exchange(served_, Clock::now());
  if (stood < kUsualSilence) return;
  for (HostProcess& process : all_) process.heard += stood;
}

void HostProcesses::look_for_losses() {
  const auto now = Clock::now();
  for (HostProcess& process : all_) {
    if (process.loss || process.has_left) continue;
    if (process.agent_status && process.stream.is_open() && now - process.agent_ended < kReasonPatience) continue;
    if (process.agent_status && (!process.has_come || *process.agent_status != 0 || !process.stream.is_open())) {
      const std::string words = process.has_come ? "" : process.log.last_words();
      lose(number_of(process),
           error(process.has_come ? Code::aborted : Code::unavailable, "{} {}{}{}{}", agent_of(process),
                 end_of(*process.agent_status), process.has_come ? "" : " before it had come",
                 words.empty() ? "" : ": ", shown(words)));
    } else if (process.has_come && !process.stream.is_open()) {
      lose(number_of(process), error(Code::aborted, "its connection has ended"));
    }
  }
}

void HostProcesses::lose(int host, const Status& why) {
  HostProcess& process = at(host);
  if (!process.loss) process.loss = why;
}

void HostProcesses::examine(int host, const std::string& question) {
  TUTTI_ASSERT(!at(host).was_asked, "host {} is asked a second time", name(host));
  at(host).was_asked = true;
  at(host).stream.send({"examine", question});
}

void HostProcesses::dismiss(int host) {
  at(host).stream.send({"leave", ""});
  at(host).input.close();
}

void HostProcesses::reap() {
  for (HostProcess& process : all_) {
    int status = 0;
    if (process.agent > 0 && !process.agent_status && ::waitpid(process.agent, &status, WNOHANG) == process.agent) {
      process.agent_status = status;
      process.agent_ended = Clock::now();
    }
  }
}

void HostProcesses::end() {
  if (is_ending_ || all_.empty()) return;
  is_ending_ = true;
  close_listener();
  for (HostProcess& process : all_) process.stream.send({"leave", ""});
  // One that cannot be reached learns from the end of its stdin, if its agent tells it, or from silence.
  for (HostProcess& process : all_) {
    if (!process.stream.is_open() || process.loss) process.input.close();
  }
  const auto end = Clock::now() + kHostsEndPatience;
  const auto is_talking = [&](const HostProcess& one) { return one.stream.is_open() && !one.loss; };
  while (std::ranges::any_of(all_, is_talking) && Clock::now() < end) {
    std::vector<pollfd> set;
    add_to(set);
    ::poll(set.data(), set.size(), 20);
    for (HostProcess& process : all_) process.stream.go_on();
    hand_on_logs();
  }
  for (HostProcess& process : all_) process.input.close();
  const auto all_gone = [&] {
    reap();
    hand_on_logs();
    return std::ranges::all_of(all_, [](const HostProcess& one) { return one.agent == 0 || one.agent_status; });
  };
  const bool are_gone = nap_until(kAgentPatience, all_gone);
  if (!are_gone) {
    for (const HostProcess& process : all_) {
      if (process.agent > 0 && !process.agent_status) ::kill(-process.agent, SIGKILL);
    }
    nap_until(kAgentPatience, all_gone);
  }
  hand_on_logs();
}

}  // namespace tutti::harness::hosts
