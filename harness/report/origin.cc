// SPDX-License-Identifier: Apache-2.0
#include "harness/report/origin.h"

#include "harness/report/json.h"

namespace tutti::harness {

void Origin::put_into(Row& row) const {
  row.machine = fingerprint_;
  row.host = host_;
  row.timestamp = utc_now();
}

}  // namespace tutti::harness
