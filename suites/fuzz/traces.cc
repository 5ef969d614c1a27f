// SPDX-License-Identifier: Apache-2.0
#include "harness/record/trace.h"
#include "suites/fuzz/targets.h"

namespace tutti::fuzz {

void traces(std::string_view input) {
  for (const int ranks : {1, 2, 5}) {
    const auto trace = harness::parse_trace(input, ranks);
    if (!trace.is_ok()) {
      check_message(trace.status());
      continue;
    }
    for (const harness::TraceCall& call : trace.value().calls) {
      TUTTI_ASSERT(call.gap.count() >= 0 && call.gap <= harness::kMostTraceGap, "a gap of {} ns", call.gap.count());
      harness::Case one;
      static_cast<harness::Cell&>(one) = call.cell;
      const std::string id = case_id(one);
      TUTTI_ASSERT(harness::parse_case_id(id).is_ok(), "'{}' is no id", id);
      TUTTI_ASSERT(one.bytes >= 0 && harness::is_name(call.step), "{} bytes in step '{}'", one.bytes, call.step);
    }
  }
}

}  // namespace tutti::fuzz
