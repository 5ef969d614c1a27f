// SPDX-License-Identifier: Apache-2.0
// `tutti run --groups`: groups of the ranks run at the same time, and alone.
#pragma once

#include <string>

#include "src/options.h"

namespace tutti::program {

struct ContentionOptions {
  std::string groups;  ///< empty: there are none
  std::string beside;
};

/// Adds the options to `command`. Requires: `options` outlives it.
void add_contention_options(CLI::App& command, ContentionOptions& options);
/// The groups and what they run become part of the sweep, with as many ranks as the groups have. Errors:
/// invalid_argument naming the option, also for options that have no meaning with groups.
[[nodiscard]] Status settle_groups(const ContentionOptions& options, const CLI::App& command, Settings& settings);

}  // namespace tutti::program
