// SPDX-License-Identifier: Apache-2.0
// Checking one case for correctness only: check_case makes a row without times.
//
// A case with data runs several times on fresh data, so that a result that is right only once does not pass. What each
// operation has left is looked at twice, so that a write after its completion does not pass either. A barrier runs with
// each rank late in turn.
//
// A case with more than 256 KiB a rank takes most of the time. Of such a case only the form out of place with private
// buffers runs several times, the other forms once. Each form has data of its own, so that what is left of the form
// before is wrong.
//
// Passes. Where a narrow float cannot sum all ranks exactly, several operations are one check, the passes. They run on
// data of consecutive salts. In each pass other ranks contribute to an element, and each rank does in one of them
// (inputs.h).
//
// Floats have one operation more, on special values (special_values.h), where a block has 256 to 4096 elements.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/measure/runner.h"
#include "harness/measure/variant.h"
#include "harness/record/record.h"

namespace tutti::harness::measure {

/// The row (ok or wrong, with the diagnosis) is runner 0's result; other runners get an empty one.
/// Errors: those of the variant's operations and of the runner; the job is then over.
/// `other`: the same case in other buffers, whose operations then also come between those of `variant` (check_in_turn).
/// May be null.
[[nodiscard]] Result<Row> check_case(Runner& runner, Variant& variant, Variant* other = nullptr);

/// Operations on consecutive salts after which every rank has contributed to every element.
[[nodiscard]] int passes_of(const Variant& variant);
/// The operations of a check that are not on special values: how many, on data of consecutive salts.
struct Rounds {
  std::uint64_t first_salt = 1;
  int number = 0;
};
[[nodiscard]] Rounds rounds_of(const Variant& variant);

/// How one operation on the data of `salt` is looked at.
struct Look {
  std::uint64_t salt = 0;
  Sight sight = {};
  bool is_last = true;  ///< of several: only this one is looked at again
  /// Where not null: gets the memory of each of the runner's ranks at completion (Variant::fingerprints).
  std::vector<std::uint64_t>* footprints = nullptr;
};
/// One operation, verified; what this runner found. Errors: as check_case.
[[nodiscard]] Result<Damage> check_operation(Runner& runner, Variant& variant, const Look& look);
/// Of one operation more: the text stays, but where this is the first one that is wrong, or that tells a cause.
void add_operation(Damage& damage, const Damage& found);
/// Barriers with each rank late in turn: runner 0 says what was wrong.
[[nodiscard]] Result<Damage> check_barrier_rule(Runner& runner, Variant& variant, const Sight& sight = {});
/// What all runners found, on every runner: the text is that of the first one that tells a cause, or of the first one.
/// Where all ranks should have one result and a single one has another, the text says so.
[[nodiscard]] Result<Damage> damage_of_all(Runner& runner, const Case& one, const Damage& mine);

}  // namespace tutti::harness::measure
