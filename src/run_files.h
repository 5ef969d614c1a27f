// SPDX-License-Identifier: Apache-2.0
// Files beside those of the results that `tutti run` is given or makes.
#pragma once

#include <string>

#include "src/options.h"

namespace tutti::program {

/// The folder is made where it is not there. The journals of other hosts' ranks cannot be read after a hang.
/// Errors: invalid_argument naming the folder, or what has no meaning with it.
[[nodiscard]] Status check_flight(const Settings& settings);

/// Adds the algorithms of files in the list of --algorithms, which names them from then on. Returns what is wrong.
[[nodiscard]] std::string add_files(std::string& list);

}  // namespace tutti::program
