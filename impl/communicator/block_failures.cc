// SPDX-License-Identifier: Apache-2.0
// What thread blocks tell that wait for too long, and what everybody is told where one has failed.
#include <algorithm>
#include <sched.h>

#include "impl/communicator/block_world.h"
#include "impl/communicator/diagnosis.h"
#include "impl/execute/target.h"
#include "impl/transports/failure.h"

namespace tutti {
namespace {

/// Teams that are to stop do so at their next wait: that is soon, unless the device has failed.
constexpr std::chrono::seconds kMostToStop(60);

}  // namespace

Status BlockWorld::fail_in(const Round& round, const DeviceFailure& failure) {
  const Graph* const graph = first_of(round).graph.get();
  const Round& one =
      graph == nullptr ? round
                       : graph->rounds[graph->launches[failure.launch - round.launched.number] + failure.operation];
  const std::uint64_t first = graph == nullptr ? round.first : round.first + one.first;
  const int rank = static_cast<int>(failure.rank), peer = static_cast<int>(failure.peer);
  const std::string mine = domain_->name_of(rank), theirs = domain_->name_of(peer);
  if (failure.kind == DeviceFailure::other_call) {
    const auto text = disagreement(*domain_, rank, peer);
    return fail(error(Code::mismatch, "{}",
                      text ? *text : fmt::format("{} and {} do not agree on operation {}", mine, theirs, first)));
  }
  if (failure.kind == DeviceFailure::other_length) {
    return fail(error(Code::mismatch,
                      "{} and {} do not agree on operation {}, on a count: {} sends {} bytes, {} expects {}", mine,
                      theirs, first, theirs, failure.found, mine, failure.wanted));
  }
  Standing standing{.operation = first + failure.segment,
                    .finished = first - 1,
                    .bytes = static_cast<std::int64_t>(failure.wanted),
                    .peer = peer,
                    .step = static_cast<std::int32_t>(failure.step) + 1,
                    .phase = static_cast<std::uint16_t>(failure.wanted)};
  standing.wait = failure.kind == DeviceFailure::phase  ? Wait::phase
                  : failure.kind == DeviceFailure::data ? Wait::data
                  : failure.kind == DeviceFailure::room ? Wait::room
                                                        : Wait::generation;
  CallNote note = one.posted[static_cast<std::size_t>(rank)].entry->note;
  note.first = first;
  return fail_late(rank, standing, failure, &note);
}

Status BlockWorld::fail_late(int rank, const Standing& standing, const DeviceFailure& failure, const CallNote* note) {
  domain_->seat(rank).journal->standing.write(standing);
  const std::string position = standing_text(*domain_, standing, note);
  std::string devices;
  if (places_.size() > 1) {
    devices = fmt::format(", {} on device {}, {} on device {}", domain_->name_of(rank), place_of(rank).index,
                          domain_->name_of(standing.peer), place_of(standing.peer).index);
  }
  return fail(error(Code::timeout, "{} gave up: {}, lane {}{}{}", domain_->name_of(rank), position, failure.lane,
                    devices, report_of(*domain_)));
}

bool BlockWorld::is_of(const DeviceFailure& failure, const Launched& launched) {
  const bool is_transfer = failure.is_transfer != 0;
  return is_transfer == launched.is_transfer && failure.launch - launched.number < launched.count;
}

Result<bool> BlockWorld::has_ended_before(const Launched& launched, const DeviceFailure& failure) {
  const int rank = static_cast<int>(failure.rank);
  // A device begins a launch when the one before has ended. What is on another one too may have been stopped there.
  const auto is_before = [&, there = &place_of(rank)](const Launched& failed) {
    const auto at = std::ranges::find(failed.parts, there, &Launched::Part::place);
    return launched.parts.size() == 1 && launched.parts.front().place == there &&
           launched.parts.front().ticket < at->ticket;
  };
  for (const Round& one : rounds_) {
    if (!is_of(failure, one.launched)) continue;
    if (is_before(one.launched)) return true;
    return fail_in(one, failure);
  }
  for (const auto& [ranks, pair] : pairs_) {
    for (const Transfer& one : pair.under_way) {
      if (!is_of(failure, one.launched)) continue;
      if (is_before(one.launched)) return true;
      return fail_in(one, failure);
    }
  }
  return fail(error(Code::timeout, "{} gave up, in launch {}", domain_->name_of(rank), failure.launch));
}

std::uint64_t BlockWorld::turn_of(const DeviceFailure& failure) const {
  for (const Round& one : rounds_) {
    if (is_of(failure, one.launched)) return one.launched.turn + (failure.launch - one.launched.number);
  }
  for (const auto& [ranks, pair] : pairs_) {
    for (const Transfer& one : pair.under_way) {
      if (is_of(failure, one.launched)) return one.launched.turn;
    }
  }
  return 0;
}

bool BlockWorld::have_stopped() const {
  return HostTarget::load_acquire(here().world.abort_word) == stop_now || first_failure() != nullptr;
}

const DeviceFailure* BlockWorld::first_failure() const {
  const DeviceFailure* first = nullptr;
  for (const Place& place : places_) {
    if (place.device == nullptr) continue;
    DeviceFailure& failure = *place.world.failure;
    if (HostTarget::load_acquire(&failure.kind) == DeviceFailure::none) continue;
    if (first == nullptr || turn_of(failure) < turn_of(*first)) first = &failure;
  }
  return first;
}

void BlockWorld::tell_devices(DeviceStop what) { HostTarget::store_release(here().world.abort_word, what); }

Status BlockWorld::fail(Status status) {
  if (!failed_.is_ok()) return failed_;
  failed_ = std::move(status);
  if (is_shared()) tell_others();
  tell_devices(stop_now);
  wait_for_launches();
  return failed_;
}

Status BlockWorld::stop(Status status) {
  const std::lock_guard lock(mutex_);
  return fail(std::move(status));
}

void BlockWorld::tell_others() {
  const int mine = static_cast<int>(first_here());
  (void)announce_failure(*domain_, mine, mine, text_for_others(*domain_, mine, failed_));
}

Status BlockWorld::check_others() {
  if (!is_shared()) return {};
  return failed_rank_of(*domain_) ? fail(announced_failure(*domain_)) : Status();
}

bool BlockWorld::has_launches() const {
  return (!rounds_.empty() && !rounds_.front().launched.parts.empty()) ||
         std::ranges::any_of(pairs_, [](const auto& one) { return !one.second.under_way.empty(); });
}

void BlockWorld::wait_for_launches() {
  const Clock::time_point deadline = Clock::now() + kMostToStop;
  const auto wait_for = [&](const Launched& launched) {
    for (const Launched::Part& part : launched.parts) {
      while (Clock::now() < deadline) {
        const Result<bool> is_done = part.place->device->is_complete(part.ticket);
        if (!is_done.is_ok() || is_done.value()) break;  // a device that has failed runs nothing more
        sched_yield();
      }
    }
  };
  for (const Round& one : rounds_) wait_for(one.launched);
  for (const auto& [ranks, pair] : pairs_) {
    for (const Transfer& one : pair.under_way) wait_for(one.launched);
  }
}

std::string BlockWorld::text_of(const Posted& call, std::uint64_t first) {
  if (call.graph != nullptr) {
    return fmt::format("a graph of {} {}, of which the first is {}", call.graph->rounds.size(),
                       call.graph->rounds.size() == 1 ? "call" : "calls",
                       text_of(call.graph->rounds.front().posted.front(), first));
  }
  CallNote note = call.entry->note;
  note.first = first;
  return call_text(note, first);
}

std::string BlockWorld::position(int rank, std::uint64_t call) {
  const std::lock_guard lock(mutex_);
  if (call < first_round_) return "complete";
  const Round& one = round(call);
  const std::string text =
      fmt::format("operation {} ({})", one.first, text_of(one.posted[static_cast<std::size_t>(rank)], one.first));
  for (const int peer : ranks_here_) {
    const Posted& posted = one.posted[static_cast<std::size_t>(peer)];
    if (posted.entry != nullptr || posted.graph != nullptr) continue;
    return fmt::format("{}: waits for {} to call it", text, domain_->name_of(peer));
  }
  return fmt::format("{}: the {} at it", text, !is_shared() && places_.size() > 1 ? "devices are" : "device is");
}

std::string BlockWorld::report() {
  const std::lock_guard lock(mutex_);
  for (const int rank : ranks_here_) {
    const std::uint64_t finished = domain_->seat(rank).journal->finished.load(std::memory_order_relaxed);
    if (posted_[static_cast<std::size_t>(rank)] <= first_round_) continue;
    domain_->seat(rank).journal->standing.write({.operation = finished + 1, .finished = finished});
  }
  return report_of(*domain_);
}

void BlockWorld::end_launches() {
  const std::lock_guard lock(mutex_);
  if (!failed_.is_ok() || !has_launches()) return;
  std::uint64_t* const word = here().world.abort_word;
  HostTarget::swap_if(word, keep_going, stop_and_tell);  // not where a rank has failed: they stop
  wait_for_launches();
  (void)progress();
  if (failed_.is_ok()) HostTarget::swap_if(word, stop_and_tell, keep_going);
}

Status BlockWorld::give_up(int rank, const std::string& position) {
  const std::string everybody = report();
  const std::lock_guard lock(mutex_);
  if (!failed_.is_ok()) return failed_;
  TUTTI_RETURN_IF_ERROR(check_others());
  const Status late = error(Code::timeout, "{} gave up: {}{}", domain_->name_of(rank), position, everybody);
  (void)announce_failure(*domain_, rank, rank, text_for_others(*domain_, rank, late));
  return fail(late);
}

void BlockWorld::abort(int teller, int rank, std::string_view reason) {
  const std::lock_guard lock(mutex_);
  if (!failed_.is_ok() || !check_others().is_ok()) return;
  (void)announce_failure(*domain_, teller, rank, fmt::format("{} failed: {}", domain_->name_of(rank), reason));
  (void)fail(announced_failure(*domain_));
}

void BlockWorld::leave(int rank) {
  const std::lock_guard lock(mutex_);
  if (failed_.is_ok()) (void)progress();
  const bool is_busy =
      posted_[static_cast<std::size_t>(rank)] > first_round_ || std::ranges::any_of(pairs_, [rank](const auto& one) {
        const auto& [ranks, pair] = one;
        return (ranks.first == rank && pair.posted[1] > pair.complete) ||
               (ranks.second == rank && pair.posted[0] > pair.complete);
      });
  if (is_busy) (void)fail(error(Code::aborted, "{} has left", domain_->name_of(rank)));
  if (!is_shared()) domain_->seat(rank).journal->has_left.store(1, std::memory_order_release);
}

}  // namespace tutti
