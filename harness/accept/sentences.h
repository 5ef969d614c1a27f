// SPDX-License-Identifier: Apache-2.0
// What an acceptance has found, as sentences: which part, by how much, and why this part and no other.
#pragma once

#include <string>
#include <vector>

#include "harness/accept/report.h"
#include "harness/floors.h"

namespace tutti::harness::accept {

/// One finding: "node17 sends 31.0 % (29.8 to 32.1) slower than the fleet, and receives as fast: ...".
[[nodiscard]] std::string sentence_of(const AcceptReport& report, const Finding& finding);
/// The first line of every form of the report, without "tutti accept: ".
[[nodiscard]] std::string verdict_sentence(const AcceptReport& report);

/// Returns what the stages cannot tell of this cluster, each with its reason.
[[nodiscard]] std::vector<std::string> untested_sentences(const AcceptReport& report);

/// Says of two and more nodes that fail by the same share that another kind of hardware looks so too; empty: none do.
[[nodiscard]] std::string alike_sentence(const AcceptReport& report);
/// Where a larger message of the groups has a bandwidth far below that of a smaller one. It is no verdict: a rule of
/// the library, or a buffer that no longer fits, makes one too.
[[nodiscard]] std::vector<std::string> dip_sentences(const AcceptReport& report);

/// A logarithm of a ratio in percent: "+0.4", "-31.0".
[[nodiscard]] std::string signed_percent(double log_ratio);
/// "1,891".
[[nodiscard]] std::string with_commas(long long number);

}  // namespace tutti::harness::accept
