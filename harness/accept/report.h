// SPDX-License-Identifier: Apache-2.0
// The report of an acceptance: what was found, and whose names the nodes have. From it come sentences (sentences.h),
// the table (table.h) and the files for other programs (exports.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/accept/configuration.h"
#include "harness/accept/findings.h"
#include "harness/accept/groups.h"
#include "harness/accept/rails.h"
#include "harness/floors.h"

namespace tutti::harness::accept {

/// A stage that has been played, or is left out.
struct StageReport {
  std::string name;
  std::string left_out = {};  ///< why; empty: it was played
  double seconds = 0;
  std::vector<int> nodes = {};          ///< that played
  std::vector<std::string> unmet = {};  ///< stages that the plan says it needs, and that were not played
};

/// What the inventory noticed: a difference between hosts, or what would spoil a measurement on one of them.
struct InventoryNote {
  std::string severity;  ///< "blocks", "spoils" or "note"
  std::string what, why, advice;
};

/// From the start of the processes of a group's ranks until they were ready for their first collective.
struct InitTimes {
  int groups = 0;
  double median_s = 0;
  double most_s = 0;
  std::vector<int> slowest = {};  ///< the nodes of the group that took longest
};

struct AcceptReport {
  std::vector<std::string> names;     ///< by node
  std::vector<int> leaves;            ///< by node
  bool are_leaves_known = false;      ///< said, or shown by speeds; else uplinks are not tested
  std::vector<std::string> absences;  ///< by node: why it is not there; empty: it is
  Limits limits;
  std::size_t message_size = 0;   ///< bytes, of the bandwidth of pairs
  Findings findings;              ///< of all stages
  std::vector<RailReport> rails;  ///< what pairs have shown on each; empty: no rail was named
  std::vector<StageReport> stages;
  std::vector<InventoryNote> inventory;          ///< the most severe first
  std::string library = {};                      ///< that played in place of tutti; empty: none
  std::string bare_system = {};                  ///< "tutti over tcp"
  std::vector<std::string> library_stages = {};  ///< that the library played
  std::optional<LibraryRatio> ratio = {};        ///< of the library to the bare transport, if both played
  std::vector<SizeFigures> sizes;                ///< of the stage groups
  long long soaked_operations = 0;               ///< that were verified in the stage soak
  double steps_per_second = 0;                   ///< of the training in the stage job; 0: there was none
  double command_seconds = 0;                    ///< of the user's command in the stage job; 0: there was none
  InitTimes init = {};
  std::string command;  ///< that repeats it
  std::string build;
  std::int64_t began_s = 0, ended_s = 0;  ///< seconds since 1970
  int valid_hours = 24;                   ///< after the end
  bool is_pretended = false;
};

/// The verdict of a node: ERROR if it is not there, else that of its findings.
[[nodiscard]] Verdict verdict_of(const AcceptReport& report, int node);
/// Why the node is not PASS, "dead" or "nic-out"; empty if it is.
[[nodiscard]] std::string reason_of(const AcceptReport& report, int node);
/// Whether it is about the node itself, or about wrong data that the node sent or received.
[[nodiscard]] bool blames(const Finding& finding, int node);
/// Whether jobs should do without the node: its own part fails, or data of it were wrong.
[[nodiscard]] bool is_excluded(const AcceptReport& report, int node);

/// The finding for which the node is not PASS on this rail; null: there is none.
[[nodiscard]] const Finding* blame_on_rail(const AcceptReport& report, int node, int rail);
/// The name of the finding's rail; empty: it is of none.
[[nodiscard]] std::string rail_of(const AcceptReport& report, const Finding& finding);

/// What the whole comes to, the gravest first.
enum class Conclusion { wrong, broken, slow, untested, interrupted, undecided, passed };
[[nodiscard]] Conclusion conclusion_of(const AcceptReport& report);
/// "PASS", "FAIL", "UNDECIDED", "ERROR", "INCOMPLETE".
[[nodiscard]] std::string_view to_string(Conclusion conclusion);

/// "A" to "Z", then "leaf 27".
[[nodiscard]] std::string leaf_name(int leaf);

}  // namespace tutti::harness::accept
