// SPDX-License-Identifier: Apache-2.0
// What a stream of a device does beside carrying calls: a graph of what was put on it, and instants in its own time.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "impl/types/status.h"

namespace tutti::harness::verify {

/// What was put on a stream while it was captured.
class Graph {
 public:
  virtual ~Graph() = default;
  /// Puts all of it behind what is on the stream, and returns at once. Errors: io with the device's reason.
  virtual Status launch() = 0;
};

/// Instants on a stream. They take their place there like calls, and are known once the stream has passed them.
class Instants {
 public:
  virtual ~Instants() = default;
  /// The next one, behind what is on the stream. Requires: fewer than were asked for.
  virtual Status mark() = 0;
  /// How many of those that were marked the stream has passed. Errors: io.
  [[nodiscard]] virtual Result<std::size_t> passed() = 0;
  /// Microseconds from each instant to the next one. Requires: the stream has passed all. Errors: io.
  [[nodiscard]] virtual Result<std::vector<double>> intervals_us() = 0;
  /// From here on the first one is the next.
  virtual void restart() = 0;
};

}  // namespace tutti::harness::verify
