// SPDX-License-Identifier: Apache-2.0
// A session of a RepeatTask: each case is called several times on the same input, and the results of all ranks are
// reported bit by bit (harness/repeat/result_message.h).
#pragma once

#include "harness/measure/runner.h"
#include "harness/measure/variant.h"
#include "harness/record/record.h"
#include "harness/session/session.h"
#include "harness/session/spec.h"

namespace tutti::harness::session {

/// The row of the case, on runner 0: every result was verified too. All runners call it. Errors: those of the variant's
/// operations, of the runner and of `send`; the job is then over.
[[nodiscard]] Result<Row> repeat_case(Runner& runner, Variant& variant, const RepeatTask& task, const Send& send);

}  // namespace tutti::harness::session
