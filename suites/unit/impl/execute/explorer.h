// SPDX-License-Identifier: Apache-2.0
// Walks a model (model.h) through every interleaving of its ranks' actions, each state once.
//
// A state is known again by 64 bits of hash: of n states, two are taken for one with a chance of some n^2 / 2^65. Where
// a rank's next action touches nothing that others look at, the other ranks' actions are tried after it only.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>

#include "suites/unit/impl/execute/model_machine.h"

namespace tutti::model {

struct Exploration {
  std::uint64_t states = 0;
  std::uint64_t ends = 0;  ///< states in which every rank has returned from its last call
  std::string violation;   ///< the first one found; empty: none
  std::string path;        ///< the ranks that acted until there, in turn; "c": a store of that rank reached the others
};

class Explorer {
 public:
  static constexpr std::uint64_t kMostStates = 4'000'000;

  explicit Explorer(const World& world) : world_(world) {}

  [[nodiscard]] Exploration explore() {
    visit(initial_state(world_));
    found_.states = known_.size();
    if (found_.violation.empty() && found_.ends == 0) found_.violation = "no interleaving ends";
    return found_;
  }

 private:
  static std::uint64_t hash_of(const State& state) {
    std::uint64_t hash = 0;
    for (const Word word : state) {
      hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
      hash ^= hash >> 32U;
    }
    return hash;
  }

  /// False once something wrong was found.
  bool visit(const State& state) {
    if (!known_.insert(hash_of(state)).second) return true;
    if (known_.size() > kMostStates) return stop("more states than the explorer takes");
    std::size_t successors = 0, done = 0;
    for (int rank = 0; rank < world_.ranks; ++rank) {
      State next = state;
      ModelMachine machine(world_, next, rank);
      if (machine.is_done()) {
        ++done;
        continue;
      }
      if (!machine.act()) continue;
      if (!go_on(machine, next, fmt::format("{} ", rank))) return false;
      ++successors;
      if (machine.was_local()) return true;
    }
    for (int rank = 0; rank < world_.ranks; ++rank) {
      const Word stores = ModelMachine(world_, scratch_ = state, rank).stores();
      for (Word index = 0; index < stores; ++index) {
        State next = state;
        ModelMachine machine(world_, next, rank);
        if (!machine.commit(index)) continue;
        if (!go_on(machine, next, fmt::format("{}c ", rank))) return false;
        ++successors;
      }
    }
    if (successors > 0) return true;
    if (done < static_cast<std::size_t>(world_.ranks)) return stop("deadlock: no rank can go on");
    ++found_.ends;
    return true;
  }

  bool go_on(const ModelMachine& machine, const State& next, const std::string& step) {
    const std::size_t length = path_.size();
    path_ += step;
    if (!machine.violation().empty()) return stop(machine.violation());
    if (!visit(next)) return false;
    path_.resize(length);
    return true;
  }

  bool stop(const std::string& violation) {
    if (found_.violation.empty()) {
      found_.violation = violation;
      found_.path = path_;
    }
    return false;
  }

  const World& world_;
  std::unordered_set<std::uint64_t> known_;
  std::string path_;
  State scratch_;
  Exploration found_;
};

}  // namespace tutti::model
