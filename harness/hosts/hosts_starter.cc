// SPDX-License-Identifier: Apache-2.0
#include "harness/hosts/hosts_starter.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <poll.h>
#include <utility>

#include "harness/launch/control_name.h"
#include "harness/machine/clock.h"
#include "harness/process/processes.h"
#include "impl/bootstrap/meeting.h"
#include "impl/tcp/interface.h"
#include "impl/types/host_list.h"
#include "impl/types/names.h"

namespace tutti::harness::hosts {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kGroupEndPatience = 4s;  // a host kills its ranks within about 2 s, mostly in some ms
constexpr int kListenTick = 20;         // ms

}  // namespace

Status HostsStarter::start(const Job& job, const std::string& control_name, const std::string& directory, int log) {
  job_ = &job;
  directory_ = directory;
  log_ = log;
  control_ = control_name;
  make_members();
  children_.resize(static_cast<std::size_t>(job.ranks));
  states_.assign(children_.size(), 'S');
  for (std::size_t rank = 0; rank < children_.size(); ++rank) children_[rank].rank = static_cast<int>(rank);
  started_ = Clock::now();
  group_ = processes_.open_group(numbers_, log);
  if (own_ == nullptr) return {};
  HostsRequest request{.hosts = {},
                       .agent = across_.agent,
                       .interface = across_.interface,
                       .build = across_.build,
                       .program = job.program,
                       .joined = across_.joined,
                       .log = log};
  for (const JobHost& host : across_.hosts) request.hosts.push_back(host.name);
  if (across_.joined != nullptr) {
    request.control = job.control;
    request.control_socket = job.control_socket;
  }
  return own_->start(std::move(request));
}

void HostsStarter::make_members() {
  int first = 0;
  for (const JobHost& host : across_.hosts) {
    const auto index = members_.size();
    if (own_ != nullptr) numbers_.push_back(static_cast<int>(index));
    members_.push_back({.host = &host, .number = numbers_[index], .first = first});
    first += host.ranks;
  }
}

const HostsStarter::Member& HostsStarter::member_of(int rank) const {
  const auto after = std::ranges::find_if(members_, [&](const Member& one) { return one.first > rank; });
  return *std::prev(after);
}

RankPlace HostsStarter::place_of(int rank) const {
  const Member& member = member_of(rank);
  return {.host = number_of(member), .local = rank - member.first};
}

std::string HostsStarter::host_name(int rank) const { return member_of(rank).host->name; }

std::optional<char> HostsStarter::state_of(int rank) const {
  if (rank < 0) return {};
  const Member& member = member_of(rank);
  const char state = states_[static_cast<std::size_t>(rank)];
  const bool is_heard =
      !has_asked_ || processes_.has_left(member.number) || was_heard(member, kUsualSilence) || state == 'X';
  return is_heard ? state : kUnheard;
}

bool HostsStarter::was_heard(const Member& member, std::chrono::nanoseconds within) const {
  return Clock::now() - std::max(processes_.heard(member.number), asked_) < within;
}

std::string HostsStarter::name_of(const Member& member) const {
  const int last = member.first + member.host->ranks - 1;
  return last == member.first ? fmt::format("{} (rank {})", member.host->name, last)
                              : fmt::format("{} (ranks {} to {})", member.host->name, member.first, last);
}

bool HostsStarter::do_all_await_ranks() const {
  return std::ranges::all_of(members_, [](const Member& one) { return one.awaits_ranks; });
}

bool HostsStarter::have_all_come() const {
  return std::ranges::all_of(members_, [&](const Member& one) { return processes_.hello(one.number).has_value(); });
}

void HostsStarter::add_to(std::vector<pollfd>& set) const {
  if (own_ != nullptr) own_->add_to(set);
}

void HostsStarter::service(Connections::Events& events, const Board& board) {
  if (own_ != nullptr) own_->service();
  take_news(events, board);
  if (is_ending_) return;
  if (!has_asked_ && have_all_come()) {
    events.on_hosts(described());
    ask();
  }
  if (job_->start && command_.all().empty() && do_all_await_ranks()) {
    if (const Status started = start_command(); !started.is_ok()) events.on_unfit(started);
  }
  look_for_losses(events);
}

void HostsStarter::listen() {
  std::vector<pollfd> set;
  processes_.add_to(set);
  ::poll(set.data(), set.size(), kListenTick);
  processes_.reap();
  processes_.service();
}

void HostsStarter::take_news(Connections::Events& events, const Board& board) {
  while (const auto news = processes_.next_of(group_)) {
    Member& member = *std::ranges::find(members_, news->host, &Member::number);
    if (const Status status = take(member, news->frame, events, board); !status.is_ok()) {
      processes_.lose(member.number, status);
      lose(member, status, events);
    }
  }
}

Status HostsStarter::take(Member& member, const Frame& frame, Connections::Events& events, const Board& board) {
  if (frame.type == "status") return take_reports(member, frame.text, board);
  if (frame.type == "awaits") {
    member.awaits_ranks = true;
  } else if (frame.type == "calls" || frame.type == "stack" || frame.type == "recalled") {
    return take_recalled(member, frame);
  } else if (frame.type == "unable") {
    lose(member, error_from(frame.text), events);
  } else if (frame.type == "meets") {
    TUTTI_ASSIGN_OR_RETURN(const MeetingPlace place, meeting_place_from_json(frame.text));
    if (has_given_jobs_ || number_of(member) != 0)
      return error(Code::io, "it says where the group meets, which this launcher has not asked");
    give_jobs(place);
  } else {
    return take_event(member, frame, events);
  }
  return {};
}

Result<RankEvent> HostsStarter::event_of(const Member& member, const Frame& frame) {
  TUTTI_ASSIGN_OR_RETURN(RankEvent event, event_from_text(frame.type, frame.text));
  if (event.rank < member.first || event.rank >= member.first + member.host->ranks)
    return error(Code::io, "it speaks of rank {}, which it has not", event.rank);
  return event;
}

Status HostsStarter::take_event(const Member& member, const Frame& frame, Connections::Events& events) {
  TUTTI_ASSIGN_OR_RETURN(const RankEvent event, event_of(member, frame));
  const int rank = event.rank;
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

Status HostsStarter::take_reports(const Member& member, std::string_view lines, const Board& board) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<RankReport> reports, reports_from_lines(lines, member.host->ranks));
  const std::int64_t now = monotonic_ns();
  int rank = member.first;
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
  for (const Member& member : members_) on_kernel[processes_.hello(member.number)->kernel] += member.host->ranks;
  return on_kernel;
}

std::vector<HostInfo> HostsStarter::described() const {
  std::vector<HostInfo> all;
  for (const Member& member : members_) {
    const HostHello& hello = *processes_.hello(member.number);
    all.push_back({.host = member.host->name,
                   .name = hello.name,
                   .description = hello.description,
                   .fingerprint = hello.fingerprint});
  }
  return all;
}

void HostsStarter::ask() {
  has_asked_ = true;
  asked_ = Clock::now();
  if (own_ != nullptr) own_->close_listener();  // no other process is expected
  send(members_.front(), {"meet", across_.rail < 0 ? "" : address_of(members_.front())});
}

const std::string& HostsStarter::address_of(const Member& member) const {
  const HostHello& hello = *processes_.hello(member.number);
  if (across_.rail < 0) return hello.interface;
  TUTTI_ASSERT(static_cast<std::size_t>(across_.rail) < hello.rails.size(), "rail {} of {}", across_.rail,
               hello.rails.size());
  return hello.rails[static_cast<std::size_t>(across_.rail)].address;
}

void HostsStarter::give_jobs(const MeetingPlace& place) {
  has_given_jobs_ = true;
  const std::map<std::string, int> on_kernel = ranks_on_kernels();
  std::map<std::string, int> before;
  for (const Member& member : members_) {
    const HostHello& hello = *processes_.hello(member.number);
    HostJob job{.ranks = job_->ranks,
                .host = number_of(member),
                .first = member.first,
                .here = member.host->ranks,
                .started = across_.joined != nullptr ? 1
                           : job_->start             ? 0
                                                     : member.host->ranks,
                .control = control_,
                .arguments = job_->told,
                .domain_bytes = member.host->domain_bytes,
                .timeout_ns = std::chrono::nanoseconds(job_->timeout).count(),
                .place = {.interface = address_of(member),
                          .exchange_address = place.exchange_address,
                          .domain_address = place.domain_address,
                          .first_on_cores = before[hello.kernel],
                          .ranks_on_cores = on_kernel.at(hello.kernel)}};
    before[hello.kernel] += member.host->ranks;
    send(member, {"payload", job_->payload});
    job.launcher_ns = monotonic_ns();
    send(member, {"job", to_json(job)});
  }
}

Status HostsStarter::start_command() {
  const std::map<std::string, int> on_kernel = ranks_on_kernels();
  bool is_crowded = false;
  std::vector<int> firsts;
  std::vector<NamedHost> hosts;
  for (const Member& member : members_) {
    const HostHello& hello = *processes_.hello(member.number);
    is_crowded |= on_kernel.at(hello.kernel) > hello.cores;
    firsts.push_back(member.first);
    hosts.push_back({.name = member.host->name, .slots = member.host->ranks});
  }
  const StartValues values{.ranks = job_->ranks,
                           .directory = directory_,
                           .is_crowded = is_crowded,
                           .hosts = to_text(hosts),
                           .are_pretended = on_kernel.size() < members_.size(),
                           .agent = across_.agent,
                           .address = processes_.address(),
                           .subnet = tcp::subnet_of(processes_.address())};
  TUTTI_RETURN_IF_ERROR(command_.start_command(*job_, control_text_of(control_, firsts), values, log_));
  children_.push_back(command_.all().front());
  return {};
}

void HostsStarter::reap() {
  if (own_ != nullptr) own_->reap();
  command_.reap();
  if (!command_.all().empty()) children_.back() = command_.all().front();
}

bool HostsStarter::have_all_exited() const {
  return std::ranges::all_of(children_, [](const Child& child) { return child.wait_status.has_value(); });
}

void HostsStarter::end() {
  if (is_ending_ || group_ < 0) return;
  is_ending_ = true;
  command_.end();
  if (own_ != nullptr) {
    own_->end();
  } else {
    end_group();
  }
}

void HostsStarter::end_group() {
  for (const Member& member : members_) {
    if (processes_.loss(member.number)) {
      processes_.dismiss(member.number);
    } else {
      send(member, {"end", ""});
    }
  }
  for (const auto end = Clock::now() + kGroupEndPatience; !processes_.has_ended(group_) && Clock::now() < end;) {
    listen();
  }
  for (const Member& member : members_) {
    if (processes_.loss(member.number) || processes_.has_ended_on(group_, member.number)) continue;
    processes_.lose(member.number,
                    error(Code::aborted, "it has not ended its ranks within {} s", kGroupEndPatience.count()));
    processes_.dismiss(member.number);
  }
}

}  // namespace tutti::harness::hosts
