// SPDX-License-Identifier: Apache-2.0
#include "impl/prove/prove_steps.h"

#include <optional>
#include <vector>

#include "impl/prove/quotient.h"
#include "impl/prove/symmetry.h"
#include "impl/schedule/check.h"

namespace tutti {
namespace {

class StepsProver {
 public:
  explicit StepsProver(const Schedule& schedule) : schedule_(schedule), problem_(schedule.problem) {}

  Result<StepsProof> run() {
    const std::optional<Symmetry> symmetry = find_symmetry(schedule_);
    if (!symmetry) {
      return error(Code::unavailable, "{}: no rank stands for all", subject());
    }
    proof_.way = symmetry->name();
    TUTTI_RETURN_IF_ERROR(prove_by(*symmetry));
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

  Status prove_by(const Symmetry& symmetry) {
    std::vector<Step> program;
    for (int i = 0; i < schedule_.step_count(0); ++i) program.push_back(schedule_.step(0, i));
    TUTTI_RETURN_IF_ERROR(check_flaws(program));
    const int stated = schedule_.shape.largest_message == 0 ? 0 : schedule_.least_slots(1);
    const bool has_in_place = has_data(problem_.collective) && !schedule_.stages_in_place;
    for (const bool is_in_place : {false, true}) {
      if (is_in_place && !has_in_place) continue;
      const steps::Form form{.slots = std::max(1, stated), .is_in_place = is_in_place};
      const OneRank one = prove_one_rank(schedule_, symmetry, program, form);
      if (!one.findings.empty()) return refuted(one.findings, is_in_place);
      ++proof_.forms;
      if (is_in_place) continue;
      TUTTI_RETURN_IF_ERROR(check_cost(one.cost));
      TUTTI_RETURN_IF_ERROR(check_synchronises(one));
    }
    proof_.least_slots = stated;
    if (stated < 2) return {};
    const OneRank narrow = prove_one_rank(schedule_, symmetry, program, {.slots = stated - 1, .is_in_place = false});
    if (narrow.is_stuck) return {};
    return error(Code::refuted, "{}: {} slots are stated for messages of one slice, but {} are enough", subject(),
                 stated, stated - 1);
  }

  [[nodiscard]] Status check_flaws(const std::vector<Step>& program) const {
    Place place;
    for (std::size_t i = 0; i < program.size(); ++i) {
      place.is_last = i + 1 == program.size();
      const std::string flaw = flaw_of(schedule_, program[i], place);
      if (!flaw.empty()) {
        return refuted({{.rank = 0, .step = static_cast<int>(i), .message = flaw}}, false);
      }
      place.is_in_turn_with_previous = program[i].in_turn_with_next;
    }
    return {};
  }

  [[nodiscard]] Status check_cost(const Cost& is) const {
    for (int rank = 0; rank < problem_.ranks; ++rank) {
      const Cost stated = schedule_.cost(rank);
      if (is == stated) continue;
      return error(
          Code::refuted,
          "{}: rank {}: the cost formula says {} steps, {} messages, {} units, depth {}; the steps have {}, {}, {}, {}",
          subject(), rank, stated.steps, stated.messages, stated.units, stated.depth, is.steps, is.messages, is.units,
          is.depth);
    }
    return {};
  }

  Status check_synchronises(const OneRank& one) {
    proof_.synchronises = schedule_.synchronises;
    if (one.has_heard_of_all) return {};
    if (problem_.collective == Collective::barrier) {
      return error(Code::refuted, "{}: a rank can end before another has started, though this is a barrier", subject());
    }
    if (!schedule_.synchronises) return {};
    return error(Code::refuted, "{}: synchronises is false, but true is stated", subject());
  }

  const Schedule& schedule_;
  const Problem& problem_;
  StepsProof proof_;
};

}  // namespace

Result<StepsProof> prove_steps(const Schedule& schedule) { return StepsProver(schedule).run(); }

}  // namespace tutti
