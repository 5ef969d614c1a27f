// SPDX-License-Identifier: Apache-2.0
#include "impl/prove/unit_flags.h"

#include <algorithm>
#include <utility>

namespace tutti::steps {

UnitFlags::UnitFlags(int ranks, bool counts_news, Findings& findings)
    : ranks_(ranks), counts_news_(counts_news), findings_(findings), flags_(static_cast<std::size_t>(ranks)) {
  for (int rank = 0; rank < ranks && counts_news; ++rank) of(rank).news = Arcs(rank);
}

/// The SIGNAL of `phase`; null: not yet. Phases rise from SIGNAL to SIGNAL, or a finding says so.
const UnitFlags::Signal* UnitFlags::signal_of(int rank, int phase) {
  const std::vector<Signal>& signals = of(rank).signals;
  const auto at = std::ranges::lower_bound(signals, phase, {}, &Signal::phase);
  return at == signals.end() || at->phase != phase ? nullptr : &*at;
}

std::vector<int> UnitFlags::signal(int rank, int index, const Step& step) {
  Flags& me = of(rank);
  if (step.phase <= me.last_signal) {
    findings_.add(rank, index, "SIGNAL of phase {} after phase {}: phases must rise", step.phase, me.last_signal);
  }
  me.last_signal = std::max(me.last_signal, step.phase);
  me.phase = std::max(me.phase, step.phase);
  me.signals.push_back({.phase = step.phase, .index = index, .clock = me.clock, .ranks = step.ranks, .news = me.news});
  signalled_pairs_ += step.ranks.n;
  show_on_board(rank, me.signals.back());
  return std::exchange(me.waiting, {});
}

void UnitFlags::show_on_board(int rank, const Signal& signal) {
  constexpr std::size_t kMostBoards = 64;
  auto found = boards_.find(signal.phase);
  if (found != boards_.end()) return put(found->second, rank, signal);
  if (!is_large(signal.ranks) || boards_.size() == kMostBoards) return;
  found = boards_.try_emplace(signal.phase, Board{.ranks = PhaseBoard(ranks_)}).first;
  for (int other = 0; other < ranks_; ++other) {
    const Signal* const before = signal_of(other, signal.phase);
    if (before != nullptr) put(found->second, other, *before);
  }
}

void UnitFlags::put(Board& board, int rank, const Signal& signal) const {
  if (board.ranks.has_signalled(rank)) return;
  board.ranks.signal(rank, signal.clock);
  board.has_news = board.has_news || (counts_news_ && !signal.news.is_only(rank));
}

UnitFlags::Heard UnitFlags::wait(int rank, int index, const Step& step) {
  Flags& me = of(rank);
  if (me.missing < 0 && step.phase < me.phase) {
    findings_.add(rank, index, "WAIT for phase {} after phase {}: phases must rise", step.phase, me.phase);
  }
  me.phase = std::max(me.phase, step.phase);
  const auto board = me.heard == 0 && is_large(step.ranks) ? boards_.find(step.phase) : boards_.end();
  const Heard heard =
      board != boards_.end() ? wait_for_many(rank, index, step, board->second) : wait_for_each(rank, index, step);
  if (heard != Heard::all) return heard;
  me.heard = 0;
  me.missing = -1;
  me.waits_done.push_back({.phase = step.phase, .ranks = step.ranks});
  return heard;
}

UnitFlags::Heard UnitFlags::wait_for_each(int rank, int index, const Step& step) {
  Flags& me = of(rank);
  for (; me.heard < step.ranks.n; ++me.heard) {
    const int peer = step.ranks.at(me.heard, ranks_);
    const Signal* const signal = signal_of(peer, step.phase);
    if (signal == nullptr) {
      me.missing = peer;
      of(peer).waiting.push_back(rank);
      return Heard::not_yet;
    }
    if (!contains(signal->ranks, rank, ranks_)) {
      findings_.add(rank, index, "WAIT for phase {} of rank {}, which never signals it to rank {}", step.phase, peer,
                    rank);
      return Heard::never;
    }
    check_rises(rank, index, step.phase, peer);
    me.clock = std::max(me.clock, signal->clock + 1);
    if (counts_news_) me.news.join(signal->news);
    ++waited_pairs_;
  }
  return Heard::all;
}

UnitFlags::Heard UnitFlags::wait_for_many(int rank, int index, const Step& step, Board& board) {
  Flags& me = of(rank);
  std::int64_t latest = 0;
  int missing = -1;
  for_arcs(step.ranks, ranks_, -1, [&](RankArc arc) {
    if (missing >= 0) return;
    const std::int64_t of_arc = board.ranks.latest(arc);
    if (of_arc == PhaseBoard::kNever) missing = board.ranks.first_missing(arc);
    latest = std::max(latest, of_arc);
  });
  if (missing >= 0) {
    me.missing = missing;
    of(missing).waiting.push_back(rank);
    return Heard::not_yet;
  }
  const bool may_fall = !me.waits_done.empty() && me.waits_done.back().phase >= step.phase;
  for (int i = 0; may_fall && i < step.ranks.n; ++i) check_rises(rank, index, step.phase, step.ranks.at(i, ranks_));
  me.clock = std::max(me.clock, latest + 1);
  if (counts_news_) hear_of_many(me, step, board);
  waited_pairs_ += step.ranks.n;
  wide_waits_.push_back({.rank = rank, .index = index, .phase = step.phase, .ranks = step.ranks});
  return Heard::all;
}

void UnitFlags::hear_of_many(Flags& me, const Step& step, const Board& board) {
  for_arcs(step.ranks, ranks_, -1, [&](RankArc arc) { me.news.join(Arcs(arc.begin, arc.end)); });
  for (int i = 0; board.has_news && i < step.ranks.n && !me.news.holds_all(ranks_); ++i) {
    me.news.join(signal_of(step.ranks.at(i, ranks_), step.phase)->news);
  }
}

/// That it has not waited for this or a later phase of `peer`. Phases rise from WAIT to WAIT, or a finding says so.
void UnitFlags::check_rises(int rank, int index, int phase, int peer) {
  const std::vector<Waited>& done = of(rank).waits_done;
  for (std::size_t i = done.size(); i-- > 0 && done[i].phase >= phase;) {
    if (!contains(done[i].ranks, peer, ranks_)) continue;
    findings_.add(rank, index, "WAIT for phase {} of rank {} after phase {}: phases must rise", phase, peer,
                  done[i].phase);
    return;
  }
}

/// Whether every rank that a WAIT for many names has signalled to the one that waits.
void UnitFlags::check_wide_waits() {
  std::map<int, Coverage> coverages;
  for (std::size_t id = 0; id < wide_waits_.size(); ++id) {
    const WideWait& wait = wide_waits_[id];
    Coverage& coverage = coverages.try_emplace(wait.phase, ranks_).first->second;
    for_arcs(wait.ranks, ranks_, -1, [&](RankArc arc) { coverage.take(wait.rank, arc, id); });
  }
  for (auto& [phase, coverage] : coverages) {
    for (int rank = 0; rank < ranks_; ++rank) {
      if (const Signal* const signal = signal_of(rank, phase)) coverage.give(rank, signal->ranks);
    }
    coverage.for_uncovered([&](std::size_t id) {
      const WideWait& wait = wide_waits_[id];
      for (int i = 0; i < wait.ranks.n; ++i) {
        const int peer = wait.ranks.at(i, ranks_);
        if (contains(signal_of(peer, wait.phase)->ranks, wait.rank, ranks_)) continue;
        findings_.add(wait.rank, wait.index, "WAIT for phase {} of rank {}, which never signals it to rank {}",
                      wait.phase, peer, wait.rank);
        return;
      }
    });
  }
}

void UnitFlags::finish() {
  check_wide_waits();
  if (signalled_pairs_ != waited_pairs_) report_unheard();
}

/// The first one.
void UnitFlags::report_unheard() {
  for (int rank = 0; rank < ranks_; ++rank) {
    for (const Signal& signal : of(rank).signals) {
      for (int i = 0; i < signal.ranks.n; ++i) {
        const int target = signal.ranks.at(i, ranks_);
        const auto is_heard = [&](const Waited& wait) {
          return wait.phase == signal.phase && contains(wait.ranks, rank, ranks_);
        };
        if (std::ranges::any_of(of(target).waits_done, is_heard)) continue;
        findings_.add(rank, signal.index, "SIGNAL of phase {} to rank {}, which never waits for it", signal.phase,
                      target);
        return;
      }
    }
  }
}

}  // namespace tutti::steps
