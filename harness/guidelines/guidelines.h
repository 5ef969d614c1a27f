// SPDX-License-Identifier: Apache-2.0
// Performance guidelines: a native call should not take longer than calls of the same backend that do its work.
// README.md has the list and its sources. Here cells are planned, in which a native call runs beside what it is
// compared with, and what was measured is judged as the gate judges.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "harness/cases/expand.h"
#include "harness/gate/report.h"
#include "harness/record/block_medians.h"
#include "harness/record/record.h"

namespace tutti::harness::guidelines {

/// A case within a cell, which is named after its first case.
struct Place {
  std::size_t cell = 0;
  std::size_t at = 0;  ///< in the cell

  bool operator==(const Place&) const = default;
};

/// A guideline on one backend, number of ranks and size.
struct Comparison {
  std::string guideline;  ///< "all_reduce <= reduce+broadcast"
  Place native;           ///< always the first of its cell
  Place other;            ///< what it should not be slower than
};

struct Plan {
  std::vector<std::vector<Case>> cells = {};  ///< by ranks
  std::vector<Comparison> comparisons = {};
};

/// Collectives that guidelines are of.
[[nodiscard]] std::span<const Collective> collectives();
/// Of one backend. `sweep` has one backend, and collectives of the list above. Errors: those of expand.
[[nodiscard]] Result<Plan> plan_of(const Sweep& sweep);

/// What one pass through the cells gave; rows and medians are found by cell and case id.
class Measured {
 public:
  /// `cell`: the id of the first case of the cell that is measured.
  void add(const std::string& cell, const BlockMedians& medians) { of_[cell][medians.case_id].medians = medians; }
  void add(const std::string& cell, const Row& row) { of_[cell][row.case_id].row = row; }

  struct Side {
    Row row = {};
    BlockMedians medians = {};
  };
  /// Null where there is none.
  [[nodiscard]] const Side* find(const std::string& cell, const std::string& case_id) const;

 private:
  std::map<std::string, std::map<std::string, Side>> of_;
};

/// A comparison with what was found of it.
struct Found {
  enum class State : std::uint8_t { judged, left_out };
  State state = State::judged;
  GateCell cell = {};       ///< of one that is judged
  std::string reason = {};  ///< why it was left out
};

/// Of a first pass, and of one in fresh launches that confirms it. Without that one, `slower` means: to be confirmed.
[[nodiscard]] Found judge_comparison(const Comparison& comparison, std::span<const std::vector<Case>> cells,
                                     const Measured& first, const Measured* again = nullptr);

/// The cells of what is to be confirmed, each with the cases that are needed.
[[nodiscard]] std::vector<std::vector<Case>> cells_to_confirm(std::span<const Comparison> comparisons,
                                                              std::span<const std::vector<Case>> cells);

}  // namespace tutti::harness::guidelines
