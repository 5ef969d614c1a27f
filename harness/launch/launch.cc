// SPDX-License-Identifier: Apache-2.0
// A step takes what has come from a connection, a child or a signal, and collects findings. The job ends once a finding
// explains enough, or once every rank said bye and is gone.
#include "harness/launch/launch.h"

#include <poll.h>
#include <utility>

#include "harness/launch/control_name.h"
#include "harness/launch/limits.h"
#include "harness/launch/running_job.h"
#include "harness/machine/clock.h"
#include "harness/process/processes.h"
#include "impl/bootstrap/meeting.h"

namespace tutti::harness::launch {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// Looking at the board takes its cache lines from the ranks, so it is done seldom while they measure.
constexpr auto kTick = 100ms;
constexpr auto kConnectTick = 20ms;
constexpr auto kEndTick = 5ms;       // while something is about to be decided
constexpr auto kSettle = 100ms;      // from the first finding to the verdict
constexpr auto kCommandSettle = 3s;  // mpirun says within some 10 ms, on a busy host later, how a rank ended

/// Open MPI's backing files and session files take about 4 MiB per rank.
std::size_t directory_bytes(const Job& job) { return (static_cast<std::size_t>(job.ranks) * 5 + 8) << 20U; }

}  // namespace

Status RunningJob::start() {
  TUTTI_RETURN_IF_ERROR(log_.open(job_.log));
  TUTTI_ASSIGN_OR_RETURN(payload_, make_text_segment("tutti-payload", job_.payload));
  TUTTI_ASSIGN_OR_RETURN(board_segment_, make_segment("tutti-board", Board::bytes(job_.ranks)));
  TUTTI_ASSIGN_OR_RETURN(board_memory_, Mapping::map(board_segment_.get(), Board::bytes(job_.ranks)));
  board_.emplace(board_memory_.data(), job_.ranks);
  std::vector<int> descriptors = {payload_.get(), board_segment_.get()};
  if (job_.domain_bytes > 0) {
    TUTTI_ASSIGN_OR_RETURN(domain_, make_segment("tutti-domain", job_.domain_bytes));
    descriptors.push_back(domain_.get());
  }
  if (job_.start) leftovers_ = Leftovers(job_.start->leaves);
  if (job_.start) {
    TUTTI_ASSIGN_OR_RETURN(directory_, PrivateDirectory::make(directory_bytes(job_)));
  } else {
    PrivateDirectory::remove_abandoned();
  }
  const int expected = static_cast<int>(members_.size());
  // In a job on several hosts each host listens for its own ranks.
  const bool is_drawn = job_.control.empty() || children_.spans_hosts();
  const std::string name = is_drawn ? draw_control_name() : job_.control;
  const int socket = is_drawn ? -1 : job_.control_socket;
  const auto welcome = [this, expected](int rank) {
    const RankPlace place = children_.place_of(rank);
    return Frame{"welcome",
                 fmt::format("{} {} {} {} {}", job_.ranks, expected, job_.domain_bytes, place.host, place.local)};
  };
  TUTTI_ASSIGN_OR_RETURN(Descriptor listener, control_listener(socket, name, expected));
  connections_.serve(std::move(listener), {.ranks = expected, .arguments = job_.told}, welcome, std::move(descriptors));
  started_ = std::chrono::steady_clock::now();
  return children_.start(job_, name, directory_.path(), log_.descriptor());
}

std::chrono::milliseconds RunningJob::add_to(std::vector<pollfd>& set) const {
  if (interrupts_.signal() == 0) set.push_back({interrupts_.descriptor(), POLLIN, 0});
  connections_.add_to(set);
  children_.add_to(set);
  const auto most = finding_ || last_bye_ ? kEndTick : all_said_hello() ? kTick : kConnectTick;
  due_ns_ = monotonic_ns() + std::chrono::nanoseconds(most).count();
  return most;
}

void RunningJob::look_for_standstill() {
  if (due_ns_ == 0) return;
  const auto stood = stood_.look(std::exchange(due_ns_, 0), monotonic_ns());
  if (stood == 0ns) return;
  started_ += stood;
  if (last_bye_) *last_bye_ += stood;
  stopped_since_.clear();  // whoever goes on later than this process has a moment for it
  if (!children_.spans_hosts()) board_->stood_ns().fetch_add(stood.count(), std::memory_order_relaxed);
}

std::optional<Outcome> RunningJob::step() {
  look_for_standstill();
  children_.reap();  // before reading: whatever a dead child sent is then read before its death is weighed
  connections_.service(*this);
  children_.service(*this, *board_);
  weigh();
  look_at_end();
  const bool has_finished = !finding_ && all_said_bye() && children_.have_all_exited();
  return is_decided() || has_finished ? std::optional(conclude()) : std::nullopt;
}

void RunningJob::on_hello(int rank, pid_t pid) {
  member(rank).pid = pid;
  member(rank).has_said_hello = true;
}

void RunningJob::on_frame(int rank, const Frame& frame) {
  if (frame.type == "bye") {
    member(rank).has_said_bye = true;
    if (all_said_bye()) last_bye_ = Clock::now();
  } else if (frame.type == "error") {
    const Status why = error_from(frame.text);
    Finding finding;
    finding.how = Ending::said_error;
    finding.rank = rank;
    finding.code = why.code();
    finding.text = fmt::format("{}: {}", who(rank, 0), why.message());
    // A rank that waited in vain may not know of the others.
    const bool has_report = finding.text.find('\n') != std::string::npos;
    if (finding.code == Code::timeout && !has_report) finding.text += rank_lines(views());
    add(std::move(finding));
  } else {
    listener_.on_message(rank, frame.type, frame.text);
  }
}

void RunningJob::on_closed(int rank) {
  if (rank < 0) return;  // its exit will tell
  member(rank).is_gone = true;
  if (!member(rank).has_said_bye) add(lost_connection(rank, who(rank, member(rank).pid)));
}

void RunningJob::on_garbage(int rank, pid_t pid, const std::string& what) {
  Finding finding;
  finding.how = Ending::garbled;
  finding.rank = rank;
  finding.code = Code::io;
  finding.text = fmt::format("{}: {}", rank < 0 ? fmt::format("process {}", pid) : who(rank, pid), what);
  add(std::move(finding));
}

void RunningJob::on_lost_host(int first_rank, const Status& why) {
  Finding finding;
  // Before it has come, or with another build, it is as if it had refused.
  const bool has_refused = why.code() != Code::aborted && why.code() != Code::timeout && why.code() != Code::io;
  finding.how = has_refused ? Ending::said_error : Ending::lost_host;
  finding.rank = first_rank;
  finding.code = why.code();
  finding.text = why.message();
  add(std::move(finding));
}

// Ranks have as long as they have on one host, however long it took to reach theirs.
void RunningJob::on_hosts(const std::vector<HostInfo>& all) {
  started_ = Clock::now();
  listener_.on_hosts(all);
}

std::string RunningJob::who(int rank, pid_t pid) const {
  const std::string host = rank < 0 ? std::string() : children_.host_name(rank);
  if (host.empty()) return name_of(rank, pid);
  return pid > 0 ? fmt::format("rank {} on {} (pid {})", rank, host, pid) : fmt::format("rank {} on {}", rank, host);
}

void RunningJob::on_unfit(const Status& why) {
  Finding finding;
  finding.how = Ending::said_error;
  finding.code = why.code();
  finding.text = why.message();
  add(std::move(finding));
}

void RunningJob::add(Finding finding) {
  if (is_over_ || (finding_ && !outweighs(finding, *finding_))) return;
  if (!finding_) decide_by_ = Clock::now() + (job_.start && !finding.is_certain ? kCommandSettle : kSettle);
  finding_ = std::move(finding);
  wait_status_.reset();
}

void RunningJob::look_at_end() {
  if (!finding_ || finding_->is_certain || !is_member(finding_->rank)) return;
  if (children_.spans_hosts()) return;  // its number may be another process's here
  const pid_t pid = member(finding_->rank).pid;
  if (const auto status = unread_wait_status(pid)) wait_status_ = status;
  const bool is_time = Clock::now() >= decide_by_;
  if (!is_time || !wait_status_) return;
  finding_ = with_place(from_wait_status(finding_->rank, who(finding_->rank, pid), *wait_status_));
}

bool RunningJob::is_decided() const {
  if (!finding_) return false;
  const bool has_command_spoken = job_.start && children_.have_all_exited();
  return is_final(*finding_) || has_command_spoken || Clock::now() >= decide_by_;
}

bool RunningJob::all_said_hello() const {
  return std::all_of(members_.begin(), members_.end(), [](const Member& member) { return member.has_said_hello; });
}

bool RunningJob::all_said_bye() const {
  return std::all_of(members_.begin(), members_.end(), [](const Member& member) { return member.has_said_bye; });
}

std::optional<std::uint32_t> RunningJob::announced_case(int rank) const {
  if (rank >= job_.ranks) return std::nullopt;
  std::optional<std::uint32_t> found;
  for (int one = std::max(rank, 0); one < (rank < 0 ? job_.ranks : rank + 1); ++one) {
    const RankStatus& status = board_->status(one);
    if (status.operation.load(std::memory_order_relaxed) == 0) continue;
    const std::uint32_t index = status.case_index.load(std::memory_order_relaxed);
    if (found && *found != index) return std::nullopt;
    found = index;
  }
  return found;
}

void RunningJob::recall(Outcome& outcome) {
  const bool hangs = finding_->code == Code::timeout || finding_->how == Ending::stopped;
  if (!job_.recalls || (!hangs && finding_->how != Ending::lost_host)) return;
  std::vector<pid_t> pids;
  for (const Member& one : members_) pids.push_back(one.is_gone ? kEnded : one.pid);
  outcome.recall = children_.recall(pids, *this, *board_, interrupts_);
  if (interrupts_.signal() != 0) finding_ = interrupted_by(interrupts_.signal());
}

void RunningJob::tell_failure(Outcome& outcome) {
  outcome.how = finding_->how;
  outcome.failed_rank = finding_->rank;
  outcome.number = finding_->number;
  outcome.failure = Status(finding_->code, finding_->text);
  outcome.all_came = all_said_hello();
  outcome.case_index = announced_case(finding_->rank);
  if (!job_.tell) return;
  job_.tell(outcome.failure);
  outcome.is_told = true;
}

Outcome RunningJob::conclude() {
  is_over_ = true;
  Outcome outcome;
  outcome.ok = !finding_;
  if (finding_) {
    recall(outcome);
    tell_failure(outcome);
    board_->abort_flag().store(1, std::memory_order_release);
  }
  children_.end();
  directory_.remove();
  if (finding_) leftovers_.remove();
  connections_.service(*this);  // what the dead had sent: finished rows are kept
  children_.service(*this, *board_);
  if (job_.awaits_others) connections_.dismiss("");
  if (!outcome.ok) outcome.log_tail = log_.tail();
  if (!outcome.ok) outcome.log_line = log_.telling();
  if (!outcome.ok) outcome.standings = std::move(standings_);
  return outcome;
}

namespace {

Status check(const Job& job) {
  if (job.ranks < 1) return error(Code::invalid_argument, "{} ranks; at least 1", job.ranks);
  if (job.start && !job.ranks_as->is_process) {
    return error(Code::invalid_argument, "'{}' starts ranks as processes only", job.start->words.front());
  }
  if (job.timeout <= 0ms) return error(Code::invalid_argument, "a timeout of {} ms; at least 1", job.timeout.count());
  return Status();
}

}  // namespace

Result<Outcome> launch_job(const Job& job, Listener& listener) {
  TUTTI_RETURN_IF_ERROR(check(job));
  TUTTI_RETURN_IF_ERROR(prepare_limits(needs_of(job)));
  RunningJob running(job, listener);
  TUTTI_RETURN_IF_ERROR(running.start());
  for (;;) {
    std::vector<pollfd> set;
    const auto most = running.add_to(set);
    ::poll(set.data(), set.size(), static_cast<int>(most.count()));
    if (auto outcome = running.step()) return *std::move(outcome);
  }
}

}  // namespace tutti::harness::launch
