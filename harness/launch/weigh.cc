// SPDX-License-Identifier: Apache-2.0
// How the launcher tells that a job has failed, and by which rank: one function per source of findings.
#include <csignal>
#include <cstdlib>
#include <sys/wait.h>

#include <fmt/ranges.h>

#include "harness/launch/running_job.h"
#include "harness/launch/watch.h"
#include "harness/machine/clock.h"
#include "harness/process/processes.h"

namespace tutti::harness::launch {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kStateInterval = 1s;       // of the look at /proc for stopped processes
constexpr auto kStartInterval = 200ms;    // of the same look, while ranks start
constexpr auto kGonePatience = 3s;        // with a start command that goes on after one of its ranks has ended
constexpr auto kOneProcessPatience = 1s;  // with ranks in one process, which report at the deadline themselves
constexpr auto kAcrossPatience = 1500ms;  // before all ranks are said to hang: a host that is cut off falls silent
constexpr auto kLeastWait = 500ms;        // after which an operation counts as late, in a job that has no more time
constexpr auto kExitPatience = 10s;       // from the last bye to the last exit

}  // namespace

void RunningJob::weigh() {
  if (const int signal = interrupts_.signal(); signal != 0) add(interrupted_by(signal));
  weigh_children();
  weigh_deadlines();
  if (all_said_hello()) weigh_board();
  // A rank that complains may have waited for one that is stopped, or on a host that is: that one is to blame.
  const bool has_complaint = finding_ && finding_->how == Ending::said_error;
  if (has_complaint || Clock::now() >= next_state_look_) weigh_states();
}

void RunningJob::weigh_children() {
  for (const Child& child : children_.all()) {
    if (!child.wait_status) continue;
    if (child.rank < 0) {
      weigh_command(child);
    } else if (*child.wait_status != 0 || !member(child.rank).has_said_bye) {
      add(with_place(from_wait_status(child.rank, who(child.rank, child.pid), *child.wait_status)));
    }
  }
}

int RunningJob::rank_of(pid_t pid) const {
  const auto at = std::ranges::find(members_, pid, &Member::pid);
  return at == members_.end() ? -1 : static_cast<int>(at - members_.begin());
}

void RunningJob::weigh_command(const Child& command) {
  const int status = *command.wait_status;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && all_said_bye()) return;
  const std::string log = log_.text();
  CommandVerdict verdict = parse_command_verdict(log).value_or(CommandVerdict());
  // If several ended, Hydra names the first in its own order. The first connection to end says which was first.
  if (verdict.rank < 0 && verdict.pid > 0) verdict.rank = rank_of(verdict.pid);
  const bool has_seen_first = finding_ && !finding_->is_certain && finding_->rank >= 0;
  if (verdict.pid > 0 && verdict.rank >= 0 && has_seen_first) verdict.rank = finding_->rank;
  // On its way down after a rank's death mpirun may break a pipe to that rank. mpirun 4.1.4 may also run into a null
  // pointer after a rank was killed while it starts. Then what it said of the rank counts.
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  const bool died_of_a_rank = (signal == SIGPIPE || signal == SIGSEGV) && verdict.number != 0 && verdict.rank >= 0;
  if (WIFSIGNALED(status) && !died_of_a_rank) return add(from_wait_status(-1, name_of(-1, command.pid), status));
  if (verdict.rank < 0 && verdict.pid == 0) {
    constexpr int kSignalBase = 128;  // like a shell, mpirun exits with 137 for a rank that was killed by signal 9
    const int code = WEXITSTATUS(status);
    verdict.how = code > kSignalBase ? Ending::killed : Ending::exited;
    verdict.number = code > kSignalBase ? code - kSignalBase : code;
    const std::vector<int> ends = parse_command_ends(log);
    const auto is_early = [&](int rank) { return is_member(rank) && !member(rank).has_said_bye; };
    const auto first = std::find_if(ends.begin(), ends.end(), is_early);
    if (first != ends.end()) verdict.rank = *first;
  }
  // Where a connection only ended, the command knows better which rank was first: it ends the others itself.
  if (finding_ && !finding_->is_certain) {
    if (verdict.rank < 0 && verdict.pid == 0) verdict.rank = finding_->rank;
    finding_.reset();
  }
  std::string who = this->who(verdict.rank, is_member(verdict.rank) ? member(verdict.rank).pid : command.pid);
  const bool is_of_a_rank = verdict.rank >= 0 || verdict.pid > 0;
  if (verdict.rank < 0 && is_of_a_rank) who = fmt::format("a rank that had not said which (pid {})", verdict.pid);
  add(with_place(verdict.how == Ending::killed && is_of_a_rank ? killed_by(verdict.rank, who, verdict.number)
                                                               : exited_with(verdict.rank, who, verdict.number)));
}

// If the process that ended had several ranks, it is not known which of them it was.
Finding RunningJob::with_place(Finding finding) const {
  const bool is_one = is_member(finding.rank) && static_cast<int>(members_.size()) == job_.ranks;
  if (!is_one || finding.number == 0) return finding;
  const RankView view = views()[static_cast<std::size_t>(finding.rank)];
  if (view.operation == 0) return finding;
  finding.text +=
      fmt::format("; it was {}", place_of(view, [&](std::uint32_t index) { return listener_.case_name(index); }));
  return finding;
}

void RunningJob::weigh_deadlines() {
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
      finding.text = fmt::format("{} said that it is done but does not exit", who(child.rank, child.pid));
      return add(std::move(finding));
    }
  }
}

std::vector<RankView> RunningJob::views() const {
  std::vector<pid_t> pids;
  for (int rank = 0; rank < job_.ranks; ++rank) {
    pids.push_back(members_[members_.size() == 1 ? 0 : static_cast<std::size_t>(rank)].pid);
  }
  std::vector<RankView> views = view_ranks(*board_, pids, monotonic_ns(), stood_);
  for (RankView& view : views) {
    view.host = children_.host_name(view.rank);
    if (const auto state = children_.state_of(view.rank)) view.state = *state;
  }
  return views;
}

std::string RunningJob::rank_lines(std::span<const RankView> views) {
  if (!all_said_hello()) return "";
  standings_ = children_.standings();
  if (standings_.empty()) standings_ = listener_.standings(domain_.get());
  return describe_ranks(
      views, [&](std::uint32_t index) { return listener_.case_name(index); }, standings_);
}

void RunningJob::weigh_board() {
  const auto patience = members_.size() == 1 && job_.ranks > 1 ? job_.timeout + kOneProcessPatience : job_.timeout;
  if (longest_wait(*board_, monotonic_ns(), stood_) <= patience) return;
  const std::vector<RankView> all = views();
  HangScene scene{.ranks = all, .patience = patience};
  if (children_.spans_hosts()) scene.more_patience = kAcrossPatience;
  const auto blame = judge_hang(scene, [&](std::uint32_t index) { return listener_.case_name(index); });
  if (!blame) return;
  Finding finding;
  finding.how = blame->how;
  finding.rank = blame->rank;
  finding.code = Code::timeout;
  finding.text = blame->text + rank_lines(all);
  // One of several that mpirun ends when the first has died may be seen before mpirun has said which that was.
  finding.is_certain = blame->how != Ending::exited;
  add(std::move(finding));
}

void RunningJob::expire(std::chrono::milliseconds most) {
  if (finding_) return;
  std::vector<RankView> all = views();
  for (RankView& view : all) view.granted = {};  // there is no more time
  const auto name = [&](std::uint32_t index) { return listener_.case_name(index); };
  Finding finding;
  finding.how = Ending::hung;
  finding.code = Code::timeout;
  finding.text = fmt::format("not done within {} s", std::chrono::duration<double>(most).count());
  const auto stopped = std::ranges::find(all, 'T', &RankView::state);
  const auto silent = std::ranges::find(members_, false, &Member::has_said_hello);
  if (stopped != all.end()) {
    finding.how = Ending::stopped;
    finding.rank = stopped->rank;
    finding.text += fmt::format(": {} is {}", who(stopped->rank, stopped->pid), describe_state(stopped->state));
  } else if (silent != members_.end()) {
    finding.rank = static_cast<int>(silent - members_.begin());
    finding.text += fmt::format(": no word from {}", who(finding.rank, 0));
  } else if (const auto blame = judge_hang({.ranks = all, .patience = kLeastWait}, name)) {
    finding.rank = blame->rank;
    finding.text += ": " + blame->text;
  }
  finding.text += rank_lines(all);
  add(std::move(finding));
}

void RunningJob::weigh_states() {
  const bool is_starting = job_.start && !all_said_hello();
  next_state_look_ = Clock::now() + (is_starting ? kStartInterval : kStateInterval);
  for (const Child& child : children_.all()) {
    if (!child.wait_status) weigh_state(child.rank, child.pid);
  }
  if (!job_.start && !job_.awaits_others) return;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (members_[i].has_said_hello) weigh_state(static_cast<int>(i), members_[i].pid);
  }
  if (is_starting) weigh_starting();
}

void RunningJob::weigh_starting() {
  for (const pid_t pid : children_.members()) {  // before its hello a rank is known by its environment only
    for (const char* const name : kRankVariables) {
      const auto text = environment_of(pid, name);
      if (!text) continue;
      const int rank = std::atoi(text->c_str());
      weigh_state(rank, pid);
      Sighting& seen = sightings_[rank];
      if (!process_info(seen.pid)) seen = {.pid = pid};  // else this may be a process that the rank has started
      seen.when = Clock::now();
      break;
    }
  }
  // mpirun 4.1.4 may wait for ever for a rank that was killed while it started.
  for (auto& [rank, seen] : sightings_) {
    if (!is_member(rank) || member(rank).has_said_hello) continue;
    if (const auto status = unread_wait_status(seen.pid)) seen.wait_status = status;
    if (Clock::now() - seen.when < kGonePatience) continue;
    const std::string name = who(rank, seen.pid);
    Finding finding = seen.wait_status ? from_wait_status(rank, name, *seen.wait_status) : lost_connection(rank, name);
    if (!seen.wait_status) finding.text = fmt::format("{} has ended while it started", name);
    if (!children_.all().empty())
      finding.text += fmt::format("; {} goes on without it", name_of(-1, children_.all().front().pid));
    finding.is_certain = true;
    add(std::move(finding));
  }
}

void RunningJob::weigh_state(int rank, pid_t pid) {
  auto state = children_.state_of(rank);
  if (!state) {
    if (const auto info = process_info(pid)) state = info->state;
  }
  const std::pair which(rank, pid);
  const bool has_complaint = finding_ && finding_->how == Ending::said_error;
  if (state != 'T' && !(state == kUnheard && has_complaint)) {
    stopped_since_.erase(which);
    return;
  }
  const auto since = stopped_since_.emplace(which, Clock::now()).first->second;
  if (!has_complaint && Clock::now() - since < job_.timeout) return;
  Finding finding;
  finding.how = Ending::stopped;
  finding.rank = rank;
  finding.code = Code::timeout;
  finding.text = fmt::format("{} is {}", who(rank, pid), describe_state(*state));
  if (has_complaint) finding.text += "; " + finding_->text;
  if (finding.text.find('\n') == std::string::npos) finding.text += rank_lines(views());
  add(std::move(finding));
}

}  // namespace tutti::harness::launch
