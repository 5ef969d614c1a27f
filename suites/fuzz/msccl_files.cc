// SPDX-License-Identifier: Apache-2.0
#include "harness/exchange/import.h"
#include "suites/fuzz/targets.h"

namespace tutti::fuzz {

void msccl_files(std::string_view input) {
  const auto imported = harness::exchange::import_msccl(input);
  if (!imported.is_ok()) return check_message(imported.status());
  const harness::exchange::Imported& one = imported.value();
  // What a small file's thread blocks were found to do, its plans do too.
  if (one.steps > 1000 || one.schedule.shape.units_per_block > 64) return;
  const auto proof = harness::exchange::prove_imported(one);
  TUTTI_ASSERT(proof.is_ok(), "{}", proof.status().message());
}

}  // namespace tutti::fuzz
