// SPDX-License-Identifier: Apache-2.0
#include "harness/hosts/joined_job.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness/cases/transports.h"
#include "harness/hosts/awaited.h"
#include "harness/launch/control_name.h"
#include "harness/launch/limits.h"
#include "harness/machine/allowed_cores.h"
#include "harness/machine/clock.h"
#include "harness/machine/machine.h"
#include "harness/process/processes.h"
#include "harness/text/json_reader.h"
#include "impl/bootstrap/init.h"
#include "impl/tcp/interface.h"
#include "impl/transports/hosts_domain.h"

namespace tutti::harness::hosts {
namespace {

using namespace std::chrono_literals;

constexpr const char* kAwaited = "awaited";  // to process 0: for whom late ranks of a host wait
constexpr int kTickMs = 100;                 // of the look at the board
/// By how much a process other than 0 is later to judge the board: process 0 tells it, unless it is the one that
/// stands.
constexpr auto kPatienceWithProcess0 = std::chrono::seconds(2);
/// By how much later a rank of another host is said to be the one that is waited for: that host may find one of its
/// own, and may be busier.
constexpr auto kPatienceWithOtherHosts = std::chrono::seconds(3);
/// For how long another host's word counts for whom its ranks wait. It repeats it as long as they do.
constexpr auto kAwaitedCounts = std::chrono::seconds(1);

/// What a process tells the others of itself. Any process that knows the name of the meeting may come to it.
struct SelfPortrait {
  std::string arguments = {};
  std::string hostname = {};
  std::vector<int> cores = {};  ///< that it may use
  MemoryLeft memory = {};
  std::string kernel = {};
  pid_t pid = 0;
};
std::string to_json(const SelfPortrait& one) {
  return nlohmann::json{{"arguments", one.arguments},
                        {"hostname", one.hostname},
                        {"cores", one.cores},
                        {"memory_left", one.memory.bytes},
                        {"memory_limit", one.memory.of},
                        {"memory_is_of_cgroup", one.memory.is_of_cgroup},
                        {"kernel", one.kernel},
                        {"pid", one.pid}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}
Result<SelfPortrait> portrait_from_json(std::string_view text) {
  const auto read = [](const nlohmann::json& said) -> Result<SelfPortrait> {
    return SelfPortrait{.arguments = said.value("arguments", ""),
                        .hostname = said.value("hostname", ""),
                        .cores = said.value("cores", std::vector<int>()),
                        .memory = {.bytes = said.value("memory_left", MemoryLeft().bytes),
                                   .of = said.value("memory_limit", std::int64_t{0}),
                                   .is_of_cgroup = said.value("memory_is_of_cgroup", false)},
                        .kernel = said.value("kernel", ""),
                        .pid = said.value("pid", pid_t{0})};
  };
  return read_json(Code::mismatch, "what it says of itself", text, read);
}

}  // namespace

Status JoinedJob::place_ranks() {
  TopologySpec spec{.ranks_as = is_alone() ? RanksAs::threads : RanksAs::processes};
  if (across_) {
    spec.transport = transport_between_hosts().name;
    spec.options.hosts = across_->hosts.named();
  }
  TUTTI_ASSIGN_OR_RETURN(topology_, topology_of(spec, ranks(), {}));
  return {};
}

// Behind the domain, where that is in memory that is made for it.
std::size_t JoinedJob::board_offset() const {
  const std::size_t bytes =
      across_ ? bytes_of_host(topology_->domain_shape(0), across_->hosts.own) : topology_->shared_bytes(0);
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

// Behind the board.
std::size_t JoinedJob::told_offset() const {
  constexpr std::size_t kAlignment = alignof(std::atomic<std::uint32_t>);
  return board_offset() + (Board::bytes(ranks()) + kAlignment - 1) / kAlignment * kAlignment;
}
std::size_t JoinedJob::memory_bytes() const { return told_offset() + sizeof(std::atomic<std::uint32_t>); }

bool JoinedJob::is_first_to_tell() const {
  constexpr std::chrono::milliseconds kToTell(300);
  if (!request_.world.started_by.starts_with("mpirun")) return true;  // mpirun's processes write into one stream
  auto& told = *reinterpret_cast<std::atomic<std::uint32_t>*>(static_cast<std::byte*>(mapping_.data()) + told_offset());
  const bool is_elsewhere = across_ && across_->hosts.own > 0;  // whose word comes through process 0
  if (told.exchange(1) == 0 && !is_elsewhere) return true;
  std::this_thread::sleep_for(kToTell);
  return false;
}

Board JoinedJob::board() const { return Board(static_cast<std::byte*>(mapping_.data()) + board_offset(), ranks()); }

Result<std::unique_ptr<Domain>> JoinedJob::open_domain() const {
  const DomainShape shape = topology_->domain_shape(0);
  if (!across_) return topology_->transport->open(shape, {.memory = memory_.get()});
  const Across across{.host = across_->hosts.own,
                      .interface = across_->place.interface,
                      .address = across_->place.domain_address,
                      .listener = across_->listeners.domain.get(),
                      .key = across_->place.key};
  return topology_->transport->open(
      shape, {.memory = memory_.get(), .rank = process(), .timeout = request_.timeout, .across = &across});
}

Status JoinedJob::introduce(const std::vector<Introduction>& all) {
  // As the others hear it: what is no UTF-8 is replaced there.
  TUTTI_ASSIGN_OR_RETURN(const SelfPortrait here,
                         portrait_from_json(to_json(SelfPortrait{.arguments = request_.arguments})));
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto said = portrait_from_json(all[i].text);
    if (!said.is_ok()) {
      return error(Code::mismatch, "rank {} (pid {}) is another program: {}", i, all[i].pid, said.status().message());
    }
    SelfPortrait& one = said.value();
    if (one.arguments != here.arguments) {
      return error(Code::mismatch, "rank {} (pid {}) was started with '{}', rank 0 with '{}'", i, all[i].pid,
                   shown(one.arguments), shown(here.arguments));
    }
    participants_.push_back({.pid = all[i].pid,
                             .hostname = std::move(one.hostname),
                             .cores = std::move(one.cores),
                             .memory = one.memory,
                             .kernel = std::move(one.kernel)});
  }
  return {};
}

Status JoinedJob::meet_here(const World& here, const std::string& text, bool introduces) {
  TUTTI_RETURN_IF_ERROR(place_ranks());
  const auto agree = [&](std::span<const Introduction> all) -> Result<std::size_t> {
    if (introduces) TUTTI_RETURN_IF_ERROR(introduce({all.begin(), all.end()}));
    TUTTI_RETURN_IF_ERROR(check_room("tutti-job", memory_bytes()));
    return memory_bytes();
  };
  if (here.processes == 1) {
    TUTTI_RETURN_IF_ERROR(agree(std::vector{Introduction{.pid = ::getpid(), .text = text}}).status());
    TUTTI_ASSIGN_OR_RETURN(memory_, make_segment("tutti-job", memory_bytes()));
    return {};
  }
  TUTTI_ASSIGN_OR_RETURN(Meeting meeting,
                         meet({.world = here, .text = text, .timeout = request_.timeout, .memory_bytes = agree}));
  if (here.process != 0 && introduces) TUTTI_RETURN_IF_ERROR(introduce(meeting.all));
  memory_ = std::move(meeting.memory);
  for (std::size_t i = 0; i < meeting.links.size(); ++i) {
    if (!meeting.links[i].is_open()) continue;
    // The others of this host have one link, to its first process.
    const std::size_t process = here.process == 0 ? first_here() + i : first_here();
    links_.push_back({.socket = std::move(meeting.links[i]), .process = process, .passes_on = here.process != 0});
  }
  return {};
}

Status JoinedJob::meet_others(const std::string& text) {
  const World& world = request_.world;
  if (request_.ranks_here > 1) {
    return error(Code::unavailable,
                 "this job spans several hosts ({}), and a process has {} ranks: there each has one, so start as many "
                 "processes as ranks",
                 world.spread, request_.ranks_here);
  }
  TUTTI_ASSIGN_OR_RETURN(
      const HostsMeeting meeting,
      by_environment(
          {.world = world, .build = request_.build, .arguments = request_.arguments, .timeout = request_.timeout}));
  TUTTI_ASSIGN_OR_RETURN(across_, meet_across(meeting, text));
  std::vector<Introduction> all;
  for (const std::string& one : across_->texts) {
    const auto said = portrait_from_json(one);
    all.push_back({.pid = said.is_ok() ? said.value().pid : 0, .text = one});
  }
  TUTTI_RETURN_IF_ERROR(introduce(all));
  for (RunnerSocket& one : across_->between) {
    links_.push_back({.stream = {std::move(one.socket), one.session},
                      .process = static_cast<std::size_t>(one.runner),
                      .passes_on = true});
  }
  World here = world;
  here.process = world.local_process;
  here.processes = world.local_processes;
  here.meeting = control_name_of(world.meeting, world.first_here());
  return meet_here(here, text, false);
}

Result<std::unique_ptr<JoinedJob>> JoinedJob::join(const JoinRequest& request) {
  std::unique_ptr<JoinedJob> job(new JoinedJob(request));
  const std::string text = to_json(SelfPortrait{.arguments = request.arguments,
                                                .hostname = tcp::hostname(),
                                                .cores = allowed_cores(),
                                                .memory = harness::memory_left(),
                                                .kernel = running_kernel(),
                                                .pid = ::getpid()});
  TUTTI_RETURN_IF_ERROR(prepare_limits(needs_of_joining(request.world.processes, request.ranks_here)));
  job->starter_ = Starter::of_this_process();
  TUTTI_RETURN_IF_ERROR(request.world.spans_hosts() ? job->meet_others(text)
                                                    : job->meet_here(request.world, text, true));
  TUTTI_ASSIGN_OR_RETURN(job->mapping_, Mapping::map(job->memory_.get(), job->memory_bytes()));
  return job;
}

JoinedJob::~JoinedJob() { finish(); }

std::vector<int> JoinedJob::host_of_ranks() const {
  std::vector<int> hosts;
  for (int rank = 0; rank < ranks(); ++rank) hosts.push_back(topology_->hosts.host_of(rank));
  return hosts;
}

std::vector<int> JoinedJob::cores() const {
  std::vector<int> all;
  for (const Participant& one : participants_) {
    if (is_on_own_kernel(one)) all.insert(all.end(), one.cores.begin(), one.cores.end());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

bool JoinedJob::is_on_own_kernel(const Participant& one) const {
  return !across_ || one.kernel == participants_[static_cast<std::size_t>(process())].kernel;
}

int JoinedJob::ranks_on_cores() const {
  return ranks_here() * static_cast<int>(std::ranges::count_if(
                            participants_, [this](const Participant& one) { return is_on_own_kernel(one); }));
}

int JoinedJob::ranks_before_on_cores() const {
  return ranks_here() *
         static_cast<int>(std::count_if(participants_.begin(), participants_.begin() + process(),
                                        [this](const Participant& one) { return is_on_own_kernel(one); }));
}

MemoryLeft JoinedJob::memory_left() const {
  return std::ranges::min_element(participants_, {}, [](const Participant& one) { return one.memory.bytes; })->memory;
}

bool JoinedJob::shares_cores() const {
  const std::vector<int>& mine = participants_[static_cast<std::size_t>(process())].cores;
  return std::ranges::all_of(participants_,
                             [&](const Participant& one) { return !is_on_own_kernel(one) || one.cores == mine; });
}

bool JoinedJob::is_first_here() const { return across_ ? request_.world.local_process == 0 : process() == 0; }

void JoinedJob::watch(Watch watch) {
  watch_ = std::move(watch);
  stop_ = Descriptor(::eventfd(0, EFD_CLOEXEC));
  watcher_ = std::thread([this] { watch_until_stopped(); });
}

void JoinedJob::watch_until_stopped() {
  for (;;) {
    std::vector<pollfd> set = {{stop_.get(), POLLIN, 0}, {starter_.descriptor(), POLLIN, 0}};
    for (const Link& link : links_) {
      if (link.is_open()) set.push_back({link.descriptor(), POLLIN, 0});
    }
    const std::int64_t due_ns = monotonic_ns() + std::chrono::nanoseconds(std::chrono::milliseconds(kTickMs)).count();
    ::poll(set.data(), set.size(), kTickMs);
    const auto stood = stood_.look(due_ns, monotonic_ns());
    if (stood.count() > 0 && is_first_here()) board().stood_ns().fetch_add(stood.count(), std::memory_order_relaxed);
    if ((set.front().revents & POLLIN) != 0) return;
    Status why;
    if (starter_.has_ended()) {
      why = error(Code::aborted, "the starter of the ranks (pid {}) ended without a word: killed, or crashed",
                  starter_.pid());
    }
    if (why.is_ok()) why = listen_to_all();
    if (why.is_ok()) why = look_at_board();
    if (why.is_ok()) continue;
    board().abort_flag().store(1, std::memory_order_release);
    tell_all({"error", error_text(why)});
    watch_.on_lost(why);
    return;
  }
}

Status JoinedJob::listen_to_all() {
  for (Link& link : links_) {
    for (;;) {
      const auto frame = link.next();
      if (!frame.is_ok()) return under_name_of(link.process, frame.status());
      if (!frame.value()) {
        if (link.is_open() || link.has_said_bye) break;
        return error(Code::aborted, "{} ended without a word: killed, or crashed", name_of(link.process));
      }
      TUTTI_RETURN_IF_ERROR(hear(link, *frame.value()));
    }
  }
  return {};
}

Result<std::optional<Frame>> JoinedJob::Link::next() {
  if (stream.is_open()) stream.receive();
  TUTTI_ASSIGN_OR_RETURN(auto sealed, stream.next());  // also after the stream's end
  if (sealed) return sealed;
  for (;;) {
    TUTTI_ASSIGN_OR_RETURN(auto frame, reader.next());
    if (frame || !socket.is_open()) return frame;
    std::array<char, 4096> bytes;
    const ssize_t n = ::recv(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (n < 0) return frame;
    if (n == 0) socket.close();
    reader.append(std::string_view(bytes.data(), static_cast<std::size_t>(n)));
  }
}

Status JoinedJob::hear(Link& link, const Frame& frame) {
  if (frame.type == "bye") {
    link.has_said_bye = true;
    return {};
  }
  if (frame.type == kAwaited) {
    const Status taken = take_awaited(frame.text);
    return taken.is_ok() ? taken : under_name_of(link.process, taken);
  }
  if (frame.type != "error") {
    return under_name_of(link.process, error(Code::io, "it sends '{}', which is no message of a process of this job",
                                             shown(frame.type)));
  }
  // What is passed on names the process or rank it concerns. What another process says of itself is put under its name.
  const Status why = error_from(frame.text);
  return link.passes_on ? why : under_name_of(link.process, why);
}

Status JoinedJob::look_at_board() {
  const std::int64_t now = monotonic_ns();
  const bool is_first_to_judge = is_first_here();
  const auto timeout = is_first_to_judge ? request_.timeout : request_.timeout + kPatienceWithProcess0;
  const auto waited = longest_wait(board(), now, stood_);
  if (waited <= timeout) return {};
  std::vector<pid_t> pids;
  for (int rank = 0; rank < ranks(); ++rank) {
    pids.push_back(participants_[static_cast<std::size_t>(rank / ranks_here())].pid);
  }
  std::vector<RankView> views = view_ranks(board(), pids, now, stood_);
  const std::vector<RankStanding> standings = watch_.standings();
  HangScene scene{.ranks = {}, .patience = timeout};
  HostsInView hosts;
  if (across_) {
    hosts = hosts_in_view();
    std::erase_if(views, [&](const RankView& view) {
      return hosts.host_of[static_cast<std::size_t>(view.rank)] != hosts.own_host;
    });
    add_awaited(views, standings, hosts.awaited);
    scene.hosts = &hosts;
    const auto judges_at = request_.timeout + kPatienceWithOtherHosts + (process() == 0 ? 0s : kPatienceWithProcess0);
    scene.more_patience = judges_at - timeout;
  }
  scene.ranks = views;
  const auto blame = judge_hang(scene, watch_.case_name);
  if (!blame) return {};
  if (!across_) note_stopped(*blame, views);
  return {Code::timeout, blame->text + describe_ranks(views, watch_.case_name, standings) +
                             (across_ ? "\n  ranks of other hosts: not known here" : "")};
}

void JoinedJob::note_stopped(const Blame& blame, std::span<const RankView> views) {
  const auto blamed = std::ranges::find(views, blame.rank, &RankView::rank);
  if (blamed != views.end() && blamed->state == 'T') stopped_ = blamed->pid;
}

void JoinedJob::end_stopped() const {
  // The number of a process of another namespace may name another process here.
  if (stopped_ && *stopped_ > 0 && starter_.pid() != 0 && is_of_this_program(*stopped_)) ::kill(*stopped_, SIGKILL);
}

HostsInView JoinedJob::hosts_in_view() const {
  HostsInView hosts{.host_of = host_of_ranks(), .own_host = across_->hosts.own};
  for (const JoinedHost& host : across_->hosts.all) hosts.host_names.push_back(host.name);
  return hosts;
}

void JoinedJob::add_awaited(std::span<const RankView> views, std::span<const RankStanding> standings,
                            std::map<int, int>& awaited) {
  for (const RankView& view : views) {
    const auto index = static_cast<std::size_t>(view.rank);
    auto peer = index < standings.size() && standings[index].wait ? standings[index].wait->peer : std::nullopt;
    const bool is_in_exchange = view.activity == Activity::exchange && view.awaited >= 0;
    if (is_in_exchange) peer = view.awaited * ranks_here();  // the first rank of that process
    if (peer && *peer >= 0 && *peer < ranks()) awaited[view.rank] = *peer;
  }
  if (process() > 0 && request_.world.local_process == 0) tell_all({kAwaited, awaited_lines(awaited)});
  const std::int64_t oldest = monotonic_ns() - std::chrono::nanoseconds(kAwaitedCounts).count();
  for (const auto& [rank, other] : awaited_elsewhere_) {
    if (other.told_ns > oldest) awaited.emplace(rank, other.peer);
  }
}

Status JoinedJob::take_awaited(std::string_view lines) {
  TUTTI_ASSIGN_OR_RETURN(const auto awaited, awaited_from_lines(lines, ranks()));
  for (const auto& [rank, peer] : awaited) awaited_elsewhere_[rank] = {.peer = peer, .told_ns = monotonic_ns()};
  return {};
}

std::string JoinedJob::name_of(std::size_t process) const {
  const int first = static_cast<int>(process) * ranks_here();
  const pid_t pid = participants_[process].pid;
  if (ranks_here() == 1) return fmt::format("rank {} (pid {})", first, pid);
  return fmt::format("the process of ranks {} to {} (pid {})", first, first + ranks_here() - 1, pid);
}

Status JoinedJob::under_name_of(std::size_t process, const Status& why) const {
  return {why.code(), fmt::format("{}: {}", name_of(process), why.message())};
}

void JoinedJob::tell_all(const Frame& frame) {
  const std::lock_guard lock(sending_);
  for (Link& link : links_) {
    // A process that is gone need not hear it.
    if (link.socket.is_open()) static_cast<void>(send_frame(link.socket.get(), frame).is_ok());
    link.stream.send(frame);
  }
}

void JoinedJob::finish() {
  if (!watcher_.joinable()) return;
  tell_all({"bye", ""});
  const std::uint64_t one = 1;
  static_cast<void>(::write(stop_.get(), &one, sizeof(one)) == sizeof(one));
  watcher_.join();
}

void JoinedJob::fail(const Status& why) {
  const bool is_of_others = across_ && process() > 0 && request_.world.local_process == 0;  // who pass it on as it is
  tell_all({"error", error_text(is_of_others ? under_name_of(static_cast<std::size_t>(process()), why) : why)});
  finish();
}

}  // namespace tutti::harness::hosts
