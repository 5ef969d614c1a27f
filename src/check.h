// SPDX-License-Identifier: Apache-2.0
// What the files of `tutti check` share.
#pragma once

#include <string>

#include "harness/cases/conditions.h"
#include "harness/cases/sweep.h"
#include "src/jobs.h"

namespace tutti::program {

struct FaultOptions {
  std::string names;        ///< of the faults, or all
  bool has_dtypes = false;  ///< --dtypes was given: those, and not one drawn of each class
  harness::Conditions conditions = {};
  Reach reach = {};  ///< of conditions.topology.hosts
};
/// The verifier on trial, on the sweep's collectives, dtypes, ops, ranks, kind of ranks and seed. An exit code.
[[nodiscard]] int check_faults(const harness::Sweep& sweep, const FaultOptions& options);

}  // namespace tutti::program
