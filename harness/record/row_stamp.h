// SPDX-License-Identifier: Apache-2.0
// Where and when a row was measured: what the writer of the rows adds to what the ranks tell.
#pragma once

#include <string>
#include <utility>

#include "harness/machine/machine.h"
#include "harness/record/record.h"

namespace tutti::harness::record {

class RowStamp {
 public:
  explicit RowStamp(const Machine& machine) : fingerprint_(fingerprint_of(machine)), host_(machine.hostname) {}
  /// Of ranks on several machines: the fingerprint is of all, the host that of rank 0.
  RowStamp(std::string fingerprint, std::string host) : fingerprint_(std::move(fingerprint)), host_(std::move(host)) {}
  /// Its machine, its host, and now.
  void put_into(Row& row) const;

 private:
  std::string fingerprint_;
  std::string host_;
};

}  // namespace tutti::harness::record
