// SPDX-License-Identifier: Apache-2.0
// A step in words that need no other page. One is "tells ranks 1, 2 and 3: you may read my input". Another is "adds
// block b of every rank's input and stores the result as its output: 2 + 4 = 6".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/explain/replay.h"

namespace tutti::harness::explain {

class Words {
 public:
  Words(const Schedule& schedule, const Example& example)
      : schedule_(schedule), example_(example), is_whole_(units_of(example) == 1) {}

  /// The sentence, without an end. `before`: the rank's steps so far.
  [[nodiscard]] std::string sentence(const Told& told, const std::vector<Told>& before) const;
  /// The numbers of a MOVE that combines: "1 + 2 = 3", "[1 2] + [3 4] = [4 6]"; empty for the others.
  [[nodiscard]] std::string arithmetic(const Told& told) const;
  /// What a MOVE between ranks does, in a few characters: `3>+b>1`; empty for the others.
  [[nodiscard]] std::string cell(const Told& told) const;
  /// What that says: "`3>+b>1` takes b from rank 3, combines it with its own and gives it to rank 1".
  [[nodiscard]] std::string cell_meaning(const Told& told) const;

 private:
  /// The ranks that a MOVE takes from, and gives to.
  struct Parties {
    std::vector<int> from, to;
  };
  /// How units are called: "block" where a block is one unit, else "unit".
  [[nodiscard]] std::string noun() const { return example_.units == 1 ? "block" : "unit"; }
  [[nodiscard]] Parties parties(const Told& told) const;
  [[nodiscard]] bool is_all_others(const std::vector<int>& ranks) const;
  [[nodiscard]] std::string units_text(const std::vector<int>& units) const;
  [[nodiscard]] int total_units(Space space, int rank) const;
  [[nodiscard]] std::string part(Space space, int rank, const std::vector<int>& units) const;
  [[nodiscard]] std::vector<int> members(const UnitSet& set, int total, int shift) const;
  [[nodiscard]] std::string what(const Operand& operand, int rank) const;
  [[nodiscard]] std::string allowed(const Exposure& exposure, const char* verb, int speaker, int target,
                                    bool is_for_each) const;
  [[nodiscard]] std::string said(const Step& signal, int speaker, int target, bool is_for_each) const;
  [[nodiscard]] std::string signal(const Told& told) const;
  [[nodiscard]] std::string wait(const Told& told, const std::vector<Told>& before) const;
  [[nodiscard]] std::string move(const Told& told) const;
  [[nodiscard]] std::vector<std::string> destinations(const Told& told, std::string_view thing) const;

  const Schedule& schedule_;
  const Example& example_;
  bool is_whole_;  ///< the larger buffer is one unit
};

}  // namespace tutti::harness::explain
