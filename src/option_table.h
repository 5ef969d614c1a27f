// SPDX-License-Identifier: Apache-2.0
// The rows of the table of options (options.h): how each is called, what it takes, and what it sets.
#pragma once

#include <string_view>
#include <vector>

#include "harness/cases/conditions.h"
#include "impl/types/status.h"
#include "src/options.h"

namespace tutti::program {

using Apply = Status (*)(Settings&, std::string_view, const Surroundings&);

/// A row.
struct Option {
  std::string_view name;
  std::string_view value;
  std::string_view fallback;  ///< empty: none
  std::string_view help;
  Apply apply = nullptr;
  bool is_of_check = false;                       ///< not of a sweep that measures
  const harness::Condition* condition = nullptr;  ///< which it sets, in place of `apply`

  [[nodiscard]] bool is_flag() const { return condition != nullptr && value.empty(); }
  Status set(Settings& settings, std::string_view text, const Surroundings& around) const {
    return condition != nullptr ? condition->read(settings.conditions, text) : apply(settings, text, around);
  }
};

/// All of them: those of the sweep, then the conditions.
[[nodiscard]] const std::vector<Option>& all_options();

}  // namespace tutti::program
