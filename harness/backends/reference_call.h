// SPDX-License-Identifier: Apache-2.0
// A call as a reference library takes it, and what it points to.
#pragma once

#include <string>
#include <vector>

#include "harness/backends/backend.h"
#include "harness/verify/oracle.h"
#include "impl/reduce/scale.h"

namespace tutti::harness::backends {

class ReferenceCall {
 public:
  /// That of `rank`; buffers and group are the caller's to set.
  ReferenceCall(const Operation& what, int rank, bool is_in_place);
  ReferenceCall(const ReferenceCall&) = delete;
  ReferenceCall& operator=(const ReferenceCall&) = delete;

  TuttiBackendCall call{};

 private:
  /// The blocks of a divided buffer.
  struct Arrays {
    std::vector<std::int64_t> counts, displacements;
    void add(const Place& place);
  };
  void add_blocks(const Operation& what, int rank);

  std::string collective_, dtype_, op_;
  Factor factor_{};
  Arrays send_, receive_;
};

}  // namespace tutti::harness::backends
