// SPDX-License-Identifier: Apache-2.0
// The journal of an acceptance: a line of JSON per test, written at once. It is what a user reads of each pair, and
// what --resume goes on from: the same plan asks for the same tests in the same order, so the outcomes of tests that
// the journal has are taken from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/accept/crew_around.h"
#include "harness/accept/findings.h"
#include "harness/accept/running.h"
#include "harness/floors.h"
#include "impl/types/status.h"

namespace tutti::harness::accept {

/// What a journal begins with. Two journals go together if build, nodes and plan are equal, and the older one is not
/// too old.
struct JournalHead {
  std::string build;
  std::vector<std::string> nodes;
  std::string plan;          ///< what the tests depend on, as text
  std::int64_t began_s = 0;  ///< seconds since 1970
};
inline constexpr std::int64_t kHoursOfJournal = 24;  ///< for which tests are worth something

/// Plays with `crew`, and writes a line for each outcome. Plays that the journal has are not played again. A play that
/// was cut off is played anew.
class JournalCrew final : public CrewAround {
 public:
  using Write = std::function<void(std::string_view line)>;

  /// `write`: empty, if nobody wants the lines. `margin`: a test that is slower than those alike by more is SUSPECT in
  /// its line. `crew` and `write` outlive it.
  JournalCrew(Crew& crew, const Write& write, double margin)
      : CrewAround(crew), write_(write), running_(crew, margin) {}

  /// Writes the head. Called once, before play.
  void begin(const JournalHead& head) const;
  /// Takes over the outcomes of a journal, and returns the bytes of its whole lines. Errors: invalid_argument that
  /// names the line, or what differs from `head`.
  [[nodiscard]] Result<std::size_t> resume(std::string_view journal, const JournalHead& head);
  /// The stage and the round of the tests that follow.
  void set_round(std::string_view stage, int round);

  [[nodiscard]] std::vector<std::vector<Outcome>> play(const std::vector<Group>& groups,
                                                       const std::vector<Test>& tests) override;

  /// A play that is taken from the journal needs no pause.
  void pause() override;

  /// How the tests so far look.
  [[nodiscard]] const Running& running() const { return running_; }
  /// Tests that were taken from the journal.
  [[nodiscard]] std::size_t taken_over() const { return taken_over_; }

 private:
  /// One line of a journal.
  struct Record {
    std::string key;  ///< group and test
    Outcome outcome;
  };
  /// The outcomes of the play that comes next, by its groups and tests; empty: the journal does not have all of them.
  [[nodiscard]] std::vector<std::vector<Outcome>> known(const std::vector<Group>& groups,
                                                        const std::vector<Test>& tests) const;
  void write(const Group& group, const Test& test, const Outcome& outcome, std::optional<double> of_alike);

  const Write& write_;
  Running running_;
  std::map<std::string, int> attempts_;  ///< of each group and test so far
  std::string stage_;
  int round_ = 0;
  int play_ = 0;                                 ///< the number of the play that comes next
  std::map<int, std::vector<Record>> recorded_;  ///< by play
  std::size_t taken_over_ = 0;
};

}  // namespace tutti::harness::accept
