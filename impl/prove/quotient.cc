// SPDX-License-Identifier: Apache-2.0
#include "impl/prove/quotient.h"

#include <algorithm>
#include <array>
#include <deque>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <climits>

#include "impl/prove/findings.h"
#include "impl/prove/quotient_races.h"
#include "impl/prove/quotient_values.h"

namespace tutti {
namespace {

class Quotient {
 public:
  Quotient(const Schedule& schedule, const Symmetry& symmetry, std::span<const Step> program, steps::Form form,
           OneRank& result)
      : schedule_(schedule),
        problem_(schedule.problem),
        symmetry_(symmetry),
        program_(program),
        form_(form),
        overlaps_(problem_, schedule.shape.units_per_block, form),
        result_(result),
        ranks_(problem_.ranks),
        inputs_(symmetry.units(Space::input)),
        values_(schedule, symmetry) {}

  void run() {
    prepare();
    for (index_ = 0; index_ < static_cast<int>(program_.size()); ++index_) {
      if (!execute(program_[static_cast<std::size_t>(index_)])) break;
    }
    const bool is_through = index_ == static_cast<int>(program_.size());
    if (is_through && check_left_over() && check_exposures()) {
      races_.check(findings_);
      values_.check_outputs(memory(Space::output), findings_);
      if (findings_.is_empty() && !form_.is_in_place) {
        result_.labels = values_.labels(schedule_, memory(Space::output));
      }
    }
    result_.is_through = is_through;
    result_.has_heard_of_all = is_through && heard_.size() == has_heard_.size();
    result_.cost.steps = static_cast<std::int64_t>(program_.size());
    result_.cost.depth = clock_;
    result_.findings = findings_.take();
  }

 private:
  static constexpr int kNever = INT_MAX;

  struct Message {
    std::vector<Taken> values;
    std::int64_t clock;
    std::size_t news;  ///< how many of heard_ it tells
    int step;
  };
  /// A SIGNAL of the program; where it exposes, close[t] is the first WAIT for a later phase of rank t.
  struct Signal {
    int index;
    std::int64_t clock;
    std::size_t news;
    std::vector<int> close;
  };
  [[nodiscard]] const Step& step_of(const Signal& signal) const {
    return program_[static_cast<std::size_t>(signal.index)];
  }
  template <class... Args>
  bool fail(fmt::format_string<Args...> format, Args&&... args) {
    findings_.add(0, index_, format, std::forward<Args>(args)...);
    return false;
  }
  template <class... Args>
  bool stuck(fmt::format_string<Args...> format, Args&&... args) {
    result_.is_stuck = true;
    return fail(format, std::forward<Args>(args)...);
  }

  void prepare() {
    const int outputs = symmetry_.units(Space::output);
    memory(Space::output)
        .assign(static_cast<std::size_t>(form_.is_in_place ? std::max(inputs_, outputs) : outputs), {});
    memory(Space::scratch).assign(static_cast<std::size_t>(symmetry_.units(Space::scratch)), {});
    for (int unit = 0; unit < inputs_ && form_.is_in_place; ++unit) {
      memory(Space::output)[static_cast<std::size_t>(unit)] = {.node = unit, .element = 0};
    }
    has_heard_.assign(static_cast<std::size_t>(ranks_), 0);
    has_heard_[0] = 1;
    told_.assign(static_cast<std::size_t>(ranks_), 0);
    heard_.push_back(0);
    int last = 0;
    for (int i = 0; i < static_cast<int>(program_.size()); ++i) {
      const Step& step = program_[static_cast<std::size_t>(i)];
      if (step.verb == Verb::move) continue;
      has_flags_ = true;
      if (step.verb == Verb::wait) continue;
      if (step.phase <= last) {
        findings_.add(0, i, "SIGNAL of phase {} after phase {}: phases must rise", step.phase, last);
      }
      last = std::max(last, step.phase);
      if (!step.read.is_empty() || !step.write.is_empty()) shows_.push_back(signals_.size());
      by_phase_.try_emplace(step.phase, signals_.size());
      signals_.push_back({.index = i, .clock = 0, .news = 0, .close = {}});
      signalled_pairs_ += step.ranks.n;
    }
    if (!has_flags_) return;
    waited_.assign(static_cast<std::size_t>(ranks_), 0);
    signalled_.assign(static_cast<std::size_t>(ranks_), 0);
    for (const std::size_t id : shows_) plan_close(signals_[id]);
  }

  void plan_close(Signal& signal) {
    signal.close.assign(static_cast<std::size_t>(ranks_), kNever);
    for (int i = signal.index + 1; i < static_cast<int>(program_.size()); ++i) {
      const Step& wait = program_[static_cast<std::size_t>(i)];
      if (wait.verb != Verb::wait || wait.phase <= step_of(signal).phase) continue;
      for (int k = 0; k < wait.ranks.n; ++k) {
        int& close = signal.close[static_cast<std::size_t>(wait.ranks.at(k, ranks_))];
        close = std::min(close, i);
      }
    }
  }

  bool execute(const Step& step) {
    switch (step.verb) {
      case Verb::signal:
        phase_ = std::max(phase_, step.phase);
        signals_[by_phase_.at(step.phase)].clock = clock_;
        signals_[by_phase_.at(step.phase)].news = heard_.size();
        for (int i = 0; i < step.ranks.n; ++i) {
          signalled_[static_cast<std::size_t>(step.ranks.at(i, ranks_))] = step.phase;
        }
        return true;
      case Verb::wait:
        return wait(step);
      case Verb::move:
        break;
    }
    return move(step);
  }

  bool wait(const Step& step) {
    if (step.phase < phase_) fail("WAIT for phase {} after phase {}: phases must rise", step.phase, phase_);
    phase_ = std::max(phase_, step.phase);
    const auto found = by_phase_.find(step.phase);
    for (int i = 0; i < step.ranks.n; ++i) {
      const int peer = step.ranks.at(i, ranks_);
      if (found == by_phase_.end() ||
          !tutti::contains(step_of(signals_[found->second]).ranks, symmetry_.inverse(peer), ranks_)) {
        return stuck("WAIT for phase {} of rank {}, which never signals it to rank 0", step.phase, peer);
      }
      const Signal& signal = signals_[found->second];
      if (signal.index > index_) {
        return stuck("deadlock: waits for phase {} of rank {}, which is itself stuck", step.phase, peer);
      }
      int& last = waited_[static_cast<std::size_t>(peer)];
      if (step.phase <= last) {
        fail("WAIT for phase {} of rank {} after phase {}: phases must rise", step.phase, peer, last);
      }
      last = std::max(last, step.phase);
      clock_ = std::max(clock_, signal.clock + 1);
      hear(peer, signal.news);
      ++waited_pairs_;
    }
    return true;
  }

  /// Of the ranks that rank 0 has heard of, the first `count` are what `peer` tells, taken by it.
  void hear(int peer, std::size_t count) {
    std::size_t& told = told_[static_cast<std::size_t>(peer)];
    for (; told < count && heard_.size() < has_heard_.size(); ++told) {
      const int rank = symmetry_.rank(peer, heard_[told]);
      if (has_heard_[static_cast<std::size_t>(rank)] != 0) continue;
      has_heard_[static_cast<std::size_t>(rank)] = 1;
      heard_.push_back(rank);
    }
  }

  /// Where a unit of `space` is kept, of rank 0.
  [[nodiscard]] Space kept_in(Space space) const {
    return space == Space::input && form_.is_in_place ? Space::output : space;
  }
  [[nodiscard]] std::vector<Taken>& memory(Space space) { return memories_[static_cast<std::size_t>(space)]; }

  void own(Space space, int unit, bool is_write) {
    if (shows_.empty()) return;
    races_.add({.space = kept_in(space),
                .unit = unit,
                .accessor = 0,
                .from = index_,
                .to = index_,
                .step = index_,
                .is_write = is_write});
  }

  /// Rank 0 touches `unit` of rank `peer`; as seen from the owner, the rank that `peer` takes 0 back from touches its.
  bool remote(Space space, int peer, int unit, bool is_write) {
    const int me = symmetry_.inverse(peer);
    const int here = symmetry_.unit(space, me, unit);
    const char* reason = "which is not exposed to it";
    for (const std::size_t id : shows_) {
      const Step& signal = step_of(signals_[id]);
      const Exposure& exposure = is_write ? signal.write : signal.read;
      if (exposure.is_empty() || exposure.space != space || !tutti::contains(signal.ranks, me, ranks_)) continue;
      const int count = symmetry_.units(space);
      if (!steps::contains(steps::shown_to(exposure, me, count), here, count)) continue;
      if (signal.phase > waited_[static_cast<std::size_t>(peer)]) {
        reason = "exposed in a phase that it has not waited for";
      } else if (signal.phase < signalled_[static_cast<std::size_t>(peer)]) {
        reason = "though it has already signalled a later phase: the exposure may be closed";
      } else {
        races_.add({.space = kept_in(space),
                    .unit = here,
                    .accessor = me,
                    .from = signals_[id].index,
                    .to = signals_[id].close[static_cast<std::size_t>(me)],
                    .step = index_,
                    .is_write = is_write});
        return true;
      }
    }
    return fail("{} {} unit {} of rank {}, {}", is_write ? "writes" : "reads", steps::name_of(space), unit, peer,
                reason);
  }

  bool move(const Step& step) {
    const std::int64_t length = length_of(step);
    kept_.clear();
    for (const Operand& to : step.destinations) {
      if (!steps::is_copy_onto_itself(problem_, schedule_.shape.units_per_block, form_, step, to)) kept_.push_back(&to);
    }
    count_cost(step, length);
    if (kept_.empty()) {
      ++clock_;
      return true;
    }
    const char* const overlap =
        overlaps_.find(step, length, [this](int /*rank*/, Space space) { return symmetry_.units(space); });
    if (*overlap != '\0') return fail("{}", overlap);
    if (!has_channels(step)) return false;
    terms_.resize(std::max(terms_.size(), static_cast<std::size_t>(length)));
    for (std::size_t k = 0; k < static_cast<std::size_t>(length); ++k) terms_[k].clear();
    for (const Operand& from : step.sources) {
      if (!read(from, length)) return false;
    }
    ++clock_;
    made_.clear();
    for (std::size_t k = 0; k < static_cast<std::size_t>(length); ++k) {
      const auto is_final = [this](const Term& term) { return values_.finals_of(term.value.node) > 0; };
      if (terms_[k].size() > 1 && std::ranges::any_of(terms_[k], is_final)) {
        return fail("reduces a value that is final already");
      }
      made_.push_back(values_.of(terms_[k], step.is_final, index_));
    }
    for (const Operand* const to : kept_) {
      if (!write(*to, length)) return false;
    }
    return true;
  }

  /// As derive_cost counts them.
  void count_cost(const Step& step, std::int64_t length) {
    for (const Operands<4>* const list : {&step.destinations, &step.sources}) {
      for (const Operand& operand : *list) {
        if (operand.space == Space::channel) continue;
        result_.cost.units += (operand.ranks.n - (tutti::contains(operand.ranks, 0, ranks_) ? 1 : 0)) * length;
      }
    }
    for (const Operand& to : step.destinations) {
      if (to.space != Space::channel) continue;
      ++result_.cost.messages;
      result_.cost.units += length;
    }
  }

  /// Whether every source is full and every destination has room, before any of them is touched.
  bool has_channels(const Step& step) {
    for (const Operand& from : step.sources) {
      if (from.space != Space::channel) continue;
      const auto found = queues_.find(symmetry_.inverse(from.ranks.first));
      if (found == queues_.end() || found->second.empty()) {
        return stuck("deadlock: waits for a message from rank {}, which is itself stuck", from.ranks.first);
      }
    }
    for (const Operand* const to : kept_) {
      if (to->space != Space::channel) continue;
      if (static_cast<int>(queues_[to->ranks.first].size()) >= form_.slots) {
        return stuck("deadlock: with {} slot{} per channel, none becomes free to rank {}", form_.slots,
                     form_.slots == 1 ? "" : "s", to->ranks.first);
      }
    }
    return true;
  }

  bool read(const Operand& from, std::int64_t length) {
    if (from.space == Space::channel) return receive(from.ranks.first, length);
    const int count = symmetry_.units(from.space);
    if (count == 0) return fail("reads {}, of which there is none", steps::name_of(from.space));
    if (count_of(from.units) != length) return fail("a MOVE of {} units to or from {}", count_of(from.units), length);
    bool is_right = true;
    for (int i = 0; i < from.ranks.n && is_right; ++i) {
      const int peer = from.ranks.at(i, ranks_);
      const int back = symmetry_.inverse(peer);
      steps::for_units(from.units, count, [&](int k, int unit) {
        if (!is_right) return;
        if (peer == 0) own(from.space, unit, false);
        is_right = peer == 0 || remote(from.space, peer, unit, false);
        if (!is_right) return;
        const int here = symmetry_.unit(from.space, back, unit);
        Taken value{.node = here, .element = 0};  // an input
        if (kept_in(from.space) != Space::input) value = memory(kept_in(from.space))[static_cast<std::size_t>(here)];
        if (value.node < 0) {
          is_right =
              fail("reads {} unit {} of rank {}, which nobody has written", steps::name_of(from.space), unit, peer);
          return;
        }
        value.element = symmetry_.rank(peer, value.element);
        terms_[static_cast<std::size_t>(k)].push_back({.value = value, .space = from.space, .rank = peer});
      });
    }
    return is_right;
  }

  bool receive(int peer, std::int64_t length) {
    std::deque<Message>& queue = queues_[symmetry_.inverse(peer)];
    const Message& message = queue.front();
    if (static_cast<std::int64_t>(message.values.size()) != length) {
      return fail("receives {} units from rank {}, which sends {} in its step {}", length, peer, message.values.size(),
                  message.step);
    }
    clock_ = std::max(clock_, message.clock + 1);
    hear(peer, message.news);
    for (std::size_t k = 0; k < message.values.size(); ++k) {
      const Taken value{.node = message.values[k].node, .element = symmetry_.rank(peer, message.values[k].element)};
      terms_[k].push_back({.value = value, .space = Space::channel, .rank = peer});
    }
    queue.pop_front();
    return true;
  }

  bool write(const Operand& to, std::int64_t length) {
    if (to.space == Space::channel) {
      queues_[to.ranks.first].push_back({.values = made_, .clock = clock_, .news = heard_.size(), .step = index_});
      return true;
    }
    if (to.space == Space::input) return fail("writes input unit {} of rank {}", to.units.start, to.ranks.first);
    const int count = symmetry_.units(to.space);
    if (count == 0) return fail("writes {}, of which there is none", steps::name_of(to.space));
    if (count_of(to.units) != length) return fail("a MOVE of {} units to or from {}", count_of(to.units), length);
    bool is_right = true;
    for (int i = 0; i < to.ranks.n && is_right; ++i) {
      const int peer = to.ranks.at(i, ranks_);
      const int back = symmetry_.inverse(peer);
      steps::for_units(to.units, count, [&](int k, int unit) {
        if (!is_right) return;
        if (peer == 0) own(to.space, unit, true);
        is_right = peer == 0 || remote(to.space, peer, unit, true);
        Taken value = made_[static_cast<std::size_t>(k)];
        value.element = symmetry_.rank(back, value.element);
        memory(to.space)[static_cast<std::size_t>(symmetry_.unit(to.space, back, unit))] = value;
      });
    }
    return is_right;
  }

  bool check_left_over() {
    for (const auto& [peer, queue] : queues_) {
      if (queue.empty()) continue;
      findings_.add(0, queue.front().step, "sends a message to rank {} that is never received", peer);
    }
    if (signalled_pairs_ != waited_pairs_) report_unheard();
    return findings_.is_empty();
  }

  /// Rank t waits for a phase of rank 0 where rank 0 waits for it of the rank that t takes 0 back from.
  void report_unheard() {
    for (const Signal& signal : signals_) {
      const Step& sent = step_of(signal);
      for (int i = 0; i < sent.ranks.n; ++i) {
        const int target = sent.ranks.at(i, ranks_);
        const bool is_heard = std::ranges::any_of(program_, [&](const Step& step) {
          return step.verb == Verb::wait && step.phase == sent.phase &&
                 tutti::contains(step.ranks, symmetry_.inverse(target), ranks_);
        });
        if (is_heard) continue;
        findings_.add(0, signal.index, "SIGNAL of phase {} to rank {}, which never waits for it", sent.phase, target);
      }
    }
  }

  bool check_exposures() {
    for (const std::size_t id : shows_) {
      const Step& signal = step_of(signals_[id]);
      for (const Exposure* const exposure : {&signal.read, &signal.write}) {
        if (exposure->is_empty() || !steps::is_user(exposure->space)) continue;
        for (int i = 0; i < signal.ranks.n; ++i) {
          const int target = signal.ranks.at(i, ranks_);
          if (signals_[id].close[static_cast<std::size_t>(target)] != kNever) continue;
          findings_.add(0, signals_[id].index, "the exposure of {} units to rank {} is still open at the end",
                        steps::name_of(exposure->space), target);
        }
      }
    }
    return findings_.is_empty();
  }

  const Schedule& schedule_;
  const Problem& problem_;
  const Symmetry& symmetry_;
  std::span<const Step> program_;
  steps::Form form_;
  steps::Overlaps overlaps_;
  OneRank& result_;
  int ranks_;
  int inputs_;  ///< units of rank 0's input; the first nodes
  Findings findings_;
  int index_ = 0;
  int phase_ = 0;
  std::int64_t clock_ = 0;
  std::array<std::vector<Taken>, 3> memories_;           ///< by Space; inputs are never written
  std::unordered_map<int, std::deque<Message>> queues_;  ///< by destination
  std::vector<std::vector<Term>> terms_;                 ///< of the k-th unit of a MOVE
  std::vector<Taken> made_;                              ///< of the MOVE at hand
  std::vector<const Operand*> kept_;
  bool has_flags_ = false;
  std::vector<Signal> signals_;
  std::vector<std::size_t> shows_;  ///< those that expose something
  std::unordered_map<int, std::size_t> by_phase_;
  std::vector<int> waited_;     ///< by rank: its last phase that rank 0 has waited for
  std::vector<int> signalled_;  ///< by rank: the last phase that rank 0 has signalled to it
  std::int64_t signalled_pairs_ = 0;
  std::int64_t waited_pairs_ = 0;
  std::vector<int> heard_;         ///< the ranks that have started, as far as rank 0 knows
  std::vector<char> has_heard_;    ///< by rank
  std::vector<std::size_t> told_;  ///< by rank: how much of heard_ it has told already, taken by it
  QuotientRaces races_;
  QuotientValues values_;
};

}  // namespace

OneRank prove_one_rank(const Schedule& schedule, const Symmetry& symmetry, std::span<const Step> program,
                       steps::Form form) {
  OneRank result;
  Quotient(schedule, symmetry, program, form, result).run();
  return result;
}

}  // namespace tutti
