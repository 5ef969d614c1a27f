// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/source.h"

#include "harness/measure/check.h"

namespace tutti::harness::measure {

Status check_afterwards(Runner& runner, Variant& variant, Series& series, Source& source, Checking checking) {
  const int passes = passes_of(variant);
  const int calls = checking == Checking::none || passes == 1 ? 0 : passes;  // each block's own check stands for itself
  for (int call = 0; call < calls; ++call) {
    TUTTI_ASSIGN_OR_RETURN(
        const BlockResult result,
        run_block(
            runner, variant,
            {.salt = source.salt, .samples = 0, .discarded = call == 0 ? 1 : 0, .operations = series.operations}));
    source.salt = result.last_salt;
    if (series.wrong == 0) series.reason = result.reason;
    series.wrong += result.wrong;
  }
  return {};
}

}  // namespace tutti::harness::measure
