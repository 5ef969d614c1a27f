// SPDX-License-Identifier: Apache-2.0
// Barriers: one barrier per system under test, for --sync library. A sample of a system then starts after that system's
// own barrier.
#pragma once

#include <map>
#include <string>

#include "harness/backends/system.h"
#include "harness/measure/start.h"

namespace tutti::harness::measure {

class Barriers {
 public:
  using Systems = std::map<std::string, Backend*>;  ///< by name
  /// One on every system that has one on all runners, on ranks and over a transport as `like` says. All runners call
  /// it. Errors: those of the runner.
  Status open(Runner& runner, const Case& like, const Systems& systems, const MemorySource& memory);

  /// That samples of this backend can start: after its barrier, or because no barriers were opened.
  /// Errors: unavailable with the reason why it has no barrier.
  [[nodiscard]] Status has_start(const std::string& backend) const;
  /// Null where this backend has no barrier.
  [[nodiscard]] Variant* find(const std::string& backend);
  /// Nanoseconds that a sample takes in which nothing is done, by backend; where there are no barriers, of all of them
  /// (kAll). All runners call it. Errors: those of the runner and of the barriers.
  [[nodiscard]] Result<std::map<std::string, double>> measure_floors(Runner& runner, Synchronisation sync);

 private:
  std::map<std::string, Variant> by_backend_;
  std::map<std::string, std::string> why_none_;  ///< of the backends that have no barrier
};

}  // namespace tutti::harness::measure
