// SPDX-License-Identifier: Apache-2.0
#include "harness/report/row_stamp.h"

#include "harness/report/json.h"

namespace tutti::harness {

void RowStamp::put_into(Row& row) const {
  row.machine = fingerprint_;
  row.host = host_;
  row.timestamp = utc_now();
}

}  // namespace tutti::harness
