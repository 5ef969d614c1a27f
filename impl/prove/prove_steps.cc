// SPDX-License-Identifier: Apache-2.0
#include "impl/prove/prove_steps.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "impl/prove/columns.h"
#include "impl/prove/copies.h"
#include "impl/prove/quotient.h"
#include "impl/prove/reasons.h"
#include "impl/prove/stable_sends.h"
#include "impl/prove/steps_walk.h"
#include "impl/prove/symmetry.h"
#include "impl/schedule/check.h"

namespace tutti {
namespace {

constexpr std::int64_t kMostBytesOfValues = std::int64_t{800} << 20U;

/// What was derived in one form: `costs` are of all ranks, or one that stands for all.
struct Derived {
  std::vector<Finding> findings;
  std::vector<Cost> costs;
  bool has_heard_of_all = false;
  bool is_through = false;  ///< all steps were done, so `costs` are those of all steps
  bool is_stuck = false;
  steps::ValueLabels labels;
};

class StepsProver {
 public:
  explicit StepsProver(const Schedule& schedule)
      : schedule_(schedule), problem_(schedule.problem), symmetry_(find_symmetry(schedule)) {}

  Result<StepsProof> run() {
    if (symmetry_) {
      proof_.group = symmetry_->name();
      for (int i = 0; i < schedule_.step_count(0); ++i) program_.push_back(schedule_.step(0, i));
      TUTTI_RETURN_IF_ERROR(check_flaws());
    } else if (match()) {  // every send is of an input, which stays
      proof_.is_matched = true;
      return proof_with_cost();
    } else if (is_by_columns()) {
      proof_.group = "columns";
      return proof_with_cost();
    } else if (const std::int64_t bytes = bytes_of_values(schedule_); bytes > kMostBytesOfValues) {
      return error(Code::unavailable, "{}: no rank stands for all, and the values of all are {} MiB, of at most {}",
                   subject(), bytes >> 20U, kMostBytesOfValues >> 20U);
    }
    prove_forms();
    check_slots();
    TUTTI_RETURN_IF_ERROR(reasons_.status());
    derive_stable_sends();
    return proof_;
  }

 private:
  [[nodiscard]] std::string subject() const {
    return fmt::format("{} {} on {} ranks, root {}", to_string(problem_.collective), schedule_.name, problem_.ranks,
                       problem_.root);
  }
  [[nodiscard]] Status refuted(const std::vector<Finding>& findings, bool is_in_place) const {
    constexpr std::size_t kShown = 3;
    std::string text;
    for (std::size_t i = 0; i < findings.size() && i < kShown; ++i) text += "\n  " + to_string(findings[i]);
    return error(Code::refuted, "{}, {} place, in units:{}", subject(), is_in_place ? "in" : "out of", text);
  }

  [[nodiscard]] bool has_in_place() const { return has_data(problem_.collective) && !schedule_.stages_in_place; }
  [[nodiscard]] bool must_synchronise() const {
    return schedule_.synchronises || problem_.collective == Collective::barrier;
  }

  /// Whether it only copies, rightly, with the one slot that is stated.
  bool match() {
    if (stated_slots() > 1 || (must_synchronise() && !needs_all_inputs())) return false;
    costs_ = match_copies(schedule_, std::max(1, stated_slots()), has_in_place());
    return costs_.has_value();
  }
  /// Whether every rank works on a column of its own, rightly.
  bool is_by_columns() {
    auto columns = prove_columns(schedule_, has_in_place());
    if (!columns || (must_synchronise() && !columns->has_heard_of_all)) return false;
    costs_ = std::move(columns->costs);
    keeps_order_ = columns->keeps_order;
    return true;
  }
  Result<StepsProof> proof_with_cost() {
    TUTTI_RETURN_IF_ERROR(check_cost(*costs_));
    proof_.forms = has_in_place() ? 2 : 1;
    proof_.least_slots = stated_slots();
    proof_.synchronises = schedule_.synchronises;
    proof_.keeps_order = keeps_order_;
    proof_.same_bits = true;  // no two ranks get the same sum
    return proof_;
  }

  [[nodiscard]] int stated_slots() const { return schedule_.shape.largest_message == 0 ? 0 : schedule_.least_slots(1); }

  void derive_stable_sends() {
    const int ranks = symmetry_ ? 1 : problem_.ranks;
    for (int rank = 0; rank < ranks && proof_.sends_are_stable; ++rank) {
      proof_.sends_are_stable = sends_are_stable(schedule_, rank);
    }
  }

  [[nodiscard]] Derived derive(steps::Form form, bool counts_news) const {
    if (!symmetry_) {
      AllRanks all = walk_steps(schedule_, {.form = form, .counts_news = counts_news});
      return {.findings = std::move(all.findings),
              .costs = std::move(all.costs),
              .has_heard_of_all = all.has_heard_of_all,
              .is_through = !all.is_stuck,
              .is_stuck = all.is_stuck,
              .labels = all.labels};
    }
    OneRank one = prove_one_rank(schedule_, *symmetry_, program_, form);
    return {.findings = std::move(one.findings),
            .costs = {one.cost},
            .has_heard_of_all = one.has_heard_of_all,
            .is_through = one.is_through,
            .is_stuck = one.is_stuck,
            .labels = one.labels};
  }

  void prove_forms() {
    for (const bool is_in_place : {false, true}) {
      if (is_in_place && !has_in_place()) continue;
      const steps::Form form{.slots = std::max(1, stated_slots()), .is_in_place = is_in_place};
      const Derived derived = derive(form, must_synchronise() && !is_in_place && !needs_all_inputs());
      const bool is_refuted = !derived.findings.empty();
      if (is_refuted) reasons_.add(refuted(derived.findings, is_in_place));
      if (!is_in_place && derived.is_through) reasons_.add(check_cost(derived.costs));
      has_refuted_form_ |= is_refuted;
      if (is_refuted) continue;
      ++proof_.forms;
      if (is_in_place) continue;
      proof_.keeps_order = derived.labels.keeps_order;
      proof_.same_bits = derived.labels.same_bits;
      if (!must_synchronise()) continue;
      if (!needs_all_inputs() && !derived.has_heard_of_all) {
        reasons_.add(error(Code::refuted, "{}: a rank can end before another one has started, though {}", subject(),
                           schedule_.synchronises ? "true is stated of synchronises" : "this is a barrier"));
      }
      proof_.synchronises = true;
    }
  }

  /// Every output is made of something of every rank, and every rank has one: then nobody ends before all have started.
  [[nodiscard]] bool needs_all_inputs() const {
    switch (problem_.collective) {
      case Collective::all_reduce:
      case Collective::reduce_scatter:
      case Collective::all_gather:
      case Collective::all_to_all:
        return true;
      default:
        return false;
    }
  }

  /// Of rank 0: the other ranks' steps are the same, taken there.
  [[nodiscard]] Status check_flaws() const {
    Place place;
    for (std::size_t i = 0; i < program_.size(); ++i) {
      place.is_last = i + 1 == program_.size();
      const std::string flaw = flaw_of(schedule_, program_[i], place);
      if (!flaw.empty()) return refuted({{.rank = 0, .step = static_cast<int>(i), .message = flaw}}, false);
      place.is_in_turn_with_previous = program_[i].in_turn_with_next;
    }
    return {};
  }

  /// The depth is the problem's, so a rank whose own steps are wrong is named first.
  [[nodiscard]] Status check_cost(const std::vector<Cost>& costs) const {
    for (const bool counts_depth : {false, true}) {
      for (int rank = 0; rank < problem_.ranks; ++rank) {
        Cost is = costs.size() == 1 ? costs[0] : costs[static_cast<std::size_t>(rank)];
        const Cost stated = schedule_.cost(rank);
        const std::int64_t depth = is.depth;
        if (!counts_depth) is.depth = stated.depth;
        if (is == stated) continue;
        return error(Code::refuted,
                     "{}: rank {}: the cost formula says {} steps, {} messages, {} units, depth {}; the steps have {}, "
                     "{}, {}, {}",
                     subject(), rank, stated.steps, stated.messages, stated.units, stated.depth, is.steps, is.messages,
                     is.units, depth);
      }
    }
    return {};
  }

  /// That not one slot less would do.
  void check_slots() {
    proof_.least_slots = stated_slots();
    if (proof_.least_slots < 2 || has_refuted_form_) return;
    const steps::Form narrow{.slots = proof_.least_slots - 1, .is_in_place = false};
    if (derive(narrow, false).is_stuck) return;
    reasons_.add(error(Code::refuted, "{}: {} slots are stated for messages of one slice, but {} {} enough", subject(),
                       narrow.slots + 1, narrow.slots, narrow.slots == 1 ? "is" : "are"));
  }

  const Schedule& schedule_;
  const Problem& problem_;
  std::optional<Symmetry> symmetry_;
  std::vector<Step> program_;               ///< rank 0's
  std::optional<std::vector<Cost>> costs_;  ///< of the ways that know them at once
  bool keeps_order_ = true;                 ///< of them
  Reasons reasons_;
  bool has_refuted_form_ = false;
  StepsProof proof_;
};

}  // namespace

Result<StepsProof> prove_steps(const Schedule& schedule) {
  TUTTI_ASSIGN_OR_RETURN(StepsProof proof, StepsProver(schedule).run());
  TUTTI_ASSIGN_OR_RETURN(proof.refined, refine_some_plans(schedule));
  return proof;
}

std::optional<SmallerFault> find_smaller_fault(const std::string& reason, int ranks,
                                               const std::function<std::optional<Schedule>(int)>& make) {
  const std::string fault = fault_of(reason);
  const auto on = [&](int fewer) -> std::optional<SmallerFault> {
    const std::optional<Schedule> schedule = make(fewer);
    if (!schedule) return {};
    const auto proof = prove_steps(*schedule);
    if (proof.is_ok()) return {};
    for (std::string& said : reasons_in(proof.status().message())) {
      if (fault_of(said) == fault) return SmallerFault{.ranks = fewer, .message = std::move(said)};
    }
    return {};
  };
  constexpr int kOneByOne = 256;
  for (int fewer = 1; fewer < ranks && fewer <= kOneByOne; ++fewer) {
    if (auto found = on(fewer)) return found;
  }
  // What begins further up goes on from there: a number that becomes too large.
  auto found = ranks > kOneByOne + 1 ? on(ranks - 1) : std::nullopt;
  for (int without = kOneByOne; found && found->ranks - without > 1;) {
    const int middle = without + (found->ranks - without) / 2;
    if (auto lower = on(middle)) {
      found = std::move(lower);
    } else {
      without = middle;
    }
  }
  return found;
}

}  // namespace tutti
