// SPDX-License-Identifier: Apache-2.0
// SIGNAL and WAIT in a walk over the steps of all ranks: who has signalled what, who waits for whom, when a rank came
// where, and of which ranks it has heard. A WAIT for many ranks is one look at a tree of them; whether each of them
// signals to the rank that waits is looked at when all have ended.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "impl/prove/arcs.h"
#include "impl/prove/findings.h"
#include "impl/prove/rank_arcs.h"

namespace tutti::steps {

class UnitFlags {
 public:
  UnitFlags(int ranks, bool counts_news, Findings& findings);

  /// How far rank `rank` has come.
  [[nodiscard]] std::int64_t& clock(int rank) { return of(rank).clock; }
  [[nodiscard]] bool counts_news() const { return counts_news_; }
  /// The ranks that it has heard of, itself included; empty where news is not counted.
  [[nodiscard]] Arcs& news(int rank) { return of(rank).news; }

  /// The ranks that wait for a SIGNAL of `rank`, which are no longer kept.
  [[nodiscard]] std::vector<int> signal(int rank, int index, const Step& step);

  enum class Heard : std::uint8_t { all, not_yet, never };
  /// `not_yet`: the rank waits, and is handed back by `signal`; to be called again. `never`: a finding says so.
  Heard wait(int rank, int index, const Step& step);
  /// The rank for which `rank` waits. Requires: its last WAIT is not yet over.
  [[nodiscard]] int missing(int rank) const { return flags_[static_cast<std::size_t>(rank)].missing; }

  /// After the walk: SIGNALs without a WAIT, and WAITs without a SIGNAL.
  void finish();

 private:
  struct Signal {
    int phase;
    int index;
    std::int64_t clock;
    RankSet ranks;
    Arcs news;
  };
  struct Waited {
    int phase;
    RankSet ranks;
  };
  struct Flags {
    int heard = 0;        ///< ranks of the current WAIT that were heard
    int missing = -1;     ///< the one that it waits for
    int phase = 0;        ///< last phase in program order
    int last_signal = 0;  ///< its phase
    std::int64_t clock = 0;
    std::vector<Signal> signals;
    std::vector<int> waiting;  ///< ranks that wait for a SIGNAL of this one
    std::vector<Waited> waits_done;
    Arcs news;
  };
  /// A WAIT for many ranks.
  struct WideWait {
    int rank;
    int index;
    int phase;
    RankSet ranks;
  };
  struct Board {
    PhaseBoard ranks;
    bool has_news = false;  ///< a rank had heard of another one when it signalled
  };

  [[nodiscard]] Flags& of(int rank) { return flags_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] const Signal* signal_of(int rank, int phase);
  void show_on_board(int rank, const Signal& signal);
  void put(Board& board, int rank, const Signal& signal) const;
  Heard wait_for_many(int rank, int index, const Step& step, Board& board);
  Heard wait_for_each(int rank, int index, const Step& step);
  void hear_of_many(Flags& me, const Step& step, const Board& board);
  void check_rises(int rank, int index, int phase, int peer);
  void check_wide_waits();
  void report_unheard();

  int ranks_;
  bool counts_news_;
  Findings& findings_;
  std::vector<Flags> flags_;
  std::map<int, Board> boards_;  ///< by phase, of those that are signalled to many at once
  std::vector<WideWait> wide_waits_;
  std::int64_t signalled_pairs_ = 0;
  std::int64_t waited_pairs_ = 0;
};

}  // namespace tutti::steps
