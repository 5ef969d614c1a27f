// SPDX-License-Identifier: Apache-2.0
// The report of an acceptance for CI servers.
#pragma once

#include <string>

#include "harness/accept/report.h"
#include "harness/floors.h"

namespace tutti::harness::accept {

/// JUnit XML: a suite "accept.STAGE" per stage, with a case per node, and one per part that did not pass in it. Pairs
/// have a case per leaf too; pairs and shifts one per node and rail. A stage says nothing of a node that is not there,
/// or that an earlier one has found: these cases are skipped. No two cases have the same classname and name.
[[nodiscard]] std::string accept_junit(const AcceptReport& report);

}  // namespace tutti::harness::accept
