// SPDX-License-Identifier: Apache-2.0
#include "impl/prove/columns.h"

#include <algorithm>
#include <cstdint>

#include "impl/prove/steps.h"
#include "impl/schedule/check.h"
#include "impl/schedule/turning.h"

namespace tutti {
namespace {

class ColumnProver {
 public:
  explicit ColumnProver(const Schedule& schedule)
      : schedule_(schedule),
        problem_(schedule.problem),
        ranks_(problem_.ranks),
        width_(schedule.shape.units_per_block / std::max(1, ranks_)) {}

  std::optional<Columns> run(bool is_in_place_too) {
    if (!has_columns() || !has_one_program() || !has_right_flags()) return {};
    for (const bool is_in_place : {false, true}) {
      if (is_in_place && !is_in_place_too) continue;
      if (!execute({.slots = 1, .is_in_place = is_in_place})) return {};
    }
    return Columns{.costs = costs(), .has_heard_of_all = !waits_.empty(), .keeps_order = keeps_order_};
  }

 private:
  /// A SIGNAL to all others, at the same index of every program.
  struct Show {
    int index;
    int phase;
    std::vector<Exposure> reads;   ///< by rank
    std::vector<Exposure> writes;  ///< by rank
  };

  [[nodiscard]] bool has_columns() const {
    if (schedule_.turning != Turning::columns || ranks_ < 2 || width_ * ranks_ != schedule_.shape.units_per_block) {
      return false;
    }
    for (int rank = 0; rank < ranks_; ++rank) {
      const bool is_one_block = input_blocks(problem_, rank) == 1 && output_blocks(problem_, rank) <= 1;
      if (!is_one_block || in_place_block(problem_, rank) != 0) return false;
    }
    return true;
  }

  /// Takes rank 0's steps and all SIGNALs. The other steps are turned by the library: some ranks are compared, so that
  /// a schedule with other steps under the same name is noticed.
  bool has_one_program() {
    const int count = schedule_.step_count(0);
    for (int rank = 0; rank < ranks_; ++rank) {
      if (schedule_.step_count(rank) != count) return false;
    }
    Place place;
    for (int i = 0; i < count; ++i) {
      program_.push_back(schedule_.step(0, i));
      place.is_last = i + 1 == count;
      if (!flaw_of(schedule_, program_.back(), place).empty() || program_.back().in_turn_with_next) return false;
      if (program_.back().verb == Verb::signal && !take_signals(i)) return false;
    }
    const Turner turner(problem_, schedule_.shape, Turning::columns);
    constexpr int kFew = 64;
    for (int rank = 1; rank<ranks_; rank += ranks_> kFew ? std::max(1, (ranks_ - 2) / 2) : 1) {
      for (int i = 0; i < count; ++i) {
        const Step& first = program_[static_cast<std::size_t>(i)];
        if (first.verb != Verb::signal && !(schedule_.step(rank, i) == turner.turned(first, rank))) return false;
      }
    }
    return true;
  }

  [[nodiscard]] bool is_to_others(const RankSet& set, int rank) const {
    return set.n == ranks_ - 1 && (set.n == 1 || set.stride == 1) && set.first == (rank + 1) % ranks_;
  }

  bool take_signals(int index) {
    const int phase = program_[static_cast<std::size_t>(index)].phase;
    Show show{.index = index, .phase = phase, .reads = {}, .writes = {}};
    for (int rank = 0; rank < ranks_; ++rank) {
      const Step step = schedule_.step(rank, index);
      const bool is_same = step.verb == Verb::signal && step.phase == phase && is_to_others(step.ranks, rank);
      if (!is_same || !flaw_of(schedule_, step, Place{}).empty()) return false;
      for (const Exposure* const exposure : {&step.read, &step.write}) {
        const bool is_column = steps::is_user(exposure->space) && exposure->per_target == width_;
        if (!exposure->is_empty() && !is_column) return false;
      }
      show.reads.push_back(step.read);
      show.writes.push_back(step.write);
    }
    shows_.push_back(std::move(show));
    return true;
  }

  /// Phases rise; each is signalled once and then waited for once. What is exposed is closed by a WAIT for a later one.
  bool has_right_flags() {
    int last_signal = 0, last = 0;
    for (int i = 0; i < static_cast<int>(program_.size()); ++i) {
      const Step& step = program_[static_cast<std::size_t>(i)];
      if (step.verb == Verb::move) continue;
      if (!is_to_others(step.ranks, 0)) return false;
      if (step.verb == Verb::signal) {
        if (step.phase <= last_signal) return false;
        last_signal = step.phase;
        last = std::max(last, step.phase);
        continue;
      }
      const auto is_before = [&](const Show& show) { return show.phase == step.phase && show.index < i; };
      const bool is_new = waits_.empty() || program_[static_cast<std::size_t>(waits_.back())].phase < step.phase;
      if (step.phase < last || !is_new || std::ranges::none_of(shows_, is_before)) return false;
      last = step.phase;
      waits_.push_back(i);
    }
    if (waits_.size() != shows_.size()) return false;
    for (const Show& show : shows_) {
      const auto is_open = [](const Exposure& exposure) { return !exposure.is_empty(); };
      const bool exposes = std::ranges::any_of(show.reads, is_open) || std::ranges::any_of(show.writes, is_open);
      const bool is_closed = program_[static_cast<std::size_t>(waits_.back())].phase > show.phase;
      if (exposes && !is_closed) return false;
    }
    return true;
  }

  bool execute(const steps::Form& form) {
    const auto width = static_cast<std::size_t>(width_);
    inputs_.assign(form.is_in_place ? 0 : static_cast<std::size_t>(ranks_) * width, {});
    outputs_.assign(static_cast<std::size_t>(ranks_) * width, {});
    scratch_.assign(static_cast<std::size_t>(schedule_.shape.scratch_units), {});
    std::vector<steps::Sum>& inputs = form.is_in_place ? outputs_ : inputs_;
    for (int rank = 0; rank < ranks_; ++rank) {
      for (int unit = 0; unit < width_; ++unit) {
        inputs[static_cast<std::size_t>(rank) * width + static_cast<std::size_t>(unit)] =
            steps::Sum::of_input(rank, unit);
      }
    }
    steps::Overlaps overlaps(problem_, schedule_.shape.units_per_block, form);
    signalled_ = waited_ = 0;
    clock_ = 0;
    for (const Step& step : program_) {
      if (step.verb == Verb::signal) signalled_ = step.phase;
      if (step.verb == Verb::wait) {
        waited_ = step.phase;
        const auto show = std::ranges::find(shows_, step.phase, &Show::phase);
        clock_ = std::max(clock_, clock_at(show->index) + 1);
      }
      clocks_.push_back(clock_);
      if (step.verb == Verb::move && !move(step, form, overlaps)) return false;
    }
    clocks_.clear();
    return has_right_outputs(form);
  }
  /// When rank 0, and so every rank, came to step `index`.
  [[nodiscard]] std::int64_t clock_at(int index) const { return clocks_[static_cast<std::size_t>(index)]; }

  /// Whether the operand lies in rank 0's column, or in its scratch.
  [[nodiscard]] bool is_own(const Operand& operand, std::int64_t length) const {
    if (count_of(operand.units) != length || operand.units.repeat != 1 || operand.units.start < 0) return false;
    const std::int64_t end = std::int64_t{operand.units.start} + operand.units.length;
    if (steps::is_user(operand.space)) return end <= width_;
    return operand.space == Space::scratch && operand.ranks == only(0) && end <= schedule_.shape.scratch_units;
  }
  /// Whether every rank but the owner may touch the operand now, on every owner.
  [[nodiscard]] bool is_shown(const Operand& operand, bool is_write) const {
    if (!steps::is_user(operand.space)) return true;
    for (int i = 0; i < operand.ranks.n; ++i) {
      const int owner = operand.ranks.at(i, ranks_);
      const auto shows_all = [&](const Show& show) {
        if (show.phase > waited_ || show.phase < signalled_) return false;
        const Exposure& exposure = (is_write ? show.writes : show.reads)[static_cast<std::size_t>(owner)];
        const int count = schedule_.shape.units_per_block;
        bool is_all = !exposure.is_empty() && exposure.space == operand.space;
        for (int k = 0; is_all && k < operand.units.length; ++k) {
          is_all = steps::contains(exposure.units, operand.units.start + k, count);
        }
        return is_all;
      };
      if (std::ranges::none_of(shows_, shows_all)) return false;
    }
    return true;
  }
  [[nodiscard]] steps::Sum& value_at(Space space, int owner, int unit, const steps::Form& form) {
    if (space == Space::scratch) return scratch_[static_cast<std::size_t>(unit)];
    std::vector<steps::Sum>& user = space == Space::input && !form.is_in_place ? inputs_ : outputs_;
    return user[static_cast<std::size_t>(owner) * static_cast<std::size_t>(width_) + static_cast<std::size_t>(unit)];
  }

  bool move(const Step& step, const steps::Form& form, steps::Overlaps& overlaps) {
    const std::int64_t length = length_of(step);
    terms_.assign(static_cast<std::size_t>(length), steps::Sum::nothing());
    int sources = 0;
    for (const Operand& from : step.sources) {
      if (!is_own(from, length) || !is_shown(from, false)) return false;
      sources += from.ranks.n;
      for (int i = 0; i < from.ranks.n; ++i) {
        if (from.space == Space::output && output_blocks(problem_, from.ranks.at(i, ranks_)) == 0) return false;
        for (int k = 0; k < from.units.length; ++k) {
          const steps::Sum& value = value_at(from.space, from.ranks.at(i, ranks_), from.units.start + k, form);
          if (value.finals == steps::Sum::kUnwritten) return false;
          terms_[static_cast<std::size_t>(k)].reduce(value);
        }
      }
    }
    const auto is_final = [](const steps::Sum& value) { return value.finals > 0; };
    if (sources > 1 && std::ranges::any_of(terms_, is_final)) return false;
    ++clock_;
    for (steps::Sum& value : terms_) value.finals += step.is_final ? 1 : 0;
    kept_.clear();
    for (const Operand& to : step.destinations) {
      if (!is_own(to, length) || to.space == Space::input) return false;
      if (!steps::is_copy_onto_itself(problem_, schedule_.shape.units_per_block, form, step, to)) kept_.push_back(&to);
    }
    const auto units_of = [&](int /*rank*/, Space space) {
      return space == Space::scratch ? schedule_.shape.scratch_units : schedule_.shape.units_per_block;
    };
    if (!kept_.empty() && *overlaps.find(step, length, units_of) != '\0') return false;
    for (const Operand* const to : kept_) {
      if (!is_shown(*to, true)) return false;
      for (int i = 0; i < to->ranks.n; ++i) {
        if (to->space == Space::output && output_blocks(problem_, to->ranks.at(i, ranks_)) == 0) return false;
        for (int k = 0; k < to->units.length; ++k) {
          value_at(to->space, to->ranks.at(i, ranks_), to->units.start + k, form) = terms_[static_cast<std::size_t>(k)];
        }
      }
    }
    return true;
  }

  bool has_right_outputs(const steps::Form& form) {
    const bool divides = is_reducing(problem_.collective) && takes_op(problem_.collective, Op::avg);
    for (int rank = 0; rank < ranks_; ++rank) {
      if (output_blocks(problem_, rank) == 0) continue;
      const Origin origin = origin_of(problem_, rank, 0);
      for (int unit = 0; unit < width_; ++unit) {
        const steps::Sum& value = value_at(Space::output, rank, unit, form);
        const bool is_right = value.finals != steps::Sum::kUnwritten &&
                              value.sum == steps::sum_of_inputs(origin, origin.block * width_ * ranks_ + unit);
        if (!is_right || (divides && value.finals != 1)) return false;
        keeps_order_ = keeps_order_ && (form.is_in_place || value.is_in_order(origin));
      }
    }
    return true;
  }

  /// As derive_cost counts them: of a set that holds the rank, one operand is not remote.
  std::vector<Cost> costs() {
    std::int64_t all = 0;
    std::vector<std::int64_t> own(static_cast<std::size_t>(ranks_));
    for (const Step& step : program_) {
      if (step.verb != Verb::move) continue;
      const std::int64_t length = length_of(step);
      for (const Operands<4>* const list : {&step.destinations, &step.sources}) {
        for (const Operand& operand : *list) {
          if (!steps::is_user(operand.space)) continue;
          all += operand.ranks.n * length;
          for (int i = 0; i < operand.ranks.n; ++i) {
            own[static_cast<std::size_t>(operand.ranks.at(i, ranks_))] += length;
          }
        }
      }
    }
    std::vector<Cost> costs;
    for (const std::int64_t units : own) {
      costs.push_back(
          {.steps = static_cast<std::int64_t>(program_.size()), .messages = 0, .units = all - units, .depth = clock_});
    }
    return costs;
  }

  const Schedule& schedule_;
  const Problem& problem_;
  int ranks_;
  int width_;                  ///< units of a column
  std::vector<Step> program_;  ///< rank 0's
  std::vector<Show> shows_;    ///< SIGNALs
  std::vector<int> waits_;     ///< where the WAITs are
  int signalled_ = 0;
  int waited_ = 0;
  bool keeps_order_ = true;  ///< out of place
  std::int64_t clock_ = 0;
  std::vector<std::int64_t> clocks_;  ///< before each step
  std::vector<steps::Sum> inputs_;    ///< by owner and unit of the column; in place they are the outputs
  std::vector<steps::Sum> outputs_;
  std::vector<steps::Sum> scratch_;
  std::vector<steps::Sum> terms_;  ///< of the MOVE at hand
  std::vector<const Operand*> kept_;
};

}  // namespace

std::optional<Columns> prove_columns(const Schedule& schedule, bool is_in_place_too) {
  return ColumnProver(schedule).run(is_in_place_too);
}

}  // namespace tutti
