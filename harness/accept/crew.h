// SPDX-License-Identifier: Apache-2.0
// What the stages of an acceptance ask of whatever measures. The stages know no process, host or socket.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "harness/accept/schedule.h"
#include "harness/floors.h"

namespace tutti::harness::accept {

/// How a test ended.
enum class Ending {
  measured,     ///< there is a speed
  wrong,        ///< the data that came are wrong: `detail` names the element
  hung,         ///< nothing came before the deadline
  failed,       ///< a node of the group does not answer: `detail` has the error
  interrupted,  ///< the user has asked for the end: nothing is known of the test
};

/// What a group measures.
enum class Measure {
  bandwidth,   ///< of a pair: the first node sends windows of messages to the second
  back,        ///< of a pair: bandwidth from the second node to the first
  latency,     ///< of a pair: half of a round trip
  alone,       ///< of one node: an all_reduce among ranks of its own
  ring,        ///< of two or more: each node sends to the next one of the group, and receives from the one before
  all_reduce,  ///< of two or more: a sum over all nodes of the group, verified
  all_to_all,  ///< of two or more: a message from each node to each other one, verified
  soak,        ///< of two or more: a drawn mix of operations, each result verified
  training,    ///< of two or more: a network learns, the sums of gradients are verified
  command,     ///< of two or more: a command of the user's that ends with exit code 0
};

/// The interface that a group has if none is asked for.
inline constexpr int kNoRail = -1;

struct Test {
  Measure measure = Measure::bandwidth;
  std::size_t bytes = 0;  ///< of a message; of an all_reduce the whole; of a soak the number of operations, of a
                          ///< training images per rank
  int rail = kNoRail;     ///< of the crew's rails, over which messages go
  bool is_bare = false;   ///< by tutti's own transport, where a library plays otherwise
  friend bool operator==(const Test&, const Test&) = default;
};

struct Outcome {
  Ending ending = Ending::measured;
  /// Natural logarithm of bytes per second, of the slowest node. Of latency 1/s, of a soak operations per second, of a
  /// training steps per second, of a command 1/s.
  double log_speed = 0;
  std::optional<double> low = {}, high = {};  ///< the 95 % interval of log_speed by the samples of the test, if known
  std::vector<double> members;                ///< of alone and ring: log_speed of each node, in the order of the group
  std::string detail = {};
  double seconds = 0;  ///< that the test took
};

/// Whether a test came to a bad end. One that was interrupted says nothing.
[[nodiscard]] inline bool is_failure(const Outcome& outcome) {
  return outcome.ending != Ending::measured && outcome.ending != Ending::interrupted;
}

/// Nodes that play together. A pair has two.
using Group = std::vector<int>;

/// The nodes of a cluster, numbered from 0, which stay while groups come and go over them.
class Crew {
 public:
  virtual ~Crew() = default;
  [[nodiscard]] virtual int nodes() const = 0;
  [[nodiscard]] virtual std::string name_of(int node) const = 0;
  /// The number of the node's leaf, from 0.
  [[nodiscard]] virtual int leaf_of(int node) const = 0;
  /// Why the node is not there. Empty: it is. A node that is not there plays in no group.
  [[nodiscard]] virtual std::string absence_of(int /*node*/) const { return {}; }
  /// The names of the rails: interfaces that all nodes have, each of a network of its own. Empty: no test names one.
  [[nodiscard]] virtual std::vector<std::string> rails() const { return {}; }
  /// Why the node does not have that rail. Empty: it has. A node without it plays in no test of the rail.
  [[nodiscard]] virtual std::string absence_of_rail(int /*node*/, int /*rail*/) const { return {}; }
  /// The library that plays in place of tutti. Empty: tutti plays.
  [[nodiscard]] virtual std::string library() const { return {}; }
  /// What the library does not play is played by tutti.
  [[nodiscard]] virtual bool plays_library(Measure /*measure*/) const { return !library().empty(); }
  /// What plays a bare test: "tutti over tcp".
  [[nodiscard]] virtual std::string bare_system() const { return "tutti"; }
  /// Plays all groups at once, each through all tests in their order, and returns their outcomes: [group][test]. The
  /// groups are disjoint (asserted). It returns by the deadline of a group whatever happens. A group that fails ends no
  /// other; its tests that were not begun have the outcome of the one that failed.
  [[nodiscard]] virtual std::vector<std::vector<Outcome>> play(const std::vector<Group>& groups,
                                                               const std::vector<Test>& tests) = 0;
  /// Lets some time go by, so that a later test meets another state of the machines. Returns early if interrupted.
  virtual void pause() {}
};

}  // namespace tutti::harness::accept
