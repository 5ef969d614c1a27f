// SPDX-License-Identifier: Apache-2.0
#include "harness/hosts/work.h"

#include <algorithm>
#include <csignal>
#include <unistd.h>
#include <utility>

#include "harness/launch/control_name.h"
#include "harness/launch/limits.h"
#include "harness/machine/clock.h"
#include "harness/process/processes.h"
#include "impl/types/printable.h"

namespace tutti::harness::hosts {
namespace {

constexpr std::chrono::milliseconds kStandingsInterval(500);

}  // namespace

Status Work::start(std::string payload, HostJob job) {
  payload_ = std::move(payload);
  job_ = std::move(job);
  job_.place.key = place_.key;
  job_.place.lead_ns = monotonic_ns() - job_.launcher_ns;
  visitors_.resize(static_cast<std::size_t>(job_.here));
  const Job here{.ranks = job_.ranks,
                 .first_rank = job_.first,
                 .ranks_here = job_.started,
                 .awaits_others = job_.started < job_.here,
                 .arguments = {"rank"}};
  TUTTI_RETURN_IF_ERROR(prepare_limits(needs_of(here)));
  TUTTI_RETURN_IF_ERROR(make_memory());
  const std::string name = are_joined() ? place_.control : control_name_of(job_.control, job_.first);
  TUTTI_ASSIGN_OR_RETURN(Descriptor listener, control_listener(place_.control_socket, name, job_.here));
  serve(std::move(listener));
  send_({"awaits", ""});
  return job_.started == 0 ? Status() : children_.start(here, name, "", STDERR_FILENO);
}

Status Work::make_memory() {
  TUTTI_ASSIGN_OR_RETURN(payload_segment_, make_text_segment("tutti-payload", payload_));
  TUTTI_ASSIGN_OR_RETURN(board_segment_, make_segment("tutti-board", Board::bytes(job_.ranks)));
  TUTTI_ASSIGN_OR_RETURN(board_memory_, Mapping::map(board_segment_.get(), Board::bytes(job_.ranks)));
  board_.emplace(board_memory_.data(), job_.ranks);
  if (job_.domain_bytes > 0) {
    TUTTI_ASSIGN_OR_RETURN(domain_, make_segment("tutti-domain", job_.domain_bytes));
  }
  return {};
}

void Work::serve(Descriptor listener) {
  std::vector<int> descriptors = {payload_segment_.get(), board_segment_.get()};
  if (domain_.is_open()) descriptors.push_back(domain_.get());
  const auto welcome = [this](int rank) {
    return Frame{"welcome", fmt::format("{} {} {} {} {}\n{}\n{}", job_.ranks, job_.ranks, job_.domain_bytes, job_.host,
                                        rank - job_.first, job_.place.key, to_json(job_.place))};
  };
  connections_.serve(std::move(listener), {.ranks = job_.here, .first = job_.first, .arguments = job_.arguments},
                     welcome, std::move(descriptors), {place_.exchange.socket.get(), place_.domain.socket.get()});
  is_serving_ = true;
}

void Work::on_hello(int rank, pid_t pid) {
  visitor(rank).pid = pid;
  send_({"up", fmt::format("{} {}", rank, pid)});
}

void Work::on_frame(int rank, const Frame& frame) {
  visitor(rank).has_said_bye |= frame.type == "bye";
  send_({"from", fmt::format("{} {}\n{}", rank, frame.type, frame.text)});
}

void Work::on_closed(int rank) {
  if (rank < 0) return;
  send_({"closed", std::to_string(rank)});
  // Only its starter learns how a rank exits that came by itself.
  Visitor& gone = visitor(rank);
  gone.is_gone = true;
  if (!is_child(rank) && gone.has_said_bye) send_({"exit", fmt::format("{} {} 0", rank, gone.pid)});
}

void Work::on_garbage(int rank, pid_t pid, const std::string& what) {
  // One that said no hello is counted as the host's first.
  send_({"garbage", fmt::format("{} {} {}", rank < 0 ? job_.first : rank, pid, what)});
}

void Work::look_for_standstill(std::int64_t due_ns, std::int64_t now_ns) {
  const auto stood = stood_.look(due_ns, now_ns);
  if (board_ && stood.count() > 0) board_->stood_ns().fetch_add(stood.count(), std::memory_order_relaxed);
}

void Work::step() {
  if (!is_serving_) return;  // it did not start
  children_.reap();          // before reading: whatever a dead child sent is then sent before its exit
  connections_.service(*this);
  send_exits();
  send_reports();
  send_stacks();
}

void Work::send_exits() {
  for (const Child& child : children_.all()) {
    if (!child.wait_status || !exited_.insert(child.rank).second) continue;
    send_({"exit", fmt::format("{} {} {}", child.rank, child.pid, *child.wait_status)});
  }
}

void Work::send_reports() {
  const auto now = std::chrono::steady_clock::now();
  if (now - reported_ < kStatusInterval) return;
  reported_ = now;
  const std::int64_t now_ns = monotonic_ns();
  std::vector<RankReport> reports;
  for (int rank = job_.first; rank < after_last(); ++rank) reports.push_back(report_of(rank, now_ns));
  send_({"status", to_lines(reports)});
  const std::int64_t longest_ns = std::ranges::max(reports, {}, &RankReport::waited_ns).waited_ns;
  if (longest_ns > job_.timeout_ns / 4 * 3 && now - looked_up_ > kStandingsInterval) {
    looked_up_ = now;
    send_standings();
  }
}

RankReport Work::report_of(int rank, std::int64_t now_ns) const {
  const RankStatus& status = board_->status(rank);
  const auto [since, granted_ns] = announced_on(status);
  const pid_t pid = pid_of(rank);
  const auto info = process_info(pid);
  const std::int64_t waited_ns = now_ns - since - stood_.after(since).count();
  return {.waited_ns = since == 0 ? 0 : std::max<std::int64_t>(waited_ns, 1),
          .granted_ns = granted_ns,
          .operation = status.operation.load(std::memory_order_relaxed),
          .case_index = status.case_index.load(std::memory_order_relaxed),
          .activity = status.activity.load(std::memory_order_relaxed),
          .state = info       ? info->state
                   : pid == 0 ? 'S'
                              : 'X'};  // one that has not come is not known yet
}

pid_t Work::pid_of(int rank) const {
  const auto child = static_cast<std::size_t>(rank - job_.first);
  return child < children_.all().size() ? children_.all()[child].pid : visitor(rank).pid;
}

template <class Known, class ToText>
void Work::send_known(std::string_view type, const std::vector<Known>& all, ToText to_text) {
  for (int rank = job_.first; rank < after_last() && rank < static_cast<int>(all.size()); ++rank) {
    send_({std::string(type), fmt::format("{} {}", rank, to_text(all[static_cast<std::size_t>(rank)]))});
  }
}

void Work::send_standings() {
  send_known("standing", look_(payload_, job_.host, domain_.get()).standings,
             [](const RankStanding& one) { return to_json(one); });
}

void Work::recall() {
  if (std::exchange(is_recalled_, true)) return;
  if (!is_serving_) return send_({"recalled", ""});  // it did not start
  send_known("calls", look_(payload_, job_.host, domain_.get()).calls, call_lines);
  // The number of a visitor's process may be another's once its connection has ended.
  const auto pid_of = [this](int rank) {
    const Visitor& one = visitor(rank);
    return children_.process_of(rank, one.is_gone ? kEnded : one.pid);
  };
  stacks_.emplace(job_.first, job_.here, kStacksPatience, pid_of);
}

void Work::send_stacks() {
  if (!stacks_) return;
  while (const auto one = stacks_->next()) {
    send_({"stack", fmt::format("{} {}", one->rank, beginning_of(one->text, kMostStackBytes))});
  }
  if (!stacks_->is_done()) return;
  stacks_.reset();
  send_({"recalled", ""});
}

void Work::end(std::string_view farewell) {
  stacks_.reset();
  if (board_) board_->abort_flag().store(1, std::memory_order_release);
  children_.end();
  kill_visitors();
  if (is_serving_) connections_.service(*this);  // what the dead had sent
  if (are_joined()) connections_.dismiss(farewell);
}

bool Work::is_done() const { return std::ranges::all_of(visitors_, &Visitor::has_said_bye); }

/// Ranks that the launcher's start command has started, unless they are done. They would end with this process, but for
/// those that are stopped.
void Work::kill_visitors() const {
  if (are_joined()) return;  // they end with the job's exit code
  for (std::size_t i = static_cast<std::size_t>(job_.started); i < visitors_.size(); ++i) {
    if (visitors_[i].pid > 0 && !visitors_[i].has_said_bye) ::kill(visitors_[i].pid, SIGKILL);
  }
}

}  // namespace tutti::harness::hosts
