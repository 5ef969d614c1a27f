// SPDX-License-Identifier: Apache-2.0
#include "harness/record/row_stamp.h"

#include "harness/machine/clock.h"

namespace tutti::harness::record {

void RowStamp::put_into(Row& row) const {
  row.machine = fingerprint_;
  row.host = host_;
  row.timestamp = utc_now();
}

}  // namespace tutti::harness::record
