// SPDX-License-Identifier: Apache-2.0
// Files beside those of the results that `tutti run` is given or makes.
#pragma once

#include <string>

#include "harness/launch/job.h"
#include "src/options.h"

namespace tutti::program {

/// Makes the folder where it is not there. Errors: invalid_argument naming the folder, or the starter of the job: that
/// one may end all processes before anything is written.
[[nodiscard]] Status check_flight(const Settings& settings);
/// Writes into the folder what is known of so many ranks that hang. Removes from it what an older job has left. Prints
/// how to read it and which hosts have not told. What cannot be written is printed as an error.
void record_flight(const std::string& folder, int ranks, const harness::Recall& recall);

/// Adds the algorithms of files in the list of --algorithms, which names them from then on. Returns what is wrong.
[[nodiscard]] std::string add_files(std::string& list);

}  // namespace tutti::program
