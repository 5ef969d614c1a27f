// SPDX-License-Identifier: Apache-2.0
#include "harness/exchange/contents.h"

#include <bitset>
#include <deque>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/exchange/races.h"

namespace tutti::harness::exchange {
namespace {

struct Value {
  int chunk = -1;  ///< of the inputs; -1: nothing was written
  std::bitset<kMostGpus> gpus;
  int writer = -1;  ///< event; -1: the user
};

class Follower {
 public:
  explicit Follower(const Events& events)
      : events_(events),
        file_(events.file()),
        moved_(static_cast<std::size_t>(events.size())),
        queues_(events.links().size()) {
    for (int gpu = 0; gpu < file_.problem.ranks; ++gpu) {
      auto& buffers = values_.emplace_back();
      for (const Buffer buffer : {Buffer::input, Buffer::output, Buffer::scratch}) {
        buffers.emplace_back(static_cast<std::size_t>(file_.chunks(gpu, buffer)));
      }
      const int given = input_blocks(file_.problem, gpu) * file_.chunks_per_block;
      for (int chunk = 0; chunk < given; ++chunk) {
        Value value{.chunk = chunk};
        value.gpus.set(static_cast<std::size_t>(gpu));
        buffers[0][static_cast<std::size_t>(chunk)] = value;
        if (!file_.is_in_place) continue;
        const Place place = place_of(file_, gpu, {.buffer = Buffer::input, .first = chunk}, 0);
        at(gpu, place) = value;
      }
    }
  }

  Result<std::vector<Moved>> run(const std::vector<int>& order) {
    for (const int event : order) {
      const MscclStep& step = events_.step_of(event);
      std::deque<Value> arrived;
      if (step.type->receives) TUTTI_RETURN_IF_ERROR(receive(event, arrived));
      std::vector<Value> sent;
      for (int i = 0; i < step.count; ++i) {
        TUTTI_ASSIGN_OR_RETURN(Value value, value_of(event, i, arrived));
        if (step.type->writes) TUTTI_RETURN_IF_ERROR(store(event, i, value));
        sent.push_back(value);
      }
      if (step.type->sends)
        queues_[static_cast<std::size_t>(events_.at(event).into)].push_back({event, std::move(sent)});
    }
    for (const auto& queue : queues_) {
      if (queue.empty()) continue;
      const Link& link = events_.links()[static_cast<std::size_t>(events_.at(queue.front().sender).into)];
      return error(Code::refuted, "{} sends to gpu {} on channel {} what no step there receives",
                   events_.place(queue.front().sender), link.to, link.channel);
    }
    TUTTI_RETURN_IF_ERROR(check_outputs());
    return std::move(moved_);
  }

 private:
  struct Message {
    int sender;
    std::vector<Value> values;
  };

  Value& at(int gpu, const Place& place) {
    return values_[static_cast<std::size_t>(gpu)][static_cast<std::size_t>(place.buffer)]
                  [static_cast<std::size_t>(place.chunk)];
  }

  Status receive(int event, std::deque<Value>& arrived) {
    auto& queue = queues_[static_cast<std::size_t>(events_.at(event).from)];
    Message message = std::move(queue.front());
    queue.pop_front();
    const auto wanted = static_cast<std::size_t>(events_.step_of(event).count);
    if (message.values.size() != wanted) {
      return error(Code::refuted, "{} receives {} chunks, but {} sends {}", events_.place(event), wanted,
                   events_.place(message.sender), message.values.size());
    }
    arrived.assign(message.values.begin(), message.values.end());
    return {};
  }

  /// What step `event` makes of its chunk `i`.
  Result<Value> value_of(int event, int i, const std::deque<Value>& arrived) {
    const MscclStep& step = events_.step_of(event);
    std::vector<std::pair<Value, std::string>> terms;
    if (step.type->receives) terms.emplace_back(arrived[static_cast<std::size_t>(i)], "what arrives");
    for (const bool is_source : {false, true}) {
      if (is_source ? !step.type->reads_source : !step.type->reads_destination) continue;
      const Place place = place_of(file_, events_.at(event).gpu, is_source ? step.source : step.destination, i);
      std::string name = fmt::format("{} chunk {}", to_string(place.buffer), place.chunk);
      const Value& value = at(events_.at(event).gpu, place);
      if (value.chunk < 0) {
        return error(Code::refuted, "{} reads {}, which nothing has written by then", events_.place(event), name);
      }
      terms.emplace_back(value, std::move(name));
    }
    Value sum = terms.front().first;
    for (std::size_t k = 1; k < terms.size(); ++k)
      TUTTI_RETURN_IF_ERROR(add(event, sum, terms[k], terms.front().second));
    const bool reduces = is_reducing(file_.problem.collective);
    Moved& moved = moved_[static_cast<std::size_t>(event)];
    moved.parts.push_back(sum.chunk % file_.chunks_per_block);
    moved.is_complete =
        reduces && terms.size() > 1 && sum.gpus.count() == static_cast<std::size_t>(file_.problem.ranks);
    return sum;
  }

  Status add(int event, Value& sum, const std::pair<Value, std::string>& term, const std::string& name) {
    if (!is_reducing(file_.problem.collective)) {
      return error(Code::refuted, "{} reduces, but {} only copies", events_.place(event),
                   tutti::to_string(file_.problem.collective));
    }
    if (sum.chunk != term.first.chunk) {
      return error(Code::refuted, "{} adds {}, which is of chunk {} of the inputs, to {}, which is of chunk {}",
                   events_.place(event), term.second, term.first.chunk, name, sum.chunk);
    }
    if (const auto twice = sum.gpus & term.first.gpus; twice.any()) {
      return error(Code::refuted, "{} adds up the input of gpu {} twice: it is in {} and in {}", events_.place(event),
                   twice._Find_first(), name, term.second);
    }
    sum.gpus |= term.first.gpus;
    return {};
  }

  Status store(int event, int i, Value value) {
    const int gpu = events_.at(event).gpu;
    const Place place = place_of(file_, gpu, events_.step_of(event).destination, i);
    if (place.buffer == Buffer::input) {
      return error(Code::refuted, "{} writes input chunk {}{}", events_.place(event), place.chunk,
                   file_.is_in_place ? fmt::format(", of which the output of {} in place is no part",
                                                   tutti::to_string(file_.problem.collective))
                                     : ": with inplace='0' the input stays as it is");
    }
    const int parts = file_.chunks_per_block;
    if (place.buffer == Buffer::output && value.chunk % parts != place.chunk % parts) {
      return error(Code::refuted,
                   "{} stores chunk {} of the inputs, part {} of a block, in output chunk {}, which is part {}",
                   events_.place(event), value.chunk, value.chunk % parts, place.chunk, place.chunk % parts);
    }
    value.writer = event;
    at(gpu, place) = value;
    return {};
  }

  Status check_outputs() {
    const Problem& problem = file_.problem;
    for (int gpu = 0; gpu < problem.ranks; ++gpu) {
      for (int chunk = 0; chunk < output_blocks(problem, gpu) * file_.chunks_per_block; ++chunk) {
        const Origin origin = origin_of(problem, gpu, chunk / file_.chunks_per_block);
        const int wanted = origin.block * file_.chunks_per_block + chunk % file_.chunks_per_block;
        const Value& is = at(gpu, {.buffer = Buffer::output, .chunk = chunk});
        std::bitset<kMostGpus> gpus;
        for (int giver = origin.first; giver <= origin.last; ++giver) gpus.set(static_cast<std::size_t>(giver));
        if (is.chunk == wanted && is.gpus == gpus) continue;
        const std::string name = fmt::format("gpu {}: output chunk {}", gpu, chunk);
        if (is.chunk < 0) return error(Code::refuted, "{} is never written", name);
        const std::string writer = is.writer < 0 ? std::string("no step writes it")
                                                 : fmt::format("{} writes it last", events_.place(is.writer));
        if (const auto lacks = gpus & ~is.gpus; is.chunk == wanted && lacks.any()) {
          return error(Code::refuted, "{} lacks the input of gpu {}: {}", name, lacks._Find_first(), writer);
        }
        return error(Code::refuted, "{} holds chunk {} of gpu {} instead of chunk {} of gpu {}: {}", name, is.chunk,
                     is.gpus._Find_first(), wanted, gpus._Find_first(), writer);
      }
    }
    return {};
  }

  const Events& events_;
  const MscclFile& file_;
  std::vector<Moved> moved_;
  std::vector<std::deque<Message>> queues_;
  std::vector<std::vector<std::vector<Value>>> values_;  ///< [gpu][buffer][chunk]
};

}  // namespace

Result<std::vector<Moved>> follow(const Events& events, const std::vector<int>& order) {
  return Follower(events).run(order);
}

}  // namespace tutti::harness::exchange
