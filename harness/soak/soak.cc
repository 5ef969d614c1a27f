// SPDX-License-Identifier: Apache-2.0
#include "harness/soak/soak.h"

#include <algorithm>
#include <array>
#include <random>
#include <thread>
#include <tuple>

#include "harness/machine/clock.h"
#include "harness/measure/order.h"
#include "harness/soak/barriers.h"
#include "harness/soak/flight.h"
#include "harness/soak/traces.h"
#include "harness/text/json_reader.h"

namespace tutti::harness::soak {
namespace {

constexpr unsigned kPauses = 200;       // one turn in kPauses is a pause
constexpr unsigned kBlockingWaits = 8;  // of the turns that look at a handle, one in kBlockingWaits waits for it
constexpr std::int64_t kMostPauseUs = 2000;
constexpr std::int64_t kBetweenProgressNs = 200'000'000;

/// What one runner tells the others at the end.
struct Report {
  std::int64_t verified = 0;
  std::int64_t wrong = 0;
  std::int64_t barriers = 0;
  std::int64_t most_in_flight = 0;
  std::int64_t descriptors = 0;
  std::int64_t mappings = 0;
  Reason first_wrong;

  void note(std::int64_t more, const std::string& text) {
    if (wrong == 0) first_wrong = Reason::of(more, text);
    wrong += more;
  }
};

using Reasons = std::map<std::string, std::int64_t>;

/// One rank's part.
class Seat {
 public:
  Seat(std::unique_ptr<Group> world, const Mix& mix, std::uint64_t seed)
      : world_(std::move(world)), mix_(mix), random_(seed * 7919 + static_cast<std::uint64_t>(world_->rank())) {}

  void begin_epoch(int epoch, EpochBarriers& barriers) {
    epoch_ = epoch;
    barriers_ = &barriers;
    std::tie(next_, end_) = mix_.epoch(epoch);
  }
  Status end_epoch();
  /// Posts the formation of `communicator`; then true once it is there.
  Status form(int communicator);
  [[nodiscard]] Result<bool> is_formed(int communicator);
  /// One thing to do; false when the epoch is done. `may_block`: where no other rank of this runner waits for its turn.
  [[nodiscard]] Result<bool> turn(bool may_block, std::chrono::nanoseconds timeout);
  /// As turn, but it looks at every handle before it says that nothing can be done: what an order must know.
  [[nodiscard]] Result<bool> turn_in_order(Order& order);
  [[nodiscard]] std::int64_t posted() const { return next_; }
  /// For messages: what it waits for.
  [[nodiscard]] std::string position() const;
  /// Errors: timeout where nothing has been completed for so long; it names what is waited for.
  [[nodiscard]] Status check(std::chrono::nanoseconds timeout) const;
  Report report;
  Reasons not_run;

 private:
  [[nodiscard]] Group* group(int index) {
    return index == 0 ? world_.get() : groups_[static_cast<std::size_t>(index)].get();
  }
  Status post_next();
  Status land(std::size_t index);
  [[nodiscard]] bool draws(unsigned one_in) { return random_() % one_in == 0; }

  std::unique_ptr<Group> world_;
  const Mix& mix_;
  std::mt19937_64 random_;
  int epoch_ = 0;
  EpochBarriers* barriers_ = nullptr;  // of the epoch
  std::int64_t next_ = 0, end_ = 0;
  std::size_t depth_ = 1;
  std::unique_ptr<Formation> formation_;
  std::array<std::unique_ptr<Group>, kSoakCommunicators> groups_;
  std::vector<std::unique_ptr<Flight>> flights_;
  std::int64_t last_landed_ns_ = monotonic_ns();
};

Status Seat::form(int communicator) {
  const std::vector<int> members = mix_.members(epoch_, communicator, world_->rank());
  auto posted =
      communicator == 1 ? world_->post_split(world_->rank() % 2, -world_->rank()) : world_->post_new_group(members);
  TUTTI_ASSIGN_OR_RETURN(formation_, std::move(posted));
  return {};
}

Result<bool> Seat::is_formed(int communicator) {
  TUTTI_ASSIGN_OR_RETURN(const bool is_done, formation_->test());
  if (!is_done) return false;
  auto& made = groups_[static_cast<std::size_t>(communicator)];
  made = formation_->take();
  const std::vector<int> members = mix_.members(epoch_, communicator, world_->rank());
  const auto position = std::ranges::find(members, world_->rank());
  const bool is_member = position != members.end();
  const auto ranks = static_cast<int>(is_member ? members.size() : 0);
  const auto rank = static_cast<int>(is_member ? position - members.begin() : 0);
  const int got_ranks = made == nullptr ? 0 : made->ranks(), got_rank = made == nullptr ? 0 : made->rank();
  if (got_ranks == ranks && got_rank == rank) return true;
  return error(Code::mismatch, "rank {} is rank {} of {} in communicator {}, not {} of {}", world_->rank(), got_rank,
               got_ranks, communicator, rank, ranks);
}

Status Seat::end_epoch() {
  for (auto& group : groups_) {
    if (group == nullptr) continue;
    TUTTI_RETURN_IF_ERROR(group->free());
    group.reset();
  }
  return {};
}

Result<bool> Seat::turn(bool may_block, std::chrono::nanoseconds timeout) {
  const bool is_full = flights_.size() >= depth_;
  if (next_ < end_ && !is_full) {
    TUTTI_RETURN_IF_ERROR(post_next());
    return true;
  }
  if (flights_.empty()) return next_ < end_;
  if (may_block && draws(kPauses)) {
    std::this_thread::sleep_for(std::chrono::microseconds(random_() % kMostPauseUs));
  }
  const std::size_t chosen = random_() % flights_.size();
  bool is_done = may_block && draws(kBlockingWaits);
  if (is_done) {
    TUTTI_RETURN_IF_ERROR(flights_[chosen]->wait(timeout));
  } else {
    TUTTI_ASSIGN_OR_RETURN(is_done, flights_[chosen]->test());
  }
  if (is_done) TUTTI_RETURN_IF_ERROR(land(chosen));
  return true;
}

Result<bool> Seat::turn_in_order(Order& order) {
  if (next_ < end_ && flights_.size() < depth_) {
    order.went_on();
    TUTTI_RETURN_IF_ERROR(post_next());
    return true;
  }
  if (flights_.empty()) return next_ < end_;
  const std::size_t first = random_() % flights_.size();
  for (std::size_t i = 0; i < flights_.size(); ++i) {
    const std::size_t index = (first + i) % flights_.size();
    TUTTI_ASSIGN_OR_RETURN(const bool is_done, flights_[index]->test());
    if (!is_done) continue;
    order.went_on();
    TUTTI_RETURN_IF_ERROR(land(index));
    break;
  }
  return true;
}

std::string Seat::position() const {
  if (flights_.empty()) return fmt::format("rank {} has nothing in flight", world_->rank());
  return fmt::format("rank {}: {}: {}", world_->rank(), flights_.front()->name(), flights_.front()->position());
}

Status Seat::post_next() {
  const std::int64_t index = next_++;
  Group* const on = group(mix_.communicator_at(index));
  if (on == nullptr) return {};
  const SoakOperation operation = mix_.at(index, on->ranks());
  if (!operation.is_exchange) {
    const Status supported = on->supports({.what = operation.what, .is_in_place = operation.is_in_place});
    if (!supported.is_ok()) {
      ++not_run[std::string(supported.message())];
      return {};
    }
  }
  TUTTI_ASSIGN_OR_RETURN(auto flight, Flight::post(*on, operation));
  flights_.push_back(std::move(flight));
  report.most_in_flight = std::max<std::int64_t>(report.most_in_flight, std::ssize(flights_));
  return {};
}

Status Seat::land(std::size_t index) {
  const Flight& flight = *flights_[index];
  const std::string damage = flight.verify();
  ++report.verified;
  last_landed_ns_ = monotonic_ns();
  if (!damage.empty()) report.note(1, fmt::format("rank {}: {}: {}", world_->rank(), flight.name(), damage));
  const auto number = static_cast<std::int64_t>(flight.operation().what.salt) - 1;
  if (mix_.is_barrier(number)) {
    barriers_->add(number, world_->rank(), {.first_leave_ns = flight.left_ns(), .last_enter_ns = flight.entered_ns()});
  }
  std::swap(flights_[index], flights_.back());
  flights_.pop_back();
  depth_ = 1 + random_() % kSoakDepth;
  return {};
}

Status Seat::check(std::chrono::nanoseconds timeout) const {
  if (flights_.empty() || monotonic_ns() - last_landed_ns_ < timeout.count()) return {};
  return error(Code::timeout, "rank {} has completed nothing for {:.3g} s; {}: {}{}", world_->rank(),
               std::chrono::duration<double>(timeout).count(), flights_.front()->name(), flights_.front()->position(),
               flights_.front()->report());
}

/// Calls `turn` for every seat until it says true, in turn or in the runner's order.
template <class TakeTurn>
Status drive(Runner& runner, std::vector<std::unique_ptr<Seat>>& seats, TakeTurn turn) {
  if (runner.order() != nullptr) {
    return runner.order()->drive({.step = [&](std::size_t index) { return turn(*seats[index]); },
                                  .position = [&](std::size_t index) { return seats[index]->position(); },
                                  .look_around = [&] { return runner.check_abort(); }});
  }
  std::vector<bool> is_done(seats.size());
  const auto look = [&]() -> Result<Turn> {
    for (std::size_t i = 0; i < seats.size(); ++i) {
      if (is_done[i]) continue;
      TUTTI_ASSIGN_OR_RETURN(is_done[i], turn(*seats[i]));
    }
    return std::ranges::find(is_done, false) == is_done.end() ? Turn::done : Turn::idle;
  };
  // A little before the launcher, which knows the rank but not the operation.
  return runner.poll(look, [&] {
    for (const auto& seat : seats) TUTTI_RETURN_IF_ERROR(seat->check(runner.timeout() * 9 / 10));
    return Status();
  });
}

/// Tells how far runner 0 is.
class Teller {
 public:
  explicit Teller(const SoakPlace& place) : place_(place) {}

  Status tell(const std::vector<std::unique_ptr<Seat>>& seats) {
    if (place_.runner.index() != 0 || !place_.on_progress || monotonic_ns() < next_ns_) return {};
    next_ns_ = monotonic_ns() + kBetweenProgressNs;
    SoakProgress progress{.posted = seats.front()->posted()};
    for (const auto& seat : seats) {
      progress.posted = std::min(progress.posted, seat->posted());
      progress.verified += seat->report.verified;
      progress.wrong += seat->report.wrong;
    }
    return place_.on_progress(progress);
  }

 private:
  const SoakPlace& place_;
  std::int64_t next_ns_ = monotonic_ns() + kBetweenProgressNs;
};

/// All that ranks did in the epoch; `of_all` gets what only all runners together can tell.
Status run_epoch(const SoakSpec& spec, const SoakPlace& place, std::vector<std::unique_ptr<Seat>>& seats, int epoch,
                 Report& of_all) {
  Runner& runner = place.runner;
  Teller teller(place);
  EpochBarriers barriers(Mix(spec.seed, spec.ranks, spec.operations), epoch);
  for (const auto& seat : seats) seat->begin_epoch(epoch, barriers);
  for (int group = 1; group < kSoakCommunicators; ++group) {
    runner.announce(Activity::operation);
    for (const auto& seat : seats) TUTTI_RETURN_IF_ERROR(seat->form(group));
    TUTTI_RETURN_IF_ERROR(drive(runner, seats, [&](Seat& seat) { return seat.is_formed(group); }));
    runner.settle();
  }
  std::int64_t verified = -1;
  const bool may_block = seats.size() == 1;
  const auto turn = [&](Seat& seat) -> Result<bool> {
    TUTTI_ASSIGN_OR_RETURN(const bool goes_on, runner.order() != nullptr ? seat.turn_in_order(*runner.order())
                                                                         : seat.turn(may_block, spec.timeout));
    // The launcher's deadline is that of one operation.
    if (seat.report.verified != verified) {
      runner.announce(Activity::operation);
      TUTTI_RETURN_IF_ERROR(teller.tell(seats));
    }
    verified = seat.report.verified;
    return !goes_on;
  };
  TUTTI_RETURN_IF_ERROR(drive(runner, seats, turn));
  runner.settle();
  for (const auto& seat : seats) TUTTI_RETURN_IF_ERROR(seat->end_epoch());
  TUTTI_ASSIGN_OR_RETURN(const EpochBarriers::Verdict verdict, barriers.judge(runner));
  if (runner.index() != 0) return {};
  of_all.barriers += verdict.judged;
  if (verdict.wrong > 0) of_all.note(verdict.wrong, verdict.first_wrong);
  return {};
}

/// The counts of all runners, added up.
Result<Reasons> add_up(Runner& runner, const Reasons& mine) {
  struct Counted {
    std::int64_t count = 0;  ///< 0: this runner has no more
    std::array<char, 512> reason{};
  };
  Reasons sum;
  auto next = mine.begin();
  for (bool is_done = false; !is_done;) {
    Counted one;
    if (next != mine.end()) {
      one.count = next->second;
      next->first.copy(one.reason.data(), one.reason.size() - 1);
      ++next;
    }
    TUTTI_ASSIGN_OR_RETURN(const std::vector<Counted> all, runner.exchange(one));
    is_done = true;
    for (const Counted& each : all) {
      if (each.count == 0) continue;
      sum[each.reason.data()] += each.count;
      is_done = false;
    }
  }
  return sum;
}

/// What all runners found, the first wrong operation first.
Result<SoakResult> conclude(Runner& runner, const Report& mine, const Reasons& not_run) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<Report> all, runner.exchange(mine));
  SoakResult result;
  TUTTI_ASSIGN_OR_RETURN(result.not_run, add_up(runner, not_run));
  result.first_wrong = first_reason(all, &Report::first_wrong).text();
  for (const Report& report : all) {
    result.verified += report.verified;
    result.wrong += report.wrong;
    result.barriers += report.barriers;
    result.most_in_flight = std::max(result.most_in_flight, report.most_in_flight);
    result.leaked_descriptors += report.descriptors;
    result.leaked_mappings += report.mappings;
  }
  return result;
}

}  // namespace

std::string to_json(const SoakResult& result) {
  return nlohmann::json{{"verified", result.verified},
                        {"wrong", result.wrong},
                        {"first_wrong", result.first_wrong},
                        {"barriers", result.barriers},
                        {"most_in_flight", result.most_in_flight},
                        {"not_run", result.not_run},
                        {"leaked_descriptors", result.leaked_descriptors},
                        {"leaked_mappings", result.leaked_mappings},
                        {"steps", result.steps},
                        {"trace", result.trace}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string to_json(const SoakProgress& progress) {
  return nlohmann::json{{"posted", progress.posted}, {"verified", progress.verified}, {"wrong", progress.wrong}}.dump();
}

Result<SoakProgress> soak_progress_from_json(std::string_view text) {
  return read_json(Code::io, "a soak's progress", text, [](const nlohmann::json& json) -> Result<SoakProgress> {
    return SoakProgress{.posted = json.value("posted", std::int64_t{0}),
                        .verified = json.value("verified", std::int64_t{0}),
                        .wrong = json.value("wrong", std::int64_t{0})};
  });
}

Result<SoakResult> soak_from_json(std::string_view text) {
  return read_json(Code::io, "a soak's result", text, [](const nlohmann::json& json) -> Result<SoakResult> {
    return SoakResult{.verified = json.value("verified", std::int64_t{0}),
                      .wrong = json.value("wrong", std::int64_t{0}),
                      .first_wrong = json.value("first_wrong", ""),
                      .barriers = json.value("barriers", std::int64_t{0}),
                      .most_in_flight = json.value("most_in_flight", std::int64_t{0}),
                      .not_run = json.value("not_run", Reasons()),
                      .leaked_descriptors = json.value("leaked_descriptors", std::int64_t{0}),
                      .leaked_mappings = json.value("leaked_mappings", std::int64_t{0}),
                      .steps = json.value("steps", std::uint64_t{0}),
                      .trace = json.value("trace", std::uint64_t{0})};
  });
}

Result<SoakResult> run_soak(const SoakSpec& spec, const SoakPlace& place) {
  const Mix mix(spec.seed, spec.ranks, spec.operations);
  Runner& runner = place.runner;
  const bool is_own_process = spec.ranks_as->is_process;
  // Threads share their process: only between two exchanges, in which all stand still, is a count one's own.
  struct Nothing {};
  const bool counts = is_own_process || runner.index() == 0;
  std::int64_t descriptors_before = 0;
  const auto count_before = [&]() -> Status {
    TUTTI_RETURN_IF_ERROR(runner.exchange(Nothing()).status());
    descriptors_before = counts ? count_descriptors() : 0;
    return runner.exchange(Nothing()).status();
  };
  TUTTI_RETURN_IF_ERROR(count_before());
  Report mine;
  Reasons not_run;
  {
    std::vector<std::unique_ptr<Seat>> seats;
    for (const int rank : runner.ranks()) {
      TUTTI_ASSIGN_OR_RETURN(auto world, place.world(rank));
      seats.push_back(std::make_unique<Seat>(std::move(world), mix, spec.seed));
    }
    for (int epoch = 0; epoch < kSoakEpochs; ++epoch) {
      TUTTI_RETURN_IF_ERROR(run_epoch(spec, place, seats, epoch, mine));
      if (epoch == 0 && spec.spans_hosts) TUTTI_RETURN_IF_ERROR(count_before());
    }
    for (const auto& seat : seats) {
      mine.verified += seat->report.verified;
      mine.most_in_flight = std::max(mine.most_in_flight, seat->report.most_in_flight);
      if (seat->report.wrong > 0) mine.note(seat->report.wrong, seat->report.first_wrong.text());
      for (const auto& [reason, count] : seat->not_run) not_run[reason] += count;
    }
  }
  TUTTI_RETURN_IF_ERROR(runner.exchange(Nothing()).status());
  if (counts) {
    mine.descriptors = count_descriptors() - descriptors_before;
    mine.mappings = count_mappings("tutti-group");
  }
  TUTTI_ASSIGN_OR_RETURN(SoakResult result, conclude(runner, mine, not_run));
  if (runner.order() != nullptr) {
    result.steps = runner.order()->steps();
    result.trace = runner.order()->trace();
  }
  return result;
}

}  // namespace tutti::harness::soak
