// SPDX-License-Identifier: Apache-2.0
#include "harness/faults/stand_ins.h"

#include "harness/machine/clock.h"
#include "harness/measure/runner.h"

namespace tutti::harness::faults {
namespace {

class Intercepted final : public Prepared {
 public:
  Intercepted(std::unique_ptr<Prepared> calls, std::vector<StandIn> stand_ins, Interception what)
      : calls_(std::move(calls)),
        stand_ins_(std::move(stand_ins)),
        what_(std::move(what)),
        states_(stand_ins_.size()) {}

  Status post(std::size_t index) override {
    if (what_.before) what_.before(stand_ins_[index]);
    states_[index] = State();
    return calls_->post(index);
  }

  Result<bool> test(std::size_t index) override {
    State& state = states_[index];
    TUTTI_ASSIGN_OR_RETURN(const bool is_done, calls_->test(index));
    if (!is_done) return false;
    if (!state.is_complete) {
      state = {.is_complete = true, .complete_ns = monotonic_ns()};
      if (what_.after) what_.after(stand_ins_[index]);
    } else if (!state.is_over && monotonic_ns() - state.complete_ns >= what_.delay_ns) {
      state.is_over = true;
      if (what_.much_later) what_.much_later(stand_ins_[index]);
    }
    return true;
  }

  [[nodiscard]] std::string position(std::size_t index) const override { return calls_->position(index); }
  [[nodiscard]] std::string report() const override { return calls_->report(); }

 private:
  struct State {
    bool is_complete = false;
    bool is_over = false;
    std::int64_t complete_ns = 0;
  };
  std::unique_ptr<Prepared> calls_;
  std::vector<StandIn> stand_ins_;
  Interception what_;
  std::vector<State> states_;
};

}  // namespace

std::unique_ptr<Prepared> intercept(std::unique_ptr<Prepared> calls, std::vector<StandIn> stand_ins,
                                    Interception what) {
  return std::make_unique<Intercepted>(std::move(calls), std::move(stand_ins), std::move(what));
}

}  // namespace tutti::harness::faults
