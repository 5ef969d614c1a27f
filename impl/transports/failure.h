// SPDX-License-Identifier: Apache-2.0
// The first failure of the ranks that share a domain's memory: which rank failed, and why. The rank that announces it
// writes the text into its own journal, then a word into the abort line:
//
//   (announcing rank + 1) << 32 | (failed rank + 1)     0: no failure;  no announcing rank: no text
//
// So a reader of the word finds the text complete. A rank writes its text only while the word is 0, so never twice.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "impl/transports/domain.h"
#include "impl/types/status.h"

namespace tutti {

/// Announces on behalf of rank `teller`, whose journal is in this domain's memory, that `failed` has failed. A text
/// that is too long is cut. True when this is the first failure.
bool announce_failure(const Domain& domain, int teller, int failed, std::string_view text);

/// Which rank failed first; nothing while there is no failure.
[[nodiscard]] std::optional<int> failed_rank_of(const Domain& domain);
/// The first failure as all other ranks report it: `aborted`, naming the rank; ok while there is none.
[[nodiscard]] Status announced_failure(const Domain& domain);

/// How the other ranks name the failure `why` of rank `failed`. An aborted rank's message names the rank already.
[[nodiscard]] std::string text_for_others(const Domain& domain, int failed, const Status& why);

}  // namespace tutti
