// SPDX-License-Identifier: Apache-2.0
// What one runner of a session with a TrainTask does: it opens the system under test and trains on it.
#pragma once

#include "harness/session/session.h"
#include "harness/session/walk.h"

namespace tutti::harness::session {

/// All runners call it; each has one rank. Errors: unavailable where buffers cannot lie in the memory of the host;
/// those of the system, of the files and of run_training.
[[nodiscard]] Status train(const SessionSpec& spec, const TrainTask& task, const SessionWalk::Place& place);

}  // namespace tutti::harness::session
