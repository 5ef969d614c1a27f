// SPDX-License-Identifier: Apache-2.0
#include "harness/hosts/hosts_starter.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "harness/launch/control_name.h"
#include "harness/machine/clock.h"
#include "harness/process/agent.h"
#include "harness/process/processes.h"
#include "harness/process/spawn.h"
#include "harness/process/waits.h"
#include "impl/bootstrap/meeting.h"
#include "impl/tcp/interface.h"
#include "impl/types/host_list.h"
#include "impl/types/names.h"

namespace tutti::harness::hosts {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kPatienceWithGuests = 2s;
constexpr auto kHostsEndPatience = 4s;  // a host kills its ranks within about 2 s, mostly in some ms
constexpr auto kAgentPatience = 1s;     // and its agent then has nothing more to do

}  // namespace

std::string HostsStarter::interface_of_invited() const {
  return across_.joined != nullptr ? across_.joined->interface : interface_elsewhere(across_.interface);
}

Status HostsStarter::start(const Job& job, const std::string& control_name, const std::string& directory, int log) {
  job_ = &job;
  directory_ = directory;
  log_ = log;
  control_ = control_name;
  JoinedHosts* const joined = across_.joined.get();
  const std::string program = resolve_program(job.program);
  std::string first_other;
  int first = 0;
  for (const JobHost& host : across_.hosts) {
    HostProcess& process = processes_.emplace_back();
    process.host = &host;
    process.first = first;
    process.is_here = joined != nullptr ? processes_.size() == 1 : tcp::is_this_machine(host.name);
    if (!process.is_here && first_other.empty()) first_other = host.name;
    first += host.ranks;
  }
  children_.resize(static_cast<std::size_t>(job.ranks));
  states_.assign(children_.size(), 'S');
  for (std::size_t rank = 0; rank < children_.size(); ++rank) children_[rank].rank = static_cast<int>(rank);
  started_ = told_ = served_ = Clock::now();
  if (joined != nullptr) {
    if (!joined->listener.socket.is_open()) {
      return error(Code::invalid_argument, "the ranks of a starter serve one job, and this is the second");
    }
    key_ = joined->key;
    listener_ = std::move(joined->listener);
    return start_process(processes_.front(), {program, "host"});
  }
  if (!first_other.empty()) TUTTI_RETURN_IF_ERROR(check_words(program));
  TUTTI_ASSIGN_OR_RETURN(address_, address_for(across_.interface, first_other));
  TUTTI_ASSIGN_OR_RETURN(key_, tcp::draw_secret());
  TUTTI_ASSIGN_OR_RETURN(listener_, tcp::listen_on(address_));
  for (HostProcess& process : processes_) TUTTI_RETURN_IF_ERROR(start_process(process, {program, "host"}));
  return {};
}

Status HostsStarter::start_process(HostProcess& process, const std::vector<std::string>& program) {
  SpawnRequest request;
  if (!process.is_here) {
    TUTTI_ASSIGN_OR_RETURN(request.command, agent_words(across_.agent, process.host->name));
  }
  request.command.insert(request.command.end(), program.begin(), program.end());
  request.environment = {"TUTTI_CONTROL", "TUTTI_RANK"};
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return error(Code::resource, "cannot make a pair of sockets: {}", std::strerror(errno));
  process.input = Descriptor(ends[0]);
  const Descriptor its_end(ends[1]);
  request.input = its_end.get();
  TUTTI_RETURN_IF_ERROR(process.log.open());
  request.output = process.log.descriptor();
  request.kept = across_.joined != nullptr ? job_->control_socket : -1;
  request.death_signal = SIGTERM;
  auto pid = spawn(request);
  if (!pid.is_ok()) {
    return error(pid.status().code(), "host {}: {}", process.host->name, pid.status().message());
  }
  process.agent = pid.value();
  const std::string line = to_line({.key = tcp::to_text(key_),
                                    .address = listener_.address,
                                    .host = static_cast<int>(&process - processes_.data()),
                                    .interface = interface_of_invited(),
                                    .control = request.kept < 0 ? control_ : job_->control,
                                    .control_socket = request.kept,
                                    .backends = folders_in(kBackendFolders),
                                    .transports = folders_in(kTransportFolders)});
  process.heard = Clock::now();
  // If it is gone already, its end says so.
  (void)::send(process.input.get(), line.data(), line.size(), MSG_NOSIGNAL);
  return {};
}

const HostsStarter::HostProcess& HostsStarter::process_of(int rank) const {
  const auto after = std::ranges::find_if(processes_, [&](const HostProcess& one) { return one.first > rank; });
  return *std::prev(after);
}

RankPlace HostsStarter::place_of(int rank) const {
  const HostProcess& process = process_of(rank);
  return {.host = static_cast<int>(&process - processes_.data()), .local = rank - process.first};
}

std::string HostsStarter::host_name(int rank) const { return process_of(rank).host->name; }

std::optional<char> HostsStarter::state_of(int rank) const {
  if (rank < 0) return {};
  const HostProcess& process = process_of(rank);
  const char state = states_[static_cast<std::size_t>(rank)];
  const bool is_heard = !has_given_jobs_ || process.has_ended || Clock::now() - process.heard < kUsualSilence;
  return is_heard || state == 'X' ? state : kUnheard;
}

std::string HostsStarter::name_of(const HostProcess& process) const {
  const int last = process.first + process.host->ranks - 1;
  return last == process.first ? fmt::format("{} (rank {})", process.host->name, last)
                               : fmt::format("{} (ranks {} to {})", process.host->name, process.first, last);
}

std::string HostsStarter::agent_of(const HostProcess& process) const {
  if (process.is_here || across_.joined != nullptr) return "its process";
  return agent_text(across_.agent, process.host->name);
}

void HostsStarter::hand_on_logs() {
  for (HostProcess& process : processes_) process.log.hand_on(log_);
}

bool HostsStarter::do_all_await_ranks() const {
  return std::ranges::all_of(processes_, [](const HostProcess& one) { return one.awaits_ranks; });
}

bool HostsStarter::have_all_come() const {
  return std::ranges::all_of(processes_, [](const HostProcess& one) { return one.hello.has_value(); });
}

void HostsStarter::add_to(std::vector<pollfd>& set) const {
  if (listener_.socket.is_open()) set.push_back({listener_.socket.get(), POLLIN, 0});
  for (const Guest& guest : guests_) {
    set.push_back(
        {guest.socket.get(), static_cast<short>(POLLIN | (guest.greeting.wants_to_write() ? POLLOUT : 0)), 0});
  }
  for (const HostProcess& process : processes_) {
    if (process.stream.is_open()) set.push_back({process.stream.descriptor(), process.stream.events(), 0});
  }
}

void HostsStarter::service(Connections::Events& events, const Board& board) {
  hand_on_logs();
  forgive_own_standstill();
  if (!is_ending_) {
    let_in();
    greet();
  }
  for (HostProcess& process : processes_) {
    process.stream.go_on();
    hear(process, events, board);
  }
  if (is_ending_) return;
  if (!has_given_jobs_ && have_all_come()) {
    events.on_hosts(described());
    give_jobs();
  }
  if (job_->start && command_.all().empty() && do_all_await_ranks()) {
    if (const Status started = start_command(); !started.is_ok()) events.on_unfit(started);
  }
  if (Clock::now() - told_ > kAliveInterval) {
    told_ = Clock::now();
    for (HostProcess& process : processes_) process.stream.send({"alive", ""});
  }
  look_for_losses(events);
}

void HostsStarter::let_in() {
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

void HostsStarter::greet() {
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

void HostsStarter::admit(Guest& guest) {
  const tcp::Claim& claim = guest.greeting.claim();
  if (claim.from >= processes_.size()) return;
  HostProcess& process = processes_[claim.from];
  if (process.has_come) return;
  process.has_come = true;
  process.stream = FrameStream(std::move(guest.socket), guest.greeting.session());
  process.heard = Clock::now();
}

void HostsStarter::hear(HostProcess& process, Connections::Events& events, const Board& board) {
  for (;;) {
    const auto frame = process.stream.next();
    if (!frame.is_ok()) return lose(process, frame.status(), events);
    if (!frame.value()) return;
    process.heard = Clock::now();
    take(process, *frame.value(), events, board);
  }
}

void HostsStarter::take(HostProcess& process, const Frame& frame, Connections::Events& events, const Board& board) {
  const std::string_view text = frame.text;
  if (frame.type == "hello") {
    auto hello = hello_from_json(text);
    if (!hello.is_ok()) return lose(process, hello.status(), events);
    if (hello.value().build != across_.build) {
      return lose(
          process,
          error(Code::unavailable, "its build is '{}', and this one is '{}'", hello.value().build, across_.build),
          events);
    }
    process.hello = std::move(hello).value();
  } else if (frame.type == "status") {
    if (const Status status = take_reports(process, frame.text, board); !status.is_ok()) lose(process, status, events);
  } else if (frame.type == "failed") {
    lose(process, error_from(frame.text), events);
  } else if (frame.type == "awaits") {
    process.awaits_ranks = true;
  } else if (frame.type == "ended") {
    process.has_ended = true;
  } else if (const Status status = take_event(process, frame, events); !status.is_ok()) {
    lose(process, status, events);
  }
}

Status HostsStarter::take_event(const HostProcess& process, const Frame& frame, Connections::Events& events) {
  TUTTI_ASSIGN_OR_RETURN(const RankEvent event, event_from_text(frame.type, frame.text));
  const int rank = event.rank;
  if (rank < process.first || rank >= process.first + process.host->ranks)
    return error(Code::io, "it speaks of rank {}, which it has not", rank);
  Child& child = children_[static_cast<std::size_t>(rank)];
  if (frame.type == "up") {
    child.pid = event.numbers[0];
    events.on_hello(rank, child.pid);
  } else if (frame.type == "from") {
    const std::size_t line = event.rest.find('\n');
    if (line == std::string_view::npos)
      return error(Code::io, "what rank {} says has no type: '{}'", rank, shown(event.rest));
    events.on_frame(rank, {std::string(event.rest.substr(0, line)), std::string(event.rest.substr(line + 1))});
  } else if (frame.type == "closed") {
    events.on_closed(rank);
  } else if (frame.type == "standing") {
    TUTTI_ASSIGN_OR_RETURN(RankStanding standing, standing_from_json(event.rest));
    standings_.resize(children_.size(), {.text = "which its host has not reported"});
    standings_[static_cast<std::size_t>(rank)] = std::move(standing);
  } else if (frame.type == "garbage") {
    events.on_garbage(rank, event.numbers[0], std::string(event.rest));
  } else {  // exit
    child.pid = event.numbers[0];
    child.wait_status = event.numbers[1];
    states_[static_cast<std::size_t>(rank)] = 'X';
  }
  return {};
}

Status HostsStarter::take_reports(const HostProcess& process, std::string_view lines, const Board& board) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<RankReport> reports, reports_from_lines(lines, process.host->ranks));
  const std::int64_t now = monotonic_ns();
  int rank = process.first;
  for (const RankReport& one : reports) {
    RankStatus& status = board.status(rank);
    status.case_index.store(one.case_index, std::memory_order_relaxed);
    status.activity.store(one.activity, std::memory_order_relaxed);
    status.operation.store(one.operation, std::memory_order_relaxed);
    status.pending_since_ns.store(one.waited_ns == 0 ? 0 : now - one.waited_ns, std::memory_order_release);
    status.granted_ns.store(one.granted_ns, std::memory_order_release);  // last: see announced_on
    char& known = states_[static_cast<std::size_t>(rank++)];
    if (known != 'X') known = one.state;
  }
  return {};
}

std::map<std::string, int> HostsStarter::ranks_on_kernels() const {
  std::map<std::string, int> on_kernel;
  for (const HostProcess& process : processes_) on_kernel[process.hello->kernel] += process.host->ranks;
  return on_kernel;
}

std::vector<HostInfo> HostsStarter::described() const {
  std::vector<HostInfo> all;
  for (const HostProcess& process : processes_) {
    all.push_back({.host = process.host->name,
                   .name = process.hello->name,
                   .description = process.hello->description,
                   .fingerprint = process.hello->fingerprint});
  }
  return all;
}

void HostsStarter::give_jobs() {
  has_given_jobs_ = true;
  for (HostProcess& process : processes_) process.heard = Clock::now();
  listener_.socket.close();  // nobody else is expected
  guests_.clear();
  const std::map<std::string, int> on_kernel = ranks_on_kernels();
  std::map<std::string, int> before;
  for (HostProcess& process : processes_) {
    const std::string& kernel = process.hello->kernel;
    HostJob job{.ranks = job_->ranks,
                .first = process.first,
                .here = process.host->ranks,
                .started = across_.joined != nullptr ? 1
                           : job_->start             ? 0
                                                     : process.host->ranks,
                .arguments = job_->told,
                .domain_bytes = process.host->domain_bytes,
                .timeout_ns = std::chrono::nanoseconds(job_->timeout).count(),
                .place = {.interface = process.hello->interface,
                          .exchange_address = processes_.front().hello->exchange_address,
                          .domain_address = processes_.front().hello->domain_address,
                          .first_on_cores = before[kernel],
                          .ranks_on_cores = on_kernel.at(kernel)}};
    before[kernel] += process.host->ranks;
    process.stream.send({"payload", job_->payload});
    job.launcher_ns = monotonic_ns();
    process.stream.send({"job", to_json(job)});
  }
}

Status HostsStarter::start_command() {
  const std::map<std::string, int> on_kernel = ranks_on_kernels();
  bool is_crowded = false;
  std::vector<int> firsts;
  std::vector<NamedHost> hosts;
  for (const HostProcess& process : processes_) {
    is_crowded |= on_kernel.at(process.hello->kernel) > process.hello->cores;
    firsts.push_back(process.first);
    hosts.push_back({.name = process.host->name, .slots = process.host->ranks});
  }
  const StartValues values{.ranks = job_->ranks,
                           .directory = directory_,
                           .is_crowded = is_crowded,
                           .hosts = to_text(hosts),
                           .are_pretended = on_kernel.size() < processes_.size(),
                           .agent = across_.agent,
                           .address = address_,
                           .subnet = tcp::subnet_of(address_)};
  TUTTI_RETURN_IF_ERROR(command_.start_command(*job_, control_text_of(control_, firsts), values, log_));
  children_.push_back(command_.all().front());
  return {};
}

void HostsStarter::reap() {
  for (HostProcess& process : processes_) {
    int status = 0;
    if (process.agent > 0 && !process.agent_status && ::waitpid(process.agent, &status, WNOHANG) == process.agent) {
      process.agent_status = status;
      process.agent_ended = Clock::now();
    }
  }
  command_.reap();
  if (!command_.all().empty()) children_.back() = command_.all().front();
}

bool HostsStarter::have_all_exited() const {
  return std::ranges::all_of(children_, [](const Child& child) { return child.wait_status.has_value(); });
}

void HostsStarter::end() {
  if (is_ending_ || processes_.empty()) return;
  is_ending_ = true;
  listener_.socket.close();
  guests_.clear();
  command_.end();
  for (HostProcess& process : processes_) process.stream.send({"end", ""});
  // One that cannot be reached learns from the end of its stdin, if its agent tells it, or from silence.
  for (HostProcess& process : processes_) {
    if (!process.stream.is_open() || process.is_lost) process.input.close();
  }
  const auto end = Clock::now() + kHostsEndPatience;
  const auto is_talking = [&](const HostProcess& one) { return one.stream.is_open() && !one.is_lost; };
  while (std::ranges::any_of(processes_, is_talking) && Clock::now() < end) {
    std::vector<pollfd> set;
    add_to(set);
    ::poll(set.data(), set.size(), 20);
    for (HostProcess& process : processes_) process.stream.go_on();
    hand_on_logs();
  }
  for (HostProcess& process : processes_) process.input.close();
  const auto all_gone = [&] {
    reap();
    hand_on_logs();
    return std::ranges::all_of(processes_, [](const HostProcess& one) { return one.agent == 0 || one.agent_status; });
  };
  const bool are_gone = nap_until(kAgentPatience, all_gone);
  if (!are_gone) {
    for (const HostProcess& process : processes_) {
      if (process.agent > 0 && !process.agent_status) ::kill(-process.agent, SIGKILL);
    }
    nap_until(kAgentPatience, all_gone);
  }
  hand_on_logs();
}

}  // namespace tutti::harness::hosts
