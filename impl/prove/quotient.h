// SPDX-License-Identifier: Apache-2.0
// One rank's program proved for all ranks, where the schedule commutes with a group (symmetry.h).
//
// No step receives from "anyone" and none depends on data. So either every run of the ranks ends, and all runs give the
// same, or every run gets stuck in the same state. Here is the run in which all ranks do step i together. In it the
// state of rank g is that of rank 0, taken by g, after each step. So rank 0's state is enough. What it sends to rank d
// goes into a queue named d; what comes from rank p is what it sent to the rank that p takes 0 back from, taken by p.
// A read of rank d's memory reads rank 0's own, where it lies seen from d.
//
// A value is a node, with the element by which it was taken: a reduction of values. Each output is evaluated where it
// was made, with random inputs. The rule of races is local to the owner of the memory (races.h), so that the accesses
// of all ranks to rank 0's memory are those of rank 0 to theirs, taken back.
#pragma once

#include <span>
#include <vector>

#include "impl/prove/prove.h"
#include "impl/prove/steps.h"
#include "impl/prove/symmetry.h"

namespace tutti {

/// What was derived of rank 0, and so of every rank.
struct OneRank {
  std::vector<Finding> findings;
  Cost cost;
  bool has_heard_of_all = false;  ///< by messages and signals, when it ends
  bool is_through = false;        ///< every step was done, so `cost` is that of all steps
  bool is_stuck = false;          ///< a finding says that a step can never be done
  steps::ValueLabels labels;      ///< of all ranks, out of place
};

/// Proves all obligations of prove.h in units, of rank 0's `program`. Requires: `schedule` commutes with `symmetry`,
/// and no step has a flaw.
[[nodiscard]] OneRank prove_one_rank(const Schedule& schedule, const Symmetry& symmetry, std::span<const Step> program,
                                     steps::Form form);

}  // namespace tutti
