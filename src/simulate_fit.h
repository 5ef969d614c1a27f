// SPDX-License-Identifier: Apache-2.0
// `tutti simulate --fit`: the file of a machine from the rows of a run.
#pragma once

#include <string>

namespace tutti::program {

/// Fits the rows of the CSV `result`, prints how well, and writes the machine to `out`; empty: it is printed. The exit
/// code.
[[nodiscard]] int fit_machine(const std::string& result, const std::string& out);

}  // namespace tutti::program
