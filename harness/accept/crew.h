// SPDX-License-Identifier: Apache-2.0
// What the stages of an acceptance ask of whatever measures. The stages know no process, host or socket.
#pragma once

#include <string>
#include <vector>

#include "harness/accept/schedule.h"
#include "harness/floors.h"

namespace tutti::harness::accept {

/// How a transfer ended.
enum class Ending {
  measured,  ///< there is a speed
  wrong,     ///< the data that came are wrong: `detail` names the element
  hung,      ///< nothing came before the deadline
  failed,    ///< a node of the pair does not answer: `detail` has the error
};

struct Outcome {
  Ending ending = Ending::measured;
  double log_speed = 0;  ///< natural logarithm of bytes per second; of `measured` only
  std::string detail;
};

/// The nodes of a cluster, numbered from 0, which stay while groups come and go over them.
class Crew {
 public:
  virtual ~Crew() = default;
  [[nodiscard]] virtual int nodes() const = 0;
  [[nodiscard]] virtual std::string name_of(int node) const = 0;
  /// The number of the node's leaf, from 0.
  [[nodiscard]] virtual int leaf_of(int node) const = 0;
  /// Plays all transfers at once and returns an outcome for each, in their order. No node sends twice, none receives
  /// twice. It returns by the deadline of a transfer whatever happens; a transfer that fails ends no other.
  [[nodiscard]] virtual std::vector<Outcome> play(const Round& round) = 0;
};

}  // namespace tutti::harness::accept
