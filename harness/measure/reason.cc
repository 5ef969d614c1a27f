// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/reason.h"

namespace tutti::harness::measure {

Reason Reason::of(const Status& status) {
  Reason reason = of(status.is_ok() ? 0 : 1, status.message());
  reason.code = status.code();
  return reason;
}

Reason Reason::of(std::int64_t wrong, std::string_view text, bool tells_cause) {
  Reason reason;
  if (wrong == 0) return reason;
  reason.weight = tells_cause ? Weight::cause : Weight::symptom;
  text.copy(reason.bytes.data(), reason.bytes.size() - 1);
  return reason;
}

}  // namespace tutti::harness::measure
