// SPDX-License-Identifier: Apache-2.0
#include "harness/launch/joined_job.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness/launch/limits.h"
#include "harness/machine/allowed_cores.h"
#include "harness/machine/clock.h"
#include "harness/text/json_reader.h"
#include "impl/tcp/interface.h"

namespace tutti::harness::launch {
namespace {

constexpr int kTickMs = 100;  // of the look at the board
/// By how much a process other than 0 is later to judge the board: process 0 tells it, unless it is the one that
/// stands.
constexpr auto kPatienceWithProcess0 = std::chrono::seconds(2);

/// What a process tells the others of itself. Any process that knows the name of the meeting may come to it.
struct SelfPortrait {
  std::string arguments = {};
  std::string hostname = {};
  std::vector<int> cores = {};  ///< that it may use
  MemoryLeft memory = {};
};
std::string to_json(const SelfPortrait& one) {
  return nlohmann::json{{"arguments", one.arguments},
                        {"hostname", one.hostname},
                        {"cores", one.cores},
                        {"memory_left", one.memory.bytes},
                        {"memory_limit", one.memory.of},
                        {"memory_is_of_cgroup", one.memory.is_of_cgroup}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}
Result<SelfPortrait> portrait_from_json(std::string_view text) {
  const auto read = [](const nlohmann::json& json) -> Result<SelfPortrait> {
    return SelfPortrait{.arguments = json.value("arguments", ""),
                        .hostname = json.value("hostname", ""),
                        .cores = json.value("cores", std::vector<int>()),
                        .memory = {.bytes = json.value("memory_left", MemoryLeft().bytes),
                                   .of = json.value("memory_limit", std::int64_t{0}),
                                   .is_of_cgroup = json.value("memory_is_of_cgroup", false)}};
  };
  return read_json(Code::mismatch, "what it says of itself", text, read);
}

}  // namespace

RanksIn JoinedJob::ranks_in() const { return is_alone() ? RanksIn::one_process : RanksIn::own_processes; }

const Transport& JoinedJob::transport() const { return best_transport(ranks_in()); }

DomainShape JoinedJob::shape() const { return transport().shape(ranks(), 1, 0); }

// Behind the domain, where that is in memory that is made for it.
std::size_t JoinedJob::board_offset() const {
  return (transport().shared_bytes(shape(), ranks_in()) + kPageBytes - 1) / kPageBytes * kPageBytes;
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
  if (told.exchange(1) == 0) return true;
  std::this_thread::sleep_for(kToTell);
  return false;
}

Board JoinedJob::board() const { return Board(static_cast<std::byte*>(mapping_.data()) + board_offset(), ranks()); }

Result<std::unique_ptr<Domain>> JoinedJob::open_domain() const {
  return transport().open(shape(), {.memory = memory_.get()});
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
    participants_.push_back(
        {.pid = all[i].pid, .hostname = std::move(one.hostname), .cores = std::move(one.cores), .memory = one.memory});
  }
  return {};
}

Result<std::unique_ptr<JoinedJob>> JoinedJob::join(const JoinRequest& request) {
  TUTTI_RETURN_IF_ERROR(check_one_host(request.world));
  std::unique_ptr<JoinedJob> job(new JoinedJob(request));
  const std::string text = to_json(SelfPortrait{.arguments = request.arguments,
                                                .hostname = tcp::hostname(),
                                                .cores = allowed_cores(),
                                                .memory = harness::memory_left()});
  const std::size_t bytes = job->memory_bytes();
  TUTTI_RETURN_IF_ERROR(prepare_limits(needs_of_joining(request.world.processes, request.ranks_here)));
  job->starter_ = Starter::of_this_process();
  if (job->is_alone()) {
    TUTTI_RETURN_IF_ERROR(job->introduce({{.pid = ::getpid(), .text = text}}));
    TUTTI_ASSIGN_OR_RETURN(job->memory_, make_segment("tutti-job", bytes));
  } else {
    const auto agree = [&](std::span<const Introduction> all) -> Result<std::size_t> {
      TUTTI_RETURN_IF_ERROR(job->introduce({all.begin(), all.end()}));
      TUTTI_RETURN_IF_ERROR(check_room("tutti-job", bytes));
      return bytes;
    };
    TUTTI_ASSIGN_OR_RETURN(
        Meeting meeting,
        meet({.world = request.world, .text = text, .timeout = request.timeout, .memory_bytes = agree}));
    if (job->process() != 0) TUTTI_RETURN_IF_ERROR(job->introduce(meeting.all));
    job->memory_ = std::move(meeting.memory);
    for (std::size_t i = 0; i < meeting.links.size(); ++i) {
      if (meeting.links[i].is_open()) job->links_.push_back({.socket = std::move(meeting.links[i]), .process = i});
    }
  }
  TUTTI_ASSIGN_OR_RETURN(job->mapping_, Mapping::map(job->memory_.get(), bytes));
  return job;
}

JoinedJob::~JoinedJob() { finish(); }

std::vector<int> JoinedJob::cores() const {
  std::vector<int> all;
  for (const Participant& one : participants_) all.insert(all.end(), one.cores.begin(), one.cores.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

MemoryLeft JoinedJob::memory_left() const {
  return std::ranges::min_element(participants_, {}, [](const Participant& one) { return one.memory.bytes; })->memory;
}

bool JoinedJob::shares_cores() const {
  return std::all_of(participants_.begin(), participants_.end(),
                     [&](const Participant& one) { return one.cores == participants_.front().cores; });
}

void JoinedJob::watch(Watch watch) {
  watch_ = std::move(watch);
  stop_ = Descriptor(::eventfd(0, EFD_CLOEXEC));
  watcher_ = std::thread([this] { watch_until_stopped(); });
}

void JoinedJob::watch_until_stopped() {
  for (;;) {
    std::vector<pollfd> set = {{stop_.get(), POLLIN, 0}, {starter_.descriptor(), POLLIN, 0}};
    for (const Link& link : links_) {
      if (link.socket.is_open()) set.push_back({link.socket.get(), POLLIN, 0});
    }
    ::poll(set.data(), set.size(), kTickMs);
    if ((set.front().revents & POLLIN) != 0) return;
    Status why;
    if ((set[1].revents & POLLIN) != 0) {
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
    std::array<char, 4096> bytes;
    while (link.socket.is_open()) {
      const ssize_t n = ::recv(link.socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (n < 0) break;
      if (n == 0) {
        link.socket.close();
        if (link.has_said_bye) break;
        return error(Code::aborted, "{} ended without a word: killed, or crashed", name_of(link.process));
      }
      link.reader.append(std::string_view(bytes.data(), static_cast<std::size_t>(n)));
      for (;;) {
        TUTTI_ASSIGN_OR_RETURN(const std::optional<Frame> frame, link.reader.next());
        if (!frame) break;
        link.has_said_bye |= frame->type == "bye";
        if (frame->type == "error") return hear(link.process, *frame);
      }
    }
  }
  return {};
}

/// What process 0 passes on names the process or rank it concerns. What another process says of itself is put under its
/// name.
Status JoinedJob::hear(std::size_t process, const Frame& frame) {
  const Status why = error_from(frame.text);
  return process == 0 ? why : Status(why.code(), fmt::format("{}: {}", name_of(process), why.message()));
}

Status JoinedJob::look_at_board() const {
  const std::int64_t now = monotonic_ns();
  const auto timeout = process() == 0 ? request_.timeout : request_.timeout + kPatienceWithProcess0;
  if (longest_wait(board(), now) <= timeout) return {};
  std::vector<pid_t> pids;
  for (int rank = 0; rank < ranks(); ++rank) {
    pids.push_back(participants_[static_cast<std::size_t>(rank / ranks_here())].pid);
  }
  const std::vector<RankView> views = view_ranks(board(), pids, now);
  const auto blame = find_culprit(views, timeout, watch_.case_name);
  if (!blame) return {};
  return {Code::timeout, blame->text + describe_ranks(views, watch_.case_name, watch_.standings())};
}

std::string JoinedJob::name_of(std::size_t process) const {
  const int first = static_cast<int>(process) * ranks_here();
  const pid_t pid = participants_[process].pid;
  if (ranks_here() == 1) return fmt::format("rank {} (pid {})", first, pid);
  return fmt::format("the process of ranks {} to {} (pid {})", first, first + ranks_here() - 1, pid);
}

void JoinedJob::tell_all(const Frame& frame) {
  const std::lock_guard lock(sending_);
  for (const Link& link : links_) {
    // A process that is gone need not hear it.
    if (link.socket.is_open()) static_cast<void>(send_frame(link.socket.get(), frame).is_ok());
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
  tell_all({"error", error_text(why)});
  finish();
}

}  // namespace tutti::harness::launch
