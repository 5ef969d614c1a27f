// SPDX-License-Identifier: Apache-2.0
// What repeats of a suspect's tests mean. A repeat is a difference: the logarithm of the suspect's speed, less that of
// the fleet and less what control pairs lost in the same round. Repeats come in visits, which lie apart in time.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "harness/floors.h"

namespace tutti::harness::accept {

enum class Verdict {
  pass,
  fail,       ///< slower than the margin allows, or too fast: the interval is beyond the limit in several visits
  suspect,    ///< unsteady: slow in some visits and not in others
  undecided,  ///< the interval holds a limit
  untested,   ///< no repeat
  error,      ///< a tool failed, or the node was not reached
  skipped,    ///< it did not pass what the stage needs
};
[[nodiscard]] std::string_view to_string(Verdict verdict);

struct Limits {
  double margin = 0.05;    ///< slower than the fleet by a larger share is a fault; above 0, below 1
  double too_fast = 0.10;  ///< so is faster by a larger share; above 0
  double confidence = 0.999;
};
/// A part that is slow one way is slow both ways if the way back is beyond this share of the margin.
inline constexpr double kIsBothWays = 0.7;
/// The margin as the logarithm of a ratio, below 0.
[[nodiscard]] double margin_of(const Limits& limits);

/// All numbers are logarithms of ratios to the fleet.
struct Judgement {
  Verdict verdict = Verdict::untested;
  bool is_fast = false;  ///< of `fail`: too fast, not slow
  double middle = 0;
  std::optional<double> low, high;  ///< of `confidence`; empty if there are too few repeats
};

/// A suspect fails from two visits on, with three quarters of them beyond the limit and the whole interval too. It
/// passes after one visit if that visit's median is far from both limits. Visits without repeats do not count. Repeats
/// are finite (asserted). `level_error`: the standard error of the fleet's level, which all repeats have in common; it
/// widens the interval.
[[nodiscard]] Judgement judge(const std::vector<std::vector<double>>& visits, const Limits& limits,
                              double level_error = 0);

/// Which part of a node is slow.
enum class Part { none, node, nic, nic_out, nic_in };
[[nodiscard]] std::string_view to_string(Part part);

struct Directions {
  Judgement out, in;
  bool is_slow_alone = false;
};
/// One direction that fails is the side of its NIC. The other direction joins it if it fails too, or if its middle is
/// beyond 0.7 margins: then the NIC is slow, or the node if it is slow alone too.
[[nodiscard]] Part slow_part(const Directions& node, const Limits& limits);

}  // namespace tutti::harness::accept
