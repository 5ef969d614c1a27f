// SPDX-License-Identifier: Apache-2.0
// Operations in the order that a seed draws: Variant::run_simulated.
#include <algorithm>
#include <limits>

#include "harness/measure/order.h"
#include "harness/measure/variant.h"

namespace tutti::harness::measure {

class Variant::Simulated {
 public:
  Simulated(Variant& variant, Order& order, int rounds)
      : variant_(variant),
        order_(order),
        rounds_(static_cast<std::size_t>(rounds)),
        seats_(variant.memory_.size()),
        times_(rounds_, {.first_leave_ns = std::numeric_limits<std::int64_t>::max(), .last_enter_ns = 0}) {}

  Result<Damage> run() {
    for (std::size_t i = 0; i < seats_.size(); ++i) refill(i, 1);
    TUTTI_RETURN_IF_ERROR(order_.drive({.step = [this](std::size_t index) { return step(index); },
                                        .position = [this](std::size_t index) { return position(index); },
                                        .look_around = [this] { return variant_.runner_->check_abort(); }}));
    if (variant_.case_.collective == Collective::barrier) check_barriers();
    return damage_;
  }

 private:
  struct Seat {
    std::size_t rounds = 0;  ///< that have ended
    bool is_posted = false;
  };

  Result<bool> step(std::size_t index) {
    Seat& seat = seats_[index];
    if (!seat.is_posted) {
      variant_.announce();
      times_[seat.rounds].last_enter_ns = std::max(times_[seat.rounds].last_enter_ns, now());
      seat.is_posted = true;
      TUTTI_RETURN_IF_ERROR(variant_.prepared_->post(index));
      order_.went_on();
      return false;
    }
    TUTTI_ASSIGN_OR_RETURN(const bool is_complete, variant_.prepared_->test(index));
    if (!is_complete) return false;
    order_.went_on();
    times_[seat.rounds].first_leave_ns = std::min(times_[seat.rounds].first_leave_ns, now());
    verify(index);
    seat.is_posted = false;
    ++seat.rounds;
    // A rank that has returned from its call may write to its buffers, whatever the others are doing.
    refill(index, seat.rounds + 1);
    return seat.rounds == rounds_;
  }

  /// A simulation's clock: the steps taken.
  [[nodiscard]] std::int64_t now() const { return static_cast<std::int64_t>(order_.steps()); }

  void refill(std::size_t index, std::uint64_t salt) {
    variant_.salt_ = salt;
    variant_.refill_rank(index);
  }

  void verify(std::size_t index) {
    variant_.salt_ = seats_[index].rounds + 1;
    note(variant_.verify_ranks(index, index + 1), seats_[index].rounds);
  }

  void check_barriers() {
    for (std::size_t round = 0; round < rounds_; ++round) {
      const BarrierTimes& times = times_[round];
      if (times.first_leave_ns >= times.last_enter_ns) continue;
      note({.wrong = 1,
            .text = fmt::format("a rank left the barrier at step {}, before the last had entered, at step {}",
                                times.first_leave_ns, times.last_enter_ns)},
           round);
    }
  }

  void note(const Damage& found, std::size_t round) {
    if (found.wrong == 0) return;
    if (damage_.wrong == 0) {
      damage_ = found;
      damage_.text = fmt::format("operation {} of {}: {}", round + 1, rounds_, found.text);
      return;
    }
    damage_.wrong += found.wrong;
  }

  [[nodiscard]] std::string position(std::size_t index) const {
    return fmt::format("{}: rank {} stands in operation {} of {}: {}", case_id(variant_.case_),
                       variant_.runner_->ranks()[index], seats_[index].rounds + 1, rounds_,
                       variant_.prepared_->position(index));
  }

  Variant& variant_;
  Order& order_;
  std::size_t rounds_;
  std::vector<Seat> seats_;
  std::vector<BarrierTimes> times_;  // by round
  Damage damage_;
};

Result<Damage> Variant::run_simulated(Order& order, int rounds) { return Simulated(*this, order, rounds).run(); }

}  // namespace tutti::harness::measure
