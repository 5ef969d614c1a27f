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

namespace tutti {
namespace {

/// A value: what `node` is, its contributions taken by `element`. Nodes below the number of input units are those.
struct Taken {
  int node = -1;  ///< -1: nothing was written
  int element = 0;
};

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
        inputs_(symmetry.units(Space::input)) {}

  void run() {
    prepare();
    for (index_ = 0; index_ < static_cast<int>(program_.size()); ++index_) {
      if (!execute(program_[static_cast<std::size_t>(index_)])) break;
    }
    const bool is_through = index_ == static_cast<int>(program_.size());
    if (is_through && check_left_over() && check_exposures()) {
      check_races();
      check_outputs();
    }
    result_.has_heard_of_all = is_through && heard_.size() == has_heard_.size();
    result_.cost.steps = static_cast<std::int64_t>(program_.size());
    result_.cost.depth = clock_;
    result_.findings = findings_.take();
  }

 private:
  static constexpr int kNever = INT_MAX;

  struct Node {
    std::size_t first;  ///< in children_
    int count;
    int finals;
  };
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
  /// An access to rank 0's memory: its own at `from`, another rank's somewhere in (from, to) of rank 0's program.
  struct Event {
    Space space;
    int unit;
    int accessor;
    int from;
    int to;
    int step;  ///< of the accessor
    bool is_write;
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
    for (std::size_t i = 0; i < count && heard_.size() < has_heard_.size(); ++i) {
      const int rank = symmetry_.rank(peer, heard_[i]);
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
    events_.push_back({.space = kept_in(space),
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
        events_.push_back({.space = kept_in(space),
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
    values_.clear();
    for (std::size_t k = 0; k < static_cast<std::size_t>(length); ++k) {
      const auto is_final = [this](const Taken& term) { return finals_of(term.node) > 0; };
      if (terms_[k].size() > 1 && std::ranges::any_of(terms_[k], is_final)) {
        return fail("reduces a value that is final already");
      }
      values_.push_back(value_of(terms_[k], step));
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
        terms_[static_cast<std::size_t>(k)].push_back(value);
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
      terms_[k].push_back({.node = message.values[k].node, .element = symmetry_.rank(peer, message.values[k].element)});
    }
    queue.pop_front();
    return true;
  }

  /// What the MOVE makes of `terms`: a copy stays what it is.
  Taken value_of(const std::vector<Taken>& terms, const Step& step) {
    if (terms.size() == 1 && !step.is_final) return terms[0];
    Node node{.first = children_.size(), .count = static_cast<int>(terms.size()), .finals = step.is_final ? 1 : 0};
    for (const Taken& term : terms) node.finals += finals_of(term.node);
    children_.insert(children_.end(), terms.begin(), terms.end());
    nodes_.push_back(node);
    return {.node = inputs_ + static_cast<int>(nodes_.size()) - 1, .element = 0};
  }
  [[nodiscard]] const Node& node(int number) const { return nodes_[static_cast<std::size_t>(number - inputs_)]; }
  [[nodiscard]] int finals_of(int number) const { return number < inputs_ ? 0 : node(number).finals; }

  bool write(const Operand& to, std::int64_t length) {
    if (to.space == Space::channel) {
      queues_[to.ranks.first].push_back({.values = values_, .clock = clock_, .news = heard_.size(), .step = index_});
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
        Taken value = values_[static_cast<std::size_t>(k)];
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

  static bool conflict(const Event& a, const Event& b) {
    const bool a_is_own = a.accessor == 0, b_is_own = b.accessor == 0;
    if (a.accessor == b.accessor || !(a.is_write || b.is_write)) return false;
    if (a_is_own) return a.from > b.from && a.from < b.to;
    if (b_is_own) return b.from > a.from && b.from < a.to;
    return a.to > b.from && b.to > a.from;
  }

  void check_races() {
    std::sort(events_.begin(), events_.end(), [](const Event& a, const Event& b) {
      return std::tie(a.space, a.unit, b.is_write) < std::tie(b.space, b.unit, a.is_write);  // writes first
    });
    for (std::size_t begin = 0; begin < events_.size();) {
      std::size_t end = begin;
      const auto is_same = [&](const Event& event) {
        return event.space == events_[begin].space && event.unit == events_[begin].unit;
      };
      while (end < events_.size() && is_same(events_[end])) ++end;
      for (std::size_t w = begin; w < end && events_[w].is_write; ++w) {
        for (std::size_t other = begin; other < end; ++other) {
          if (!conflict(events_[w], events_[other])) continue;
          report(events_[w], events_[other]);
          other = end;
          w = end;
        }
      }
      begin = end;
    }
  }

  void report(const Event& a, const Event& b) {
    const Event& remote = a.accessor != 0 ? a : b;
    const Event& other = a.accessor != 0 ? b : a;
    findings_.add(other.accessor, other.step,
                  "race: {} {} unit {} of rank 0 while rank {} may {} it in its step {} (exposed at rank 0 step {})",
                  other.is_write ? "writes" : "reads", steps::name_of(other.space), other.unit, remote.accessor,
                  remote.is_write ? "write" : "read", remote.step, remote.from);
  }

  [[nodiscard]] std::uint64_t worth_of_input(Taken value) const {
    return steps::input_value(value.element, symmetry_.unit(Space::input, value.element, value.node));
  }
  /// The sum of the contributions of `top`. Without recursion: chains are as long as programs.
  std::uint64_t worth_of(Taken top) {
    const auto key = [](Taken value) {
      return static_cast<std::uint64_t>(value.node) << 32U | static_cast<std::uint32_t>(value.element);
    };
    if (top.node < inputs_) return worth_of_input(top);
    std::vector<Taken> open{top};
    while (!open.empty()) {
      const Taken value = open.back();
      if (worth_.contains(key(value))) {
        open.pop_back();
        continue;
      }
      const Node& of = node(value.node);
      std::uint64_t sum = 0;
      bool is_ready = true;
      for (int i = 0; i < of.count; ++i) {
        Taken child = children_[of.first + static_cast<std::size_t>(i)];
        child.element = symmetry_.rank(value.element, child.element);
        if (child.node < inputs_) {
          sum += worth_of_input(child);
        } else if (const auto known = worth_.find(key(child)); known != worth_.end()) {
          sum += known->second;
        } else {
          is_ready = false;
          open.push_back(child);
        }
      }
      if (!is_ready) continue;
      worth_.emplace(key(value), sum);
      open.pop_back();
    }
    return worth_.at(key(top));
  }

  /// Output `unit` is compared where its node was made: at the rank that its element takes back to 0.
  void check_outputs() {
    const int per_block = schedule_.shape.units_per_block;
    const bool reduces = is_reducing(problem_.collective) && ranks_ > 1;
    for (int unit = 0; unit < symmetry_.units(Space::output); ++unit) {
      const Taken value = memory(Space::output)[static_cast<std::size_t>(unit)];
      if (value.node < 0) {
        findings_.add(0, -1, "output unit {} is never written", unit);
        continue;
      }
      const int rank = symmetry_.inverse(value.element);
      const int there = symmetry_.unit(Space::output, rank, unit);
      const Origin origin = origin_of(problem_, rank, there / per_block);
      const int from = origin.block * per_block + there % per_block;
      if (worth_of({.node = value.node, .element = 0}) != sum_of(origin, from)) {
        findings_.add(0, -1, "output unit {} does not hold what it should{}", unit, difference(unit));
      } else if (reduces && finals_of(value.node) != 1) {
        findings_.add(0, -1, "output unit {} is made final {} times instead of once", unit, finals_of(value.node));
      }
    }
  }

  std::uint64_t sum_of(const Origin& origin, int unit) {
    if (origin.first == origin.last) return steps::input_value(origin.first, unit);
    const auto [at, is_new] = sums_.try_emplace(unit, 0);  // all origins of more than one rank are of all ranks
    for (int rank = origin.first; is_new && rank <= origin.last; ++rank) at->second += steps::input_value(rank, unit);
    return at->second;
  }

  /// `: it lacks the contribution of rank 3`, of rank 0's output; empty where there is too much to look at.
  std::string difference(int unit) {
    constexpr std::size_t kMostTerms = 1U << 22U;
    std::unordered_map<std::uint64_t, int> counts;
    std::vector<Taken> open{memory(Space::output)[static_cast<std::size_t>(unit)]};
    std::size_t looked_at = 0;
    while (!open.empty()) {
      if (++looked_at > kMostTerms) return {};
      const Taken value = open.back();
      open.pop_back();
      if (value.node < inputs_) {
        const int there = symmetry_.unit(Space::input, value.element, value.node);
        ++counts[static_cast<std::uint64_t>(value.element) << 32U | static_cast<std::uint32_t>(there)];
        continue;
      }
      const Node& of = node(value.node);
      for (int i = of.count; i-- > 0;) {
        Taken child = children_[of.first + static_cast<std::size_t>(i)];
        child.element = symmetry_.rank(value.element, child.element);
        open.push_back(child);
      }
    }
    const int per_block = schedule_.shape.units_per_block;
    const Origin origin = origin_of(problem_, 0, unit / per_block);
    const int from = origin.block * per_block + unit % per_block;
    for (int rank = origin.first; rank <= origin.last; ++rank) {
      const auto key = static_cast<std::uint64_t>(rank) << 32U | static_cast<std::uint32_t>(from);
      const auto found = counts.find(key);
      if (found == counts.end()) return fmt::format(": it lacks input unit {} of rank {}", from, rank);
      if (found->second != 1) {
        return fmt::format(": it holds input unit {} of rank {} {} times", from, rank, found->second);
      }
      counts.erase(found);
    }
    if (counts.empty()) return {};
    const std::uint64_t extra = std::min_element(counts.begin(), counts.end())->first;
    return fmt::format(": it holds input unit {} of rank {}", extra & UINT32_MAX, extra >> 32U);
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
  std::array<std::vector<Taken>, 3> memories_;  ///< by Space; inputs are never written
  std::vector<Node> nodes_;
  std::vector<Taken> children_;
  std::unordered_map<int, std::deque<Message>> queues_;  ///< by destination
  std::vector<std::vector<Taken>> terms_;                ///< of the k-th unit of a MOVE
  std::vector<Taken> values_;
  std::vector<const Operand*> kept_;
  bool has_flags_ = false;
  std::vector<Signal> signals_;
  std::vector<std::size_t> shows_;  ///< those that expose something
  std::unordered_map<int, std::size_t> by_phase_;
  std::vector<int> waited_;     ///< by rank: its last phase that rank 0 has waited for
  std::vector<int> signalled_;  ///< by rank: the last phase that rank 0 has signalled to it
  std::int64_t signalled_pairs_ = 0;
  std::int64_t waited_pairs_ = 0;
  std::vector<int> heard_;       ///< the ranks that have started, as far as rank 0 knows
  std::vector<char> has_heard_;  ///< by rank
  std::vector<Event> events_;
  std::unordered_map<std::uint64_t, std::uint64_t> worth_;
  std::unordered_map<int, std::uint64_t> sums_;
};

}  // namespace

OneRank prove_one_rank(const Schedule& schedule, const Symmetry& symmetry, std::span<const Step> program,
                       steps::Form form) {
  OneRank result;
  Quotient(schedule, symmetry, program, form, result).run();
  return result;
}

}  // namespace tutti
