// SPDX-License-Identifier: Apache-2.0
// The rule of races.h in units, for a walk over the steps of all ranks. What a rank exposes, and when it closes that,
// is read off its program where it exposes for the first time: what it did before is in nobody's way. Nor is what
// happens in memory that nobody else touches, or who reads inputs that nobody can write. A read of many ranks is kept
// as one, and looked at when all have ended: whether all of them expose it, and whether one of them stores there.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "impl/prove/findings.h"
#include "impl/prove/rank_arcs.h"
#include "impl/prove/steps.h"

namespace tutti {

class UnitRaces {
 public:
  UnitRaces(const Schedule& schedule, steps::Form form, Findings& findings)
      : schedule_(schedule),
        form_(form),
        findings_(findings),
        ranks_(schedule.problem.ranks),
        owners_(static_cast<std::size_t>(ranks_)),
        flags_(static_cast<std::size_t>(ranks_)) {}

  struct Access {
    int accessor;
    int step;  ///< of the accessor
    int owner;
    Space space;
    int unit;
    bool is_write;
  };
  void own(const Access& access);
  /// False, and a finding, where the unit is not exposed to the accessor now.
  bool remote(const Access& access, int count);

  /// The same of a read of many ranks, without the accessor itself, of inputs or scratch that all ranks have alike.
  /// False where it is not kept as one: the caller then asks rank by rank.
  bool remote(steps::RankArc owners, const Access& access);

  /// `rank` has done this SIGNAL, or heard all of this WAIT.
  void signalled(int rank, int index, const Step& step);
  void waited(int rank, int index, const Step& step);

  /// After the walk: conflicts, and exposures of user buffers that were never closed.
  void finish();

 private:
  static constexpr int kNever = INT32_MAX;

  struct Flag {
    int index;
    int phase;
    RankSet ranks;
    Exposure read;
    Exposure write;
  };
  /// A read of many ranks, of which those of phases `oldest` to `newest` may show it.
  struct WideRead {
    steps::RankArc owners;
    int accessor;
    int step;
    Space space;
    int unit;
    int oldest;
    int newest;
  };
  /// An access to the owner's memory, small, for there are as many as units that move between ranks.
  struct Event {
    std::uint32_t place;
    int accessor;
    int step;  ///< of the accessor
    static constexpr std::uint32_t kMostShows = (1U << 30) - 1;
    std::uint32_t show : 30;  ///< the exposure, of others' accesses
    std::uint32_t is_own : 1;
    std::uint32_t is_write : 1;
  };
  /// Where in the owner's program an event is: its own at `from`, another rank's in (from, to).
  struct Span {
    int from;
    int to;
  };
  struct Owner {
    std::array<bool, 3> is_shown{};    ///< by memory: others may read or write it
    std::array<bool, 3> is_written{};  ///< others may write it
    std::vector<Flag> shows;
    std::vector<Flag> waits;
    std::vector<Event> events;
  };
  /// By rank: to whom and for whom, as sets; of one rank by its number.
  struct Flags {
    std::vector<Flag> signals, waits;
    std::unordered_map<int, int> signalled, waited;  ///< the last phase
  };

  /// By Space; in place an input is an output.
  [[nodiscard]] std::size_t memory(Space space) const {
    return static_cast<std::size_t>(form_.is_in_place && steps::is_user(space) ? Space::output : space);
  }
  [[nodiscard]] std::uint32_t place(int owner, Space space, int unit) const;
  [[nodiscard]] int close_of(const Owner& owner, const Flag& show, int target) const;
  [[nodiscard]] int last_phase(const std::vector<Flag>& sets, const std::unordered_map<int, int>& single,
                               int rank) const;
  [[nodiscard]] Span span_of(const Owner& owner, const Event& event) const;
  [[nodiscard]] bool conflict(const Owner& owner, const Event& a, const Event& b) const;
  struct Phases {
    int oldest;
    int newest;
  };
  [[nodiscard]] static Flag flag_of(int index, const Step& step);
  [[nodiscard]] int units_of(int rank, Space space) const {
    return space == Space::scratch ? schedule_.shape.scratch_units
                                   : (space == Space::input ? input_blocks(schedule_.problem, rank)
                                                            : output_blocks(schedule_.problem, rank)) *
                                         schedule_.shape.units_per_block;
  }
  [[nodiscard]] std::optional<int> phase_for_all(const std::vector<Flag>& sets,
                                                 const std::unordered_map<int, int>& single,
                                                 steps::RankArc ranks) const;
  [[nodiscard]] std::optional<std::size_t> find_show(const Access& access, int count, Phases phases);
  void add_event(Owner& owner, const Access& access, std::size_t show) const;
  void check_wide_reads();
  void add_wide_reads(int rank, Owner& owner);
  void check_races(int rank, Owner& owner);
  void report(int rank, const Owner& owner, const Event& a, const Event& b);
  void check_closed(int rank, const Owner& owner);

  const Schedule& schedule_;
  steps::Form form_;
  Findings& findings_;
  int ranks_;
  std::vector<std::unique_ptr<Owner>> owners_;  ///< null: exposes nothing
  std::vector<Flags> flags_;
  std::vector<WideRead> wide_reads_;
};

}  // namespace tutti
