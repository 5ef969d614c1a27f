// SPDX-License-Identifier: Apache-2.0
// Why schedules are refuted: every reason, not only the first. A reason is a line and the indented lines below it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "impl/types/status.h"

namespace tutti {

class Reasons {
 public:
  /// Adds the reason of a refuted status. A reason whose fault is known already is left out. No effect if `status` is
  /// ok.
  void add(const Status& status);
  /// Adds a reason as above and returns ok; any other error is returned as it is.
  [[nodiscard]] Status note(Status status);
  [[nodiscard]] bool is_empty() const { return reasons_.empty(); }
  /// `refuted` with all reasons; ok if there is none.
  [[nodiscard]] Status status() const;

 private:
  std::vector<std::string> reasons_;
  std::vector<std::string> faults_;
};

/// The reasons in the message of a refuted status.
[[nodiscard]] std::vector<std::string> reasons_in(std::string_view message);

/// A reason's first finding, or its statement, without numbers: equal for the same fault on other ranks.
[[nodiscard]] std::string fault_of(std::string_view reason);

/// One reason of one schedule.
struct Refutation {
  std::string subject;  ///< collective and algorithm
  int ranks = 0;
  std::string reason;
};

/// Refutations of one subject with one fault.
struct CommonFault {
  Refutation smallest;  ///< of the fewest ranks
  int others = 0;       ///< how many more there are
  int most_ranks = 0;
};
/// Refutations by subject and fault, those of the fewest ranks first.
[[nodiscard]] std::vector<CommonFault> common_faults(std::vector<Refutation> refutations);

}  // namespace tutti
