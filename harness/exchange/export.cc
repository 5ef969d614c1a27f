// SPDX-License-Identifier: Apache-2.0
#include "harness/exchange/export.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "harness/exchange/msccl.h"
#include "impl/collective/blocks.h"

namespace tutti::harness::exchange {
namespace {

constexpr std::int64_t kMostExported = 10'000'000;  ///< steps of all ranks

Status cannot_say(std::string_view format, const Schedule& schedule, int rank, int index, std::string_view what) {
  return error(Code::unavailable, "{} {} on {} ranks: {} cannot say what rank {} does in step {}: {}",
               to_string(schedule.problem.collective), schedule.name, schedule.problem.ranks, format, rank, index,
               what);
}

/// Why a step is more than messages and this rank's own memory; empty if it is not.
std::string_view beyond_messages(const Step& step, int rank) {
  if (step.verb == Verb::signal) return "a SIGNAL, a flag in memory that others see";
  if (step.verb == Verb::wait) return "a WAIT for a flag in memory";
  for (const auto* list : {&step.destinations, &step.sources}) {
    for (const Operand& one : *list) {
      if (one.space == Space::channel) continue;
      if (one.ranks.n != 1 || one.ranks.first != rank) return "a MOVE of another rank's memory";
    }
  }
  return {};
}

Status check_size(std::string_view format, const Schedule& schedule) {
  std::int64_t steps = 0;
  for (int rank = 0; rank < schedule.problem.ranks; ++rank) steps += schedule.step_count(rank);
  if (steps <= kMostExported) return {};
  return error(Code::resource, "{} has {} steps of all ranks: at most {} are written as {}", schedule.name, steps,
               kMostExported, format);
}

/// The bytes of a MOVE. Part p of a block of b bytes in n parts ends at b (p + 1) / n.
std::int64_t bytes_of(const Schedule& schedule, const Step& step, std::int64_t block_bytes) {
  const int parts = schedule.shape.units_per_block;
  const auto length = [&](const UnitSet& set) {
    std::int64_t bytes = 0;
    for (int j = 0; j < set.repeat; ++j) {
      for (int i = 0; i < set.length; ++i) {
        const std::int64_t part = (set.start + static_cast<std::int64_t>(j) * set.stride + i) % parts;
        bytes += block_bytes * (part + 1) / parts - block_bytes * part / parts;
      }
    }
    return bytes;
  };
  if (step.as_long_as.units.length > 0) return length(step.as_long_as.units);
  std::int64_t of_scratch = 0;
  for (const auto* list : {&step.destinations, &step.sources}) {
    for (const Operand& one : *list) {
      if (one.space == Space::input || one.space == Space::output) return length(one.units);
      if (one.space == Space::scratch) of_scratch = count_of(one.units) * ((block_bytes + parts - 1) / parts);
    }
  }
  return of_scratch;
}

/// What a MOVE of messages and this rank's own memory takes on the processor. Every operand is of one rank.
std::int64_t work_ns(const Step& step, double bytes, const LocalCosts& costs) {
  if (step.verb != Verb::move) return 0;
  const auto is_memory = [](const Operand& one) { return one.space != Space::channel; };
  const auto operands = static_cast<double>(step.sources.end() - step.sources.begin());
  const auto stores = static_cast<double>(std::ranges::count_if(step.destinations, is_memory));
  return std::llround(costs.reduce(bytes) * std::max(0.0, operands - 1) + costs.copy(bytes) * stores);
}

/// One step of an MSCCL file that is being made.
struct Line {
  std::string_view type;
  Operand source;
  Operand destination;
  int to = -1;
  int from = -1;
};

/// A rank's program as thread blocks.
class MscclGpu {
 public:
  MscclGpu(const Schedule& schedule, int rank, bool cuts) : schedule_(schedule), rank_(rank), cuts_(cuts) {}

  Status make() {
    for (int index = 0; index < schedule_.step_count(rank_); ++index) {
      const Step step = schedule_.step(rank_, index);
      if (const auto what = beyond_messages(step, rank_); !what.empty())
        return cannot_say("MSCCL XML", schedule_, rank_, index, what);
      TUTTI_RETURN_IF_ERROR(add(step, index));
    }
    return {};
  }

  [[nodiscard]] std::string text() const {
    std::vector<std::vector<std::size_t>> lines(blocks_.size());
    std::vector<std::size_t> number(lines_.size());
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      number[i] = lines[block_[i]].size();
      lines[block_[i]].push_back(i);
    }
    std::string text;
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      text += fmt::format("    <tb id=\"{}\" send=\"{}\" recv=\"{}\" chan=\"0\">\n", b, blocks_[b].first,
                          blocks_[b].second);
      for (const std::size_t i : lines[b]) {
        const Line& line = lines_[i];
        // The program's order: a step that follows one of another thread block waits for it.
        const bool waits = i > 0 && block_[i - 1] != b;
        const bool is_awaited = i + 1 < lines_.size() && block_[i + 1] != b;
        text += fmt::format(
            "      <step s=\"{}\" type=\"{}\" srcbuf=\"{}\" srcoff=\"{}\" dstbuf=\"{}\" dstoff=\"{}\" cnt=\"{}\" "
            "depid=\"{}\" deps=\"{}\" hasdep=\"{}\"/>\n",
            number[i], line.type, letter(line.source), line.source.units.start, letter(line.destination),
            line.destination.units.start, std::max(line.source.units.length, line.destination.units.length),
            waits ? static_cast<int>(block_[i - 1]) : -1, waits ? static_cast<int>(number[i - 1]) : -1,
            is_awaited ? 1 : 0);
      }
      text += "    </tb>\n";
    }
    return text;
  }
  [[nodiscard]] std::size_t steps() const { return lines_.size(); }
  [[nodiscard]] std::size_t blocks() const { return blocks_.size(); }

 private:
  static char letter(const Operand& operand) {
    return operand.space == Space::input ? 'i' : operand.space == Space::output ? 'o' : 's';
  }

  /// A MOVE, in one step of the file for each unit where the units of some message are no run.
  Status add(const Step& step, int index) {
    std::optional<Operand> kept;
    std::vector<Operand> from, to, terms;
    for (const Operand& one : step.sources) (one.space == Space::channel ? from : terms).push_back(one);
    for (const Operand& one : step.destinations) {
      if (one.space == Space::channel) {
        to.push_back(one);
      } else if (kept) {
        return cannot_say("MSCCL XML", schedule_, rank_, index, "a MOVE to two places of its memory");
      } else {
        kept = one;
      }
    }
    if (terms.empty() && !kept) {
      return cannot_say("MSCCL XML", schedule_, rank_, index, "a message sent on that is kept nowhere");
    }
    if (!kept && terms.size() > 1) {
      return cannot_say("MSCCL XML", schedule_, rank_, index, "a sum of several buffers that is kept nowhere");
    }
    const bool is_fused = from.size() == 1 && to.size() == 1 && fits(to.front().ranks.first, from.front().ranks.first);
    if (!kept && !from.empty() && !is_fused) {
      return cannot_say("MSCCL XML", schedule_, rank_, index,
                        "messages added up and sent on that are kept nowhere, of other peers than a thread block has");
    }
    const Operand& measure = kept ? *kept : terms.front();
    const std::int64_t count = cuts_ ? count_of(measure.units) : 1;
    for (std::int64_t i = 0; i < count; ++i) {
      std::vector<Operand> parts;
      for (const Operand& term : terms) parts.push_back(part_of(term, i));
      add_part(from, to, kept ? std::optional(part_of(*kept, i)) : std::nullopt, std::move(parts), is_fused);
    }
    return {};
  }

  /// Part `i` of an operand: a unit of it, or all of it where that is a run.
  [[nodiscard]] Operand part_of(Operand operand, std::int64_t i) const {
    if (!cuts_) return operand;
    const UnitSet& set = operand.units;
    const std::int64_t at = set.start + i / set.length * set.stride + i % set.length;
    operand.units = unit(static_cast<int>(at % units_of(operand.space)));
    return operand;
  }
  [[nodiscard]] std::int64_t units_of(Space space) const {
    const int per = schedule_.shape.units_per_block;
    if (space == Space::scratch) return std::max(schedule_.shape.scratch_units, 1);
    const auto blocks =
        space == Space::input ? input_blocks(schedule_.problem, rank_) : output_blocks(schedule_.problem, rank_);
    return std::max(blocks * per, 1);
  }

  void add_part(const std::vector<Operand>& from, const std::vector<Operand>& to, const std::optional<Operand>& kept,
                std::vector<Operand> terms, bool is_fused) {
    const auto peer = [](const Operand& one) { return one.ranks.first; };
    const Operand stored = kept ? *kept : terms.front();
    // What is there already is added to before it is overwritten.
    const auto same = std::ranges::find(terms, stored);
    if (same != terms.end()) std::iter_swap(same, terms.begin());
    if (!from.empty()) {
      const bool adds = !terms.empty();
      const Operand source = adds ? terms.front() : stored;
      if (adds) terms.erase(terms.begin());
      const bool ends = terms.empty() && is_fused;
      const std::string_view type = !kept ? "rrs" : ends ? (adds ? "rrcs" : "rcs") : (adds ? "rrc" : "r");
      put({.type = type,
           .source = source,
           .destination = stored,
           .to = ends ? peer(to.front()) : -1,
           .from = peer(from.front())});
      if (ends) return;
      for (std::size_t i = 1; i < from.size(); ++i)
        put({.type = "rrc", .source = stored, .destination = stored, .from = peer(from[i])});
    } else if (kept) {
      if (same == terms.end()) put({.type = "cpy", .source = terms.front(), .destination = stored});
      terms.erase(terms.begin());
    } else {
      terms.clear();
    }
    for (const Operand& term : terms) put({.type = "re", .source = term, .destination = stored});
    for (const Operand& one : to) put({.type = "s", .source = stored, .destination = stored, .to = peer(one)});
  }

  /// Whether a thread block sends to `to` and receives from `from`, or can.
  [[nodiscard]] bool fits(int to, int from) const {
    const auto sends = senders_.find(to);
    const auto receives = receivers_.find(from);
    if (sends != senders_.end() && receives != receivers_.end()) return sends->second == receives->second;
    if (sends != senders_.end()) return blocks_[sends->second].second < 0;
    return receives == receivers_.end() || blocks_[receives->second].first < 0;
  }

  void put(const Line& line) {
    std::size_t block = block_.empty() ? 0 : block_.back();
    if (line.to >= 0 || line.from >= 0) {
      block = blocks_.size();
      if (const auto at = senders_.find(line.to); at != senders_.end()) block = at->second;
      if (const auto at = receivers_.find(line.from); at != receivers_.end()) block = at->second;
    }
    if (block == blocks_.size()) blocks_.emplace_back(-1, -1);
    if (line.to >= 0) {
      blocks_[block].first = line.to;
      senders_[line.to] = block;
    }
    if (line.from >= 0) {
      blocks_[block].second = line.from;
      receivers_[line.from] = block;
    }
    lines_.push_back(line);
    block_.push_back(block);
  }

  const Schedule& schedule_;
  const int rank_;
  const bool cuts_;
  std::vector<Line> lines_;
  std::vector<std::size_t> block_;           ///< [line]
  std::vector<std::pair<int, int>> blocks_;  ///< to, from
  std::map<int, std::size_t> senders_, receivers_;
};

/// Whether some operand is no run of units, or scratch of several units: then all go one by one, at both ends.
bool has_gaps(const Schedule& schedule) {
  for (int rank = 0; rank < schedule.problem.ranks; ++rank) {
    for (int index = 0; index < schedule.step_count(rank); ++index) {
      const Step step = schedule.step(rank, index);
      for (const auto* list : {&step.destinations, &step.sources}) {
        for (const Operand& one : *list) {
          if (one.space == Space::channel) continue;
          const bool is_run = one.units.repeat == 1;
          const int blocks =
              one.space == Space::input ? input_blocks(schedule.problem, rank) : output_blocks(schedule.problem, rank);
          const int units =
              one.space == Space::scratch ? schedule.shape.scratch_units : blocks * schedule.shape.units_per_block;
          if (!is_run || one.units.start + one.units.length > units) return true;
        }
      }
    }
  }
  return false;
}

}  // namespace

Result<std::string> goal_text(const Schedule& schedule, std::int64_t bytes, const std::optional<LocalCosts>& costs) {
  TUTTI_RETURN_IF_ERROR(check_size("GOAL", schedule));
  const std::int64_t blocks = is_divided(schedule.problem.collective) ? schedule.problem.ranks : 1;
  std::string text = fmt::format("num_ranks {}\n", schedule.problem.ranks);
  for (int rank = 0; rank < schedule.problem.ranks; ++rank) {
    text += fmt::format("\nrank {} {{\n", rank);
    int label = 0;
    const auto add_work = [&](std::int64_t ns) {
      if (ns > 0) text += fmt::format("l{}: calc {}\n", ++label, ns);
    };
    const auto add = [&](std::string_view verb, std::int64_t length, std::string_view way, int peer) {
      text += fmt::format("l{}: {} {}b {} {} tag 0\n", ++label, verb, length, way, peer);
    };
    for (int index = 0; index < schedule.step_count(rank); ++index) {
      const Step step = schedule.step(rank, index);
      if (const auto what = beyond_messages(step, rank); !what.empty())
        return cannot_say("GOAL", schedule, rank, index, what);
      const std::int64_t length = bytes_of(schedule, step, bytes / blocks);
      for (const Operand& one : step.sources) {
        if (one.space == Space::channel) add("recv", length, "from", one.ranks.first);
      }
      if (costs) add_work(work_ns(step, static_cast<double>(length), *costs));
      for (const Operand& one : step.destinations) {
        if (one.space == Space::channel) add("send", length, "to", one.ranks.first);
      }
    }
    for (int i = 2; i <= label; ++i) text += fmt::format("l{} requires l{}\n", i, i - 1);
    text += "}\n";
  }
  return text;
}

Result<std::string> msccl_text(const Schedule& schedule) {
  TUTTI_RETURN_IF_ERROR(check_size("MSCCL XML", schedule));
  constexpr std::array kNamed{
      std::pair(Collective::broadcast, "broadcast"),          std::pair(Collective::reduce, "reduce"),
      std::pair(Collective::all_reduce, "allreduce"),         std::pair(Collective::gather, "gather"),
      std::pair(Collective::all_gather, "allgather"),         std::pair(Collective::scatter, "scatter"),
      std::pair(Collective::reduce_scatter, "reducescatter"), std::pair(Collective::all_to_all, "alltoall")};
  const Problem& problem = schedule.problem;
  const auto named = std::ranges::find(kNamed, problem.collective, &std::pair<Collective, const char*>::first);
  if (named == kNamed.end()) {
    return error(Code::unavailable, "MSCCL XML has no {}", to_string(problem.collective));
  }
  const int per = schedule.shape.units_per_block;
  const bool cuts = has_gaps(schedule);
  std::string text = fmt::format(
      "<algo name=\"{}\" proto=\"Simple\" nchannels=\"1\" nchunksperloop=\"{}\" ngpus=\"{}\" coll=\"{}\"{} "
      "inplace=\"0\">\n",
      schedule.name, per * (is_divided(problem.collective) ? problem.ranks : 1), problem.ranks, named->second,
      is_rooted(problem.collective) ? fmt::format(" root=\"{}\"", problem.root) : "");
  for (int rank = 0; rank < problem.ranks; ++rank) {
    MscclGpu gpu(schedule, rank, cuts);
    TUTTI_RETURN_IF_ERROR(gpu.make());
    text += fmt::format("  <gpu id=\"{}\" i_chunks=\"{}\" o_chunks=\"{}\" s_chunks=\"{}\">\n", rank,
                        input_blocks(problem, rank) * per, output_blocks(problem, rank) * per,
                        schedule.shape.scratch_units);
    text += gpu.text() + "  </gpu>\n";
  }
  return text + "</algo>\n";
}

}  // namespace tutti::harness::exchange
