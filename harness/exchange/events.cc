// SPDX-License-Identifier: Apache-2.0
#include "harness/exchange/events.h"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>

#include <fmt/format.h>

namespace tutti::harness::exchange {

Events::Events(const MscclFile& file) : file_(file) {
  std::map<std::tuple<int, int, int>, int> links;
  std::map<std::pair<int, int>, int> pairs;
  const auto link_for = [&](int from, int to, int channel) {
    const auto [at, is_new] = links.try_emplace({from, to, channel}, static_cast<int>(links_.size()));
    if (is_new) {
      const int pair = pairs.try_emplace({from, to}, static_cast<int>(pairs.size())).first->second;
      links_.push_back({.from = from, .to = to, .channel = channel, .pair = pair});
    }
    return at->second;
  };
  for (int gpu = 0; gpu < file.problem.ranks; ++gpu) {
    const auto& blocks = file.gpus[static_cast<std::size_t>(gpu)].blocks;
    const int first_block = static_cast<int>(first_.size());
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      const ThreadBlock& block = blocks[b];
      const int id = static_cast<int>(first_.size());
      first_.push_back(size());
      const int into = block.send < 0 ? -1 : link_for(gpu, block.send, block.channel);
      const int from = block.receive < 0 ? -1 : link_for(block.receive, gpu, block.channel);
      if (into >= 0) links_[static_cast<std::size_t>(into)].sender = id;
      if (from >= 0) links_[static_cast<std::size_t>(from)].receiver = id;
      for (std::size_t i = 0; i < block.steps.size(); ++i) {
        const StepType& type = *block.steps[i].type;
        events_.push_back({.gpu = gpu,
                           .block = static_cast<int>(b),
                           .index = static_cast<int>(i),
                           .into = type.sends ? into : -1,
                           .from = type.receives ? from : -1});
      }
    }
    for (int event = first_block < static_cast<int>(first_.size()) ? first_[static_cast<std::size_t>(first_block)]
                                                                   : size();
         event < size(); ++event) {
      const MscclStep& step = step_of(event);
      if (step.awaited_block < 0) continue;
      events_[static_cast<std::size_t>(event)].awaited =
          first_[static_cast<std::size_t>(first_block + step.awaited_block)] + step.awaited_step;
    }
  }
  pairs_ = static_cast<int>(pairs.size());
  first_.push_back(size());
  match_messages();
}

void Events::match_messages() {
  std::vector<std::vector<int>> sent(links_.size());
  for (int event = 0; event < size(); ++event) {
    if (at(event).into >= 0) sent[static_cast<std::size_t>(at(event).into)].push_back(event);
  }
  std::vector<std::size_t> received(links_.size());
  for (Event& event : events_) {
    if (event.from < 0) continue;
    const auto link = static_cast<std::size_t>(event.from);
    const std::size_t index = received[link]++;
    if (index < sent[link].size()) event.sent = sent[link][index];
  }
}

const ThreadBlock& Events::block_of(int event) const {
  return file_.gpus[static_cast<std::size_t>(at(event).gpu)].blocks[static_cast<std::size_t>(at(event).block)];
}

const MscclStep& Events::step_of(int event) const {
  return block_of(event).steps[static_cast<std::size_t>(at(event).index)];
}

std::string Events::place(int event) const {
  const MscclStep& step = step_of(event);
  return fmt::format("gpu {} tb {} step {} ({}, line {})", at(event).gpu, block_of(event).id, step.number,
                     step.type->name, step.line);
}

/// Does what can be done, until nothing can. A thread block that waits is looked at again when that for which it waits
/// has happened. All go one step at a time, in turn.
class Events::Run {
 public:
  Run(const Events& events, int slots, Fifo fifo)
      : events_(events),
        slots_(static_cast<std::size_t>(slots)),
        fifo_(fifo),
        blocks_(events.first_.size() - 1),
        next_(events.first_.begin(), events.first_.end() - 1),
        is_ready_(blocks_, true),
        is_done_(static_cast<std::size_t>(events.size())),
        waiting_(static_cast<std::size_t>(events.size())),
        queues_(fifo == Fifo::of_pair ? static_cast<std::size_t>(events.pairs_) : events.links_.size()),
        senders_(queues_.size()) {
    for (std::size_t link = 0; link < events.links_.size(); ++link) {
      if (events.links_[link].sender >= 0)
        senders_[queue_of(static_cast<int>(link))].push_back(events.links_[link].sender);
    }
    for (std::size_t block = 0; block < blocks_; ++block) ready_.push_back(static_cast<int>(block));
  }

  Result<std::vector<int>> run() {
    while (!ready_.empty()) {
      const int block = ready_.front();
      ready_.pop_front();
      is_ready_[static_cast<std::size_t>(block)] = false;
      const int event = next_[static_cast<std::size_t>(block)];
      if (event == events_.first_[static_cast<std::size_t>(block) + 1] || !can_be_done(event, block)) continue;
      do_event(event);
      ++next_[static_cast<std::size_t>(block)];
      wake(block);
    }
    if (order_.size() == static_cast<std::size_t>(events_.size())) return std::move(order_);
    return stuck();
  }

 private:
  [[nodiscard]] std::size_t queue_of(int link) const {
    return static_cast<std::size_t>(fifo_ == Fifo::of_pair ? events_.links_[static_cast<std::size_t>(link)].pair
                                                           : link);
  }
  void wake(int block) {
    if (block < 0 || is_ready_[static_cast<std::size_t>(block)]) return;
    is_ready_[static_cast<std::size_t>(block)] = true;
    ready_.push_back(block);
  }

  [[nodiscard]] bool awaits(const Event& event) const {
    return event.awaited >= 0 && !is_done_[static_cast<std::size_t>(event.awaited)];
  }
  [[nodiscard]] bool lacks_message(const Event& event) const {
    if (event.from < 0) return false;
    const auto& queue = queues_[queue_of(event.from)];
    return queue.empty() || queue.front() != event.from;
  }
  [[nodiscard]] bool lacks_slot(const Event& event) const {
    return event.into >= 0 && queues_[queue_of(event.into)].size() >= slots_;
  }

  bool can_be_done(int index, int block) {
    const Event& event = events_.at(index);
    if (awaits(event)) {
      waiting_[static_cast<std::size_t>(event.awaited)].push_back(block);
      return false;
    }
    return !lacks_message(event) && !lacks_slot(event);
  }

  void do_event(int index) {
    const Event& event = events_.at(index);
    if (event.from >= 0) {
      const std::size_t queue = queue_of(event.from);
      queues_[queue].pop_front();
      for (const int sender : senders_[queue]) wake(sender);
      if (!queues_[queue].empty()) wake(events_.links_[static_cast<std::size_t>(queues_[queue].front())].receiver);
    }
    if (event.into >= 0) {
      queues_[queue_of(event.into)].push_back(event.into);
      wake(events_.links_[static_cast<std::size_t>(event.into)].receiver);
    }
    is_done_[static_cast<std::size_t>(index)] = true;
    for (const int block : waiting_[static_cast<std::size_t>(index)]) wake(block);
    order_.push_back(index);
  }

  /// Why the step that a thread block has come to cannot be done.
  [[nodiscard]] std::string reason(const Event& event) const {
    if (awaits(event)) return fmt::format("{} never comes", events_.place(event.awaited));
    if (lacks_message(event)) {
      const Link& link = events_.links_[static_cast<std::size_t>(event.from)];
      return fmt::format("no message arrives from gpu {} on channel {}", link.from, link.channel);
    }
    const Link& link = events_.links_[static_cast<std::size_t>(event.into)];
    return fmt::format("the {} slot{} to gpu {} on channel {} {} full", slots_, slots_ == 1 ? "" : "s", link.to,
                       link.channel, slots_ == 1 ? "is" : "are");
  }

  /// A message that no step sends is a mistake whatever else waits for it, and so it is named before steps that wait
  /// for others.
  Status stuck() const {
    int first = -1;
    const auto rank_of = [&](const Event& event) {
      if (!awaits(event) && lacks_message(event) && event.sent < 0) return 0;
      return !awaits(event) && lacks_slot(event) && !lacks_message(event) ? 1 : awaits(event) ? 2 : 3;
    };
    std::string others;
    int waiting = 0;
    for (std::size_t block = 0; block < blocks_; ++block) {
      const int event = next_[block];
      if (event == events_.first_[block + 1]) continue;
      ++waiting;
      if (first < 0 || rank_of(events_.at(event)) < rank_of(events_.at(first))) first = event;
    }
    for (std::size_t block = 0; block < blocks_; ++block) {
      const int event = next_[block];
      if (event == events_.first_[block + 1] || event == first) continue;
      others = fmt::format("; nor {}: {}", events_.place(event), reason(events_.at(event)));
      break;
    }
    if (waiting > 2) others += fmt::format("; {} thread blocks wait in all", waiting);
    return error(Code::refuted, "{} can never be done: {}{}", events_.place(first), reason(events_.at(first)), others);
  }

  const Events& events_;
  const std::size_t slots_;
  const Fifo fifo_;
  const std::size_t blocks_;
  std::vector<int> next_;  ///< [thread block]: event
  std::vector<bool> is_ready_;
  std::deque<int> ready_;
  std::vector<bool> is_done_;
  std::vector<std::vector<int>> waiting_;  ///< [event]: thread blocks
  std::vector<std::deque<int>> queues_;    ///< links of the messages on their way
  std::vector<std::vector<int>> senders_;  ///< [queue]: thread blocks
  std::vector<int> order_;
};

Result<std::vector<int>> Events::order(int slots, Fifo fifo) const { return Run(*this, slots, fifo).run(); }

}  // namespace tutti::harness::exchange
