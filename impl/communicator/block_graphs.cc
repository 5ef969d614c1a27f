// SPDX-License-Identifier: Apache-2.0
// Calls of thread blocks that are captured: each device records their launches once, as a graph that is launched as
// often as the ranks post it. Numbers of operations lie in the devices' memory, so a graph counts on by itself.
#include "impl/communicator/block_world.h"

namespace tutti {

Status BlockWorld::begin_capture(int rank) {
  const std::lock_guard lock(mutex_);
  TUTTI_RETURN_IF_ERROR(failed_);
  TUTTI_RETURN_IF_ERROR(check_captures());
  Captures& mine = captures_[static_cast<std::size_t>(rank)];
  if (mine.under_way != nullptr) {
    return error(Code::invalid_argument, "{} captures calls already: end that first", domain_->name_of(rank));
  }
  const std::uint64_t number = mine.begun++;
  while (number - first_graph_ >= graphs_.size()) graphs_.push_back(std::make_shared<Graph>());
  mine.under_way = graphs_[number - first_graph_];
  mine.calls = 0;
  return {};
}

Status BlockWorld::check_captures() const {
  if (!is_shared()) return {};
  return error(Code::unavailable,
               "calls of ranks on the GPUs of several processes are not captured: no process knows those of the others "
               "before they are launched");
}

Status BlockWorld::check_not_captured(int rank, const char* what) const {
  if (captures_[static_cast<std::size_t>(rank)].under_way == nullptr) return {};
  return error(Code::invalid_argument, "{} cannot be captured: collectives alone can", what);
}

void BlockWorld::capture(int rank, const Posted& call) {
  Captures& mine = captures_[static_cast<std::size_t>(rank)];
  std::deque<Round>& rounds = mine.under_way->rounds;
  if (mine.calls == rounds.size()) rounds.emplace_back(ranks_);
  Round& one = rounds[mine.calls++];
  one.posted[static_cast<std::size_t>(rank)] = call;
  ++one.count;
}

Result<std::shared_ptr<BlockWorld::Graph>> BlockWorld::end_capture(int rank) {
  const std::lock_guard lock(mutex_);
  TUTTI_RETURN_IF_ERROR(check_captures());
  Captures& mine = captures_[static_cast<std::size_t>(rank)];
  std::shared_ptr<Graph> graph = std::move(mine.under_way);
  mine.under_way = nullptr;
  TUTTI_RETURN_IF_ERROR(failed_);
  if (graph == nullptr) {
    return error(Code::invalid_argument, "{} ends a capture that it has not begun", domain_->name_of(rank));
  }
  if (++graph->ended == ranks_) {
    graphs_.pop_front();  // the ranks' captures end in one order
    ++first_graph_;
    TUTTI_RETURN_IF_ERROR(fail_unless_ok(conclude(*graph)));
  }
  ++mine.kept;
  return graph;
}

void BlockWorld::forget(int rank, std::shared_ptr<Graph> graph) {
  const std::lock_guard lock(mutex_);  // the last one gives back memory of devices
  --captures_[static_cast<std::size_t>(rank)].kept;
  graph = nullptr;
}

Status BlockWorld::conclude(Graph& graph) {
  if (graph.rounds.empty()) return error(Code::invalid_argument, "nothing was captured: a graph has one call at least");
  for (std::size_t i = 0; i < graph.rounds.size(); ++i) {
    Round& one = graph.rounds[i];
    const Posted& front = one.posted.front();
    for (int rank = 1; rank < ranks_; ++rank) {
      const Posted& posted = one.posted[static_cast<std::size_t>(rank)];
      const bool are_both = front.entry != nullptr && posted.entry != nullptr;
      const bool is_neither = front.entry == nullptr && posted.entry == nullptr;
      if (is_neither || (are_both && posted.entry->note.hash == front.entry->note.hash)) continue;
      const auto captured = [](const Posted& call) { return call.entry == nullptr ? "nothing" : text_of(call, 0); };
      return error(Code::mismatch, "{} and {} do not agree on call {} of what they captured: {}, and {}",
                   domain_->name_of(0), domain_->name_of(rank), i + 1, captured(front), captured(posted));
    }
    one.by_packets = goes_by_packets(one);
    one.first = graph.operations;
    one.operations = static_cast<std::uint64_t>(front.entry->segments);
    graph.operations += one.operations;
  }
  for (std::size_t i = 0; i < graph.rounds.size(); ++i) {
    if (i == 0 || !share_a_launch(graph.rounds[i - 1], graph.rounds[i])) graph.launches.push_back(i);
  }
  for (Place& place : places_) {
    Graph::Part part{.place = &place};
    std::vector<DeviceLaunch> launches;
    for (std::size_t i = 0; i < graph.launches.size(); ++i) {
      const std::size_t end = i + 1 < graph.launches.size() ? graph.launches[i + 1] : graph.rounds.size();
      std::vector<const Round*> rounds;
      for (std::size_t round = graph.launches[i]; round < end; ++round) rounds.push_back(&graph.rounds[round]);
      Result<Prepared> made = prepare(place, rounds);
      if (!made.is_ok()) return told_of(place, made.status());
      Prepared prepared = std::move(made).value();
      part.memory.push_back(std::move(prepared.part.memory));
      launches.push_back(std::move(prepared.launch));
    }
    auto recorded = place.device->record(std::move(launches));
    if (!recorded.is_ok()) return told_of(place, recorded.status());
    part.recorded = std::move(recorded).value();
    graph.parts.push_back(std::move(part));
  }
  return {};
}

/// Lanes wait for the same lane of other ranks alone, so what one lane has written another one may read in a later
/// launch only. Calls of one segment are all of lane 0.
bool BlockWorld::share_a_launch(const Round& round, const Round& next) {
  const auto is_short = [](const Round& one) {
    return std::ranges::all_of(one.posted, [](const Posted& posted) {
      return posted.entry->segments <= 1 && posted.entry->kernel_context == nullptr;
    });
  };
  const PlanHeader& header = round.posted.front().entry->call.plan(0).header();
  const PlanHeader& other = next.posted.front().entry->call.plan(0).header();
  return header.dtype == other.dtype && header.op == other.op && is_short(round) && is_short(next);
}

Status BlockWorld::launch(Graph& graph, Launched& launched) {
  launched.number = launches_ + 1;
  launched.count = graph.launches.size();
  launches_ += launched.count;
  launched.turn = turns_ + 1;
  turns_ += launched.count;
  const std::lock_guard lock(*common_.order);
  for (const Graph::Part& part : graph.parts) {
    const Result<Device::Ticket> ticket = part.place->device->replay(*part.recorded);
    if (!ticket.is_ok()) return told_of(*part.place, ticket.status());
    launched.parts.push_back({.place = part.place, .ticket = ticket.value(), .memory = {}});
  }
  return {};
}

}  // namespace tutti
