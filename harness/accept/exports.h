// SPDX-License-Identifier: Apache-2.0
// The report of an acceptance for other programs: Prometheus and JSON.
#pragma once

#include <string>

#include "harness/accept/report.h"
#include "harness/floors.h"

namespace tutti::harness::accept {

/// tutti_accept_verdict{node,stage,class,verdict} and tutti_accept_of_fleet_ratio{node,direction}.
[[nodiscard]] std::string accept_prometheus(const AcceptReport& report);
/// One document; `--baseline` reads it again.
[[nodiscard]] std::string accept_json(const AcceptReport& report);

}  // namespace tutti::harness::accept
