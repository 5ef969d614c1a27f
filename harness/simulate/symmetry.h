// SPDX-License-Identifier: Apache-2.0
// Which ranks stand for all: rank r + k often does what rank r does, with peers that lie k further on.
#pragma once

#include "harness/floors.h"
#include "harness/simulate/model.h"
#include "impl/schedule/schedule.h"

namespace tutti::harness::simulate {

/// How many ranks to walk (WalkOptions::period); 0: all of them. All steps of some ranks are compared with those of the
/// first ones, and four steps of every rank.
[[nodiscard]] int period_of(const Schedule& schedule, const Machine& machine);

}  // namespace tutti::harness::simulate
