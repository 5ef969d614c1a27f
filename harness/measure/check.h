// SPDX-License-Identifier: Apache-2.0
// Checking one case for correctness only: no times. Data cases run on fresh data several times, so that a result that
// is right only once does not pass; a barrier runs with each rank late in turn.
#pragma once

#include "harness/measure/host.h"
#include "harness/measure/variant.h"
#include "harness/report/record.h"

namespace tutti::harness {

/// The row (ok or wrong, with the diagnosis) is host 0's result; other hosts get an empty one.
/// Errors: those of the variant's operations and of the host; the job is then over.
[[nodiscard]] Result<Row> check_case(Host& host, Variant& variant);

}  // namespace tutti::harness
