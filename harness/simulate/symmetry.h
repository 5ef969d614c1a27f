// SPDX-License-Identifier: Apache-2.0
// Which ranks stand for all: rank r + k often does what rank r does, with peers that lie k further on.
#pragma once

#include "harness/floors.h"
#include "harness/simulate/model.h"
#include "impl/schedule/schedule.h"

namespace tutti::harness::simulate {

struct Symmetry {
  int period = 0;  ///< ranks to walk (WalkOptions::period); 0: all of them
  int alike = 0;   ///< rank r + alike has the steps of rank r, with peers that lie `alike` further on; 0: unknown
};

/// All steps of some ranks are compared with those of the first ones, and four steps of every rank.
[[nodiscard]] Symmetry symmetry_of(const Schedule& schedule, const Machine& machine);

}  // namespace tutti::harness::simulate
