// SPDX-License-Identifier: Apache-2.0
// Walks a model (model.h) through every interleaving of its ranks' actions, and of what arrives between hosts, each
// state once.
//
// A state is known again by 64 bits of hash: of n states, two are taken for one with a chance of some n^2 / 2^65. Where
// a rank's next action touches nothing that others look at, the other ranks' actions are tried after it only. The same
// holds where what a rank looks at cannot change any more, and for the half of a message that nobody looks at yet.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "suites/unit/impl/execute/model_machine.h"

namespace tutti::model {

struct Exploration {
  std::uint64_t states = 0;
  std::uint64_t ends = 0;  ///< states in which every rank has returned from its last call
  std::string violation;   ///< the first one found; empty: none
  /// The ranks that acted until there, in turn. "0c": a store of rank 0 reached the others; "0<1": a message of rank 1
  /// reached rank 0; "0i": rank 0 found nothing to do.
  std::string path;
};

class Explorer {
 public:
  static constexpr std::uint64_t kMostStates = 4'000'000;

  enum class Orders : std::uint8_t { that_matter, all };
  explicit Explorer(World world, Orders orders = Orders::that_matter) : world_(std::move(world)), orders_(orders) {}

  [[nodiscard]] Exploration explore() {
    State first = initial_state(world_);
    visit(first);
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

  /// A state that may come next, by which step, and what the step showed to be wrong.
  struct Successor {
    State state;
    std::string step;
    std::string violation;
    bool is_local = false;
  };

  /// False once something wrong was found.
  bool visit(State& state) {
    if (!known_.insert(hash_of(state)).second) return true;
    if (known_.size() > kMostStates) return stop("more states than the explorer takes");
    std::vector<Successor> successors;
    int done = 0;
    for (int rank = 0; rank < world_.ranks && !ends_with_local(successors); ++rank) {
      if (ModelMachine(world_, state, rank).is_done()) {
        ++done;
      } else {
        add_acts(state, rank, successors);
      }
    }
    for (int rank = 0; rank < world_.ranks && !ends_with_local(successors); ++rank) {
      add_arrivals(state, rank, successors);
    }
    if (ends_with_local(successors)) return go_on(successors.back());
    for (Successor& next : successors) {
      if (!go_on(next)) return false;
    }
    if (!successors.empty()) return true;
    if (done < world_.ranks) return stop("deadlock: no rank can go on");
    ++found_.ends;
    return true;
  }

  static bool ends_with_local(const std::vector<Successor>& successors) {
    return !successors.empty() && successors.back().is_local;
  }

  /// Adds the state after `action`, where the rank can take it.
  template <class Action>
  bool add(const State& state, int rank, std::vector<Successor>& successors, Action action) {
    scratch_ = state;
    ModelMachine machine(world_, scratch_, rank);
    std::string step = action(machine);
    if (step.empty()) return false;
    successors.push_back(
        {scratch_, std::move(step), machine.violation(), machine.was_local() && orders_ != Orders::all});
    return true;
  }

  void add_acts(const State& state, int rank, std::vector<Successor>& successors) {
    const auto act = [&](ModelMachine& machine) { return machine.act() ? fmt::format("{} ", rank) : ""; };
    const auto idle = [&](ModelMachine& machine) { return machine.idle() ? fmt::format("{}i ", rank) : ""; };
    if (!add(state, rank, successors, act) && !world_.hosts.empty()) add(state, rank, successors, idle);
  }

  /// Of the rank's stores at the others, and of messages at the rank.
  void add_arrivals(State& state, int rank, std::vector<Successor>& successors) {
    const Word stores = ModelMachine(world_, state, rank).stores();
    for (Word index = 0; index < stores; ++index) {
      add(state, rank, successors,
          [&](ModelMachine& machine) { return machine.commit(index) ? fmt::format("{}c ", rank) : ""; });
    }
    for (int from = 0; from < world_.ranks; ++from) {
      if (!world_.is_across(from, rank) || state[static_cast<std::size_t>(world_.on_the_way(from, rank))] == 0)
        continue;
      for (Word index = 0; !ends_with_local(successors); ++index) {
        const auto deliver = [&](ModelMachine& machine) {
          return machine.deliver(from, index) ? fmt::format("{}<{} ", rank, from) : "";
        };
        if (!add(state, rank, successors, deliver)) break;
      }
    }
  }

  bool go_on(Successor& next) {
    const std::size_t length = path_.size();
    path_ += next.step;
    if (!next.violation.empty()) return stop(next.violation);
    if (!visit(next.state)) return false;
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

  const World world_;
  const Orders orders_;
  std::unordered_set<std::uint64_t> known_;
  std::string path_;
  State scratch_;
  Exploration found_;
};

}  // namespace tutti::model
