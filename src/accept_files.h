// SPDX-License-Identifier: Apache-2.0
// The files that `tutti accept` writes: what was found in each format, and the journal of its tests.
#pragma once

#include <optional>
#include <string>

#include "harness/accept/journal.h"
#include "harness/accept/report.h"
#include "harness/text/output_file.h"
#include "impl/types/status.h"
#include "src/accept_plan.h"

namespace tutti::program {

/// Every file is opened before anything is measured. Errors: those of the file that cannot be.
[[nodiscard]] Status open_files(const AcceptRequest& request, harness::OutputFiles& files);

/// Writes all that can be written. Errors: the first that came.
[[nodiscard]] Status write_files(const AcceptRequest& request, const harness::accept::AcceptReport& report,
                                 harness::OutputFiles& files);

/// "# exclude: node5 node9: x.exclude.hosts, x.exclude.slurm"; empty: there is nothing to say.
[[nodiscard]] std::string excluded_text(const AcceptRequest& request, const harness::accept::AcceptReport& report);

/// The journal that is written: a new one, or the one that --resume goes on with, whose tests `crew` takes over.
/// Errors: invalid_argument: it is of another plan, or damaged; io.
[[nodiscard]] Result<std::optional<harness::LineFile>> journal_of(const AcceptRequest& request,
                                                                  harness::accept::JournalCrew& crew,
                                                                  const harness::accept::JournalHead& head);

}  // namespace tutti::program
