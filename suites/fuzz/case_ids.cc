// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/case.h"
#include "harness/cases/suite.h"
#include "suites/fuzz/targets.h"

namespace tutti::fuzz {
namespace {

/// What follows from a case without running it.
void size_up(harness::Case one) {
  TUTTI_ASSERT(largest_buffer_bytes(one) >= 0, "{} has a buffer of less than nothing", case_id(one));
  static_cast<void>(complete_counts(one, {}));
}

}  // namespace

void case_ids(std::string_view input) {
  const auto one = harness::parse_case_id(input);
  if (one.is_ok()) {
    TUTTI_ASSERT(case_id(one.value()) == input, "'{}' is printed as '{}'", input, case_id(one.value()));
    size_up(one.value());
  } else {
    check_message(one.status());
  }
  const auto cell = harness::case_of_cell_id(input);
  if (!cell.is_ok()) return check_message(cell.status());
  const std::string id = cell_id(cell.value());
  const auto again = harness::case_of_cell_id(id);
  TUTTI_ASSERT(again.is_ok() && again.value() == cell.value(), "cell '{}' is printed as '{}'", input, id);
  size_up(cell.value());
}

}  // namespace tutti::fuzz
