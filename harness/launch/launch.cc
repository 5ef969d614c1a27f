// SPDX-License-Identifier: Apache-2.0
// One loop: wait a tick for a connection, a child or a signal; collect findings; end the job once one explains enough,
// or once every rank said bye and is gone.
#include "harness/launch/launch.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <poll.h>
#include <random>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fmt/ranges.h>

#include "harness/launch/board.h"
#include "harness/launch/children.h"
#include "harness/launch/connections.h"
#include "harness/launch/finding.h"
#include "harness/launch/interrupts.h"
#include "harness/launch/launch_log.h"
#include "harness/launch/processes.h"
#include "harness/launch/segment.h"
#include "harness/launch/watch.h"

namespace tutti::harness {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// Looking at the board takes its cache lines from the ranks, so it is done seldom while they measure.
constexpr auto kTick = 100ms;
constexpr auto kConnectTick = 20ms;
constexpr auto kEndTick = 5ms;         // while something is about to be decided
constexpr auto kStateInterval = 1s;    // of the look at /proc for stopped processes
constexpr auto kSettle = 100ms;        // from the first finding to the verdict
constexpr auto kMpirunSettle = 500ms;  // mpirun says within some 10 ms how its rank ended
constexpr auto kExitPatience = 10s;    // from the last bye to the last exit

std::string control_name() {
  std::random_device random;
  return fmt::format("tutti-{}-{}-{:08x}", ::getuid(), ::getpid(), random());
}

// One connection per rank, and some 64 descriptors of our own.
void allow_descriptors(int connections) {
  rlimit limit = {};
  const rlim_t wanted = static_cast<rlim_t>(connections) + 64;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

class Launch : private Connections::Events {
 public:
  Launch(const Job& job, Listener& listener)
      : job_(job),
        listener_(listener),
        members_(static_cast<std::size_t>(job.ranks_as == RanksAs::processes ? job.ranks : 1)) {}

  Status start();
  Outcome run();

 private:
  struct Member {  ///< what is at the other end of one connection
    pid_t pid = 0;
    bool has_said_hello = false;
    bool has_said_bye = false;
  };

  void on_hello(int rank, pid_t pid) override;
  void on_frame(int rank, const Frame& frame) override;
  void on_closed(int rank) override;
  void on_garbage(int rank, pid_t pid, const std::string& what) override;

  void wait();
  void weigh();
  void weigh_children();
  void weigh_mpirun(const Child& mpirun);
  void weigh_deadlines();
  void weigh_board();
  void weigh_states();
  void weigh_state(int rank, pid_t pid);
  void add(Finding finding);
  [[nodiscard]] bool is_member(int rank) const { return rank >= 0 && static_cast<std::size_t>(rank) < members_.size(); }
  [[nodiscard]] Member& member(int rank) { return members_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] bool is_decided() const;
  [[nodiscard]] bool all_said_hello() const;
  [[nodiscard]] bool all_said_bye() const;
  Outcome conclude();

  const Job& job_;
  Listener& listener_;
  Interrupts interrupts_;
  LaunchLog log_;
  Descriptor payload_;
  Descriptor domain_;
  Descriptor board_segment_;
  Mapping board_memory_;
  std::optional<Board> board_;
  Connections connections_;
  std::vector<Member> members_;
  std::optional<Finding> finding_;
  bool is_over_ = false;  ///< the verdict stands; messages are still handed on
  Clock::time_point decide_by_;
  Clock::time_point started_ = Clock::now();
  std::optional<Clock::time_point> last_bye_;
  Clock::time_point next_state_look_ = started_ + kStateInterval;
  std::map<pid_t, Clock::time_point> stopped_since_;
  Children children_;  // last: they end before anything that they use
};

Status Launch::start() {
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
  const int expected = static_cast<int>(members_.size());
  allow_descriptors(expected);
  const std::string name = control_name();
  Frame welcome = {"welcome", fmt::format("{} {} {}", job_.ranks, expected, job_.domain_bytes)};
  TUTTI_RETURN_IF_ERROR(connections_.listen(name, expected, std::move(welcome), std::move(descriptors)));
  return children_.start(job_, name, log_.descriptor());
}

Outcome Launch::run() {
  for (;;) {
    wait();
    children_.reap();  // before reading: whatever a dead child sent is then read before its death is weighed
    connections_.service(*this);
    weigh();
    if (is_decided()) return conclude();
    if (!finding_ && all_said_bye() && children_.have_all_exited()) return conclude();
  }
}

void Launch::wait() {
  std::vector<pollfd> set = {{interrupts_.descriptor(), POLLIN, 0}};
  if (interrupts_.signal() != 0) set.clear();
  connections_.add_to(set);
  auto tick = all_said_hello() ? kTick : kConnectTick;
  if (finding_ || last_bye_) tick = kEndTick;
  ::poll(set.data(), set.size(), static_cast<int>(tick.count()));
}

void Launch::on_hello(int rank, pid_t pid) {
  member(rank).pid = pid;
  member(rank).has_said_hello = true;
}

void Launch::on_frame(int rank, const Frame& frame) {
  if (frame.type == "bye") {
    member(rank).has_said_bye = true;
    if (all_said_bye()) last_bye_ = Clock::now();
  } else if (frame.type == "error") {
    Finding finding;  // "<code> <message>", see RankLink::fail
    const std::size_t space = std::min(frame.text.find(' '), frame.text.size());
    const int code = std::atoi(frame.text.substr(0, space).c_str());
    finding.how = Ending::said_error;
    finding.rank = rank;
    finding.code = code > 0 && code <= static_cast<int>(Code::refuted) ? static_cast<Code>(code) : Code::aborted;
    finding.text = fmt::format("rank {}: {}", rank, frame.text.substr(std::min(space + 1, frame.text.size())));
    add(std::move(finding));
  } else {
    listener_.on_message(rank, frame.type, frame.text);
  }
}

void Launch::on_closed(int rank) {
  if (rank < 0) return;  // its exit will tell
  if (!member(rank).has_said_bye) add(lost_connection(rank, member(rank).pid));
}

void Launch::on_garbage(int rank, pid_t pid, const std::string& what) {
  Finding finding;
  finding.how = Ending::garbled;
  finding.rank = rank;
  finding.code = Code::io;
  finding.text = fmt::format("{}: {}", rank < 0 ? fmt::format("process {}", pid) : name_of(rank, pid), what);
  add(std::move(finding));
}

void Launch::add(Finding finding) {
  if (is_over_ || (finding_ && !outweighs(finding, *finding_))) return;
  if (!finding_) decide_by_ = Clock::now() + (job_.needs_mpirun ? kMpirunSettle : kSettle);
  finding_ = std::move(finding);
}

bool Launch::is_decided() const {
  if (!finding_) return false;
  const bool has_mpirun_spoken = job_.needs_mpirun && children_.have_all_exited();
  return is_final(*finding_) || has_mpirun_spoken || Clock::now() >= decide_by_;
}

bool Launch::all_said_hello() const {
  return std::all_of(members_.begin(), members_.end(), [](const Member& member) { return member.has_said_hello; });
}

bool Launch::all_said_bye() const {
  return std::all_of(members_.begin(), members_.end(), [](const Member& member) { return member.has_said_bye; });
}

void Launch::weigh() {
  if (const int signal = interrupts_.signal(); signal != 0) {
    Finding finding;
    finding.how = Ending::interrupted;
    finding.number = signal;
    finding.text = fmt::format("interrupted by signal {} ({})", signal, ::strsignal(signal));
    add(std::move(finding));
  }
  weigh_children();
  weigh_deadlines();
  if (all_said_hello()) weigh_board();
  // A rank that complains may have waited for one that is stopped: that one is to blame.
  const bool has_complaint = finding_ && finding_->how == Ending::said_error;
  if (has_complaint || Clock::now() >= next_state_look_) weigh_states();
}

void Launch::weigh_children() {
  for (const Child& child : children_.all()) {
    if (!child.wait_status) continue;
    if (child.rank < 0) {
      weigh_mpirun(child);
    } else if (*child.wait_status != 0 || !member(child.rank).has_said_bye) {
      add(from_wait_status(child.rank, name_of(child.rank, child.pid), *child.wait_status));
    }
  }
}

void Launch::weigh_mpirun(const Child& mpirun) {
  const int status = *mpirun.wait_status;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && all_said_bye()) return;
  if (WIFSIGNALED(status)) return add(from_wait_status(-1, name_of(-1, mpirun.pid), status));
  const std::string log = log_.text();
  MpirunVerdict verdict = parse_mpirun_verdict(log).value_or(MpirunVerdict());
  if (verdict.rank < 0) {
    constexpr int kSignalBase = 128;  // like a shell, mpirun exits with 137 for a rank that was killed by signal 9
    const int code = WEXITSTATUS(status);
    verdict.how = code > kSignalBase ? Ending::killed : Ending::exited;
    verdict.number = code > kSignalBase ? code - kSignalBase : code;
    const std::vector<int> ends = parse_mpirun_ends(log);
    const auto is_early = [&](int rank) { return is_member(rank) && !member(rank).has_said_bye; };
    const auto first = std::find_if(ends.begin(), ends.end(), is_early);
    if (first != ends.end()) verdict.rank = *first;
  }
  // Where a connection only ended, mpirun knows better whose was first: it ends the others itself.
  if (finding_ && !finding_->is_certain) finding_.reset();
  const std::string who = name_of(verdict.rank, is_member(verdict.rank) ? member(verdict.rank).pid : mpirun.pid);
  add(verdict.how == Ending::killed && verdict.rank >= 0 ? killed_by(verdict.rank, who, verdict.number)
                                                         : exited_with(verdict.rank, who, WEXITSTATUS(status)));
}

void Launch::weigh_deadlines() {
  Finding finding;
  finding.code = Code::timeout;
  if (!all_said_hello() && Clock::now() - started_ > job_.connect_timeout) {
    std::vector<std::size_t> missing;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (!members_[i].has_said_hello) missing.push_back(i);
    }
    finding.how = Ending::never_connected;
    finding.rank = static_cast<int>(missing.front());
    finding.text =
        fmt::format("within {} s no word from {} {}", std::chrono::duration<double>(job_.connect_timeout).count(),
                    missing.size() == 1 ? "rank" : "ranks", fmt::join(missing, ", "));
    add(std::move(finding));
  } else if (last_bye_ && Clock::now() - *last_bye_ > kExitPatience) {
    for (const Child& child : children_.all()) {
      if (child.wait_status) continue;
      finding.how = Ending::hung;
      finding.rank = child.rank;
      finding.text = fmt::format("{} said that it is done but does not exit", name_of(child.rank, child.pid));
      return add(std::move(finding));
    }
  }
}

void Launch::weigh_board() {
  const std::int64_t now = monotonic_ns();
  if (longest_wait(*board_, now) <= job_.timeout) return;
  std::vector<pid_t> pids;
  for (int rank = 0; rank < job_.ranks; ++rank) {
    pids.push_back(member(members_.size() == 1 ? 0 : rank).pid);
  }
  const auto blame = find_culprit(view_ranks(*board_, pids, now), job_.timeout,
                                  [&](std::uint32_t index) { return listener_.case_name(index); });
  if (!blame) return;
  Finding finding;
  finding.how = blame->how;
  finding.rank = blame->rank;
  finding.code = Code::timeout;
  finding.text = blame->text;
  add(std::move(finding));
}

void Launch::weigh_states() {
  next_state_look_ = Clock::now() + kStateInterval;
  for (const Child& child : children_.all()) {
    if (!child.wait_status) weigh_state(child.rank, child.pid);
  }
  if (!job_.needs_mpirun) return;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (members_[i].has_said_hello) weigh_state(static_cast<int>(i), members_[i].pid);
  }
  if (all_said_hello()) return;
  for (const pid_t pid : children_.members()) {  // before its hello a rank is known by its environment only
    if (const auto rank = environment_of(pid, "OMPI_COMM_WORLD_RANK")) weigh_state(std::atoi(rank->c_str()), pid);
  }
}

void Launch::weigh_state(int rank, pid_t pid) {
  const auto info = process_info(pid);
  if (!info || info->state != 'T') {
    stopped_since_.erase(pid);
    return;
  }
  const auto since = stopped_since_.emplace(pid, Clock::now()).first->second;
  const bool has_complaint = finding_ && finding_->how == Ending::said_error;
  if (!has_complaint && Clock::now() - since < job_.timeout) return;
  Finding finding;
  finding.how = Ending::stopped;
  finding.rank = rank;
  finding.code = Code::timeout;
  finding.text = fmt::format("{} is {}", name_of(rank, pid), describe_state(info->state));
  if (has_complaint) finding.text += "; " + finding_->text;
  add(std::move(finding));
}

Outcome Launch::conclude() {
  is_over_ = true;
  Outcome outcome;
  outcome.ok = !finding_;
  if (finding_) {
    outcome.how = finding_->how;
    outcome.failed_rank = finding_->rank;
    outcome.number = finding_->number;
    outcome.failure = Status(finding_->code, finding_->text);
    board_->abort_flag().store(1, std::memory_order_release);
  }
  children_.end();
  connections_.service(*this);  // what the dead had sent: finished rows are kept
  if (!outcome.ok) outcome.log_tail = log_.tail();
  return outcome;
}

Status check(const Job& job) {
  if (job.ranks < 1) return error(Code::invalid_argument, "{} ranks; at least 1", job.ranks);
  if (job.needs_mpirun && job.ranks_as != RanksAs::processes) {
    return error(Code::invalid_argument, "mpirun starts ranks as processes only");
  }
  if (job.timeout <= 0ms) return error(Code::invalid_argument, "a timeout of {} ms; at least 1", job.timeout.count());
  return Status();
}

}  // namespace

Result<Outcome> launch(const Job& job, Listener& listener) {
  TUTTI_RETURN_IF_ERROR(check(job));
  Launch running(job, listener);
  TUTTI_RETURN_IF_ERROR(running.start());
  return running.run();
}

}  // namespace tutti::harness
