// SPDX-License-Identifier: Apache-2.0
#include "harness/exchange/import.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "harness/exchange/contents.h"
#include "harness/exchange/events.h"
#include "harness/exchange/races.h"
#include "harness/text/read_file.h"
#include "impl/types/names.h"

namespace tutti::harness::exchange {
namespace {

using Programs = std::vector<std::vector<Step>>;

/// Makes the ranks' programs from the events in an order that both ends of every pair of ranks share.
class Builder {
 public:
  Builder(const Events& events, const std::vector<Moved>& moved)
      : events_(events), file_(events.file()), moved_(moved), programs_(std::make_shared<Programs>(ranks())) {
    result_.places.resize(ranks());
  }

  Imported run(const std::vector<int>& order, int slots) {
    if (file_.is_in_place) copy_inputs();
    for (const int event : order) {
      if (events_.step_of(event).type->operands() > 0) add(event);
    }
    Schedule& schedule = result_.schedule;
    schedule.problem = file_.problem;
    schedule.name = file_.name;
    schedule.shape = {.units_per_block = file_.chunks_per_block, .largest_message = largest_};
    for (const Gpu& gpu : file_.gpus)
      schedule.shape.scratch_units = std::max(schedule.shape.scratch_units, gpu.scratch);
    schedule.step_count = [programs = programs_](int rank) {
      return static_cast<int>((*programs)[static_cast<std::size_t>(rank)].size());
    };
    schedule.step = [programs = programs_](int rank, int index) {
      return (*programs)[static_cast<std::size_t>(rank)][static_cast<std::size_t>(index)];
    };
    // As many messages as were on their way, each with all of its slices.
    schedule.least_slots = [slots, has_messages = largest_ > 0](int slices) {
      return has_messages ? slots * std::max(slices, 1) : 0;
    };
    const auto costs = std::make_shared<const DerivedCost>(derive_cost(schedule));
    schedule.cost = [costs](int rank) {
      const auto index = static_cast<std::size_t>(rank);
      return index < costs->costs.size() ? costs->costs[index] : Cost();
    };
    result_.name = file_.name;
    result_.is_in_place = file_.is_in_place;
    result_.steps = events_.size();
    for (const Gpu& gpu : file_.gpus) {
      result_.blocks +=
          static_cast<int>(std::ranges::count_if(gpu.blocks, [](const auto& b) { return !b.steps.empty(); }));
    }
    return std::move(result_);
  }

 private:
  [[nodiscard]] std::size_t ranks() const { return static_cast<std::size_t>(file_.problem.ranks); }

  /// In place the file works where its input and output lie. A schedule leaves its input alone, so that part is copied
  /// first. Where the call is in place, that copy disappears.
  void copy_inputs() {
    for (int gpu = 0; gpu < file_.problem.ranks; ++gpu) {
      const int inputs = input_blocks(file_.problem, gpu), outputs = output_blocks(file_.problem, gpu);
      if (inputs == 0 || outputs == 0) continue;
      const int per = file_.chunks_per_block, shift = in_place_block(file_.problem, gpu) * per;
      const int first = std::max(0, -shift), count = std::min(inputs, outputs) * per;
      append(gpu, move({output(gpu, units(first + shift, count))}, {input(gpu, units(first, count))}),
             fmt::format("gpu {}, before its first step: the copy of the input", gpu));
    }
  }

  void append(int gpu, Step step, std::string place) {
    const auto rank = static_cast<std::size_t>(gpu);
    (*programs_)[rank].push_back(step);
    result_.places[rank].push_back(std::move(place));
  }

  [[nodiscard]] Operand operand(int event, const Chunks& chunks) const {
    const int gpu = events_.at(event).gpu;
    const Place place = place_of(file_, gpu, chunks, 0);
    const UnitSet set = units(place.chunk, events_.step_of(event).count);
    return place.buffer == Buffer::input    ? input(gpu, set)
           : place.buffer == Buffer::output ? output(gpu, set)
                                            : scratch(gpu, set);
  }

  void add(int event) {
    const MscclStep& step = events_.step_of(event);
    const StepType& type = *step.type;
    const int gpu = events_.at(event).gpu;
    Step made;
    if (type.receives) made.sources.push_back(channel(events_.block_of(event).receive));
    if (type.reads_destination) made.sources.push_back(operand(event, step.destination));
    if (type.reads_source) made.sources.push_back(operand(event, step.source));
    if (type.writes) made.destinations.push_back(operand(event, step.destination));
    if (type.sends) made.destinations.push_back(channel(events_.block_of(event).send));
    const Moved& moved = moved_[static_cast<std::size_t>(event)];
    made.is_final = moved.is_complete;
    set_length(made, gpu, moved.parts.front());
    if (type.receives || type.sends) largest_ = std::max(largest_, step.count);
    append(gpu, made, events_.place(event));
  }

  /// A MOVE of scratch alone is as long as the part of a block that it moves.
  void set_length(Step& step, int gpu, int part) const {
    if (file_.chunks_per_block == 1) return;
    for (const auto* list : {&step.destinations, &step.sources}) {
      for (const Operand& one : *list) {
        if (one.space == Space::input || one.space == Space::output) return;
      }
    }
    step.as_long_as = input_blocks(file_.problem, gpu) > 0 ? input(gpu, unit(part)) : output(gpu, unit(part));
  }

  const Events& events_;
  const MscclFile& file_;
  const std::vector<Moved>& moved_;
  std::shared_ptr<Programs> programs_;
  int largest_ = 0;
  Imported result_;
};

constexpr std::array kSlotsTried{1, 2, 3, 4, 6, 8, 16, 32, 64, 128, 256, 512, kMostSlots};

/// The least of kSlotsTried, up to `most`, with which all steps can be done, and the order in which.
struct Found {
  int slots;
  std::vector<int> order;
};
Result<Found> least_order(const Events& events, int most, Fifo fifo) {
  for (const int slots : kSlotsTried) {
    if (slots >= most) break;
    auto order = events.order(slots, fifo);
    if (order.is_ok()) return Found{.slots = slots, .order = std::move(order).value()};
  }
  TUTTI_ASSIGN_OR_RETURN(auto order, events.order(most, fifo));
  return Found{.slots = most, .order = std::move(order)};
}

/// Errors: refuted; where more slots would do, it says how many.
Result<Found> order_with(const Events& events, int slots) {
  auto found = least_order(events, slots, Fifo::of_channel);
  if (found.is_ok()) return found;
  const auto more = least_order(events, kMostSlots, Fifo::of_channel);
  if (!more.is_ok()) return error(Code::refuted, "deadlock: {}", more.status().message());
  return error(Code::refuted, "deadlock with {} slot{}: {}; {} slots would do", slots, slots == 1 ? "" : "s",
               found.status().message(), more.value().slots);
}

Count count_for(const Schedule& schedule, int slices) {
  constexpr Count kElementsOfSlot = 16;
  return slices == 0 ? 1 : schedule.shape.units_per_block * slices * kElementsOfSlot;
}

}  // namespace

Result<Imported> import_msccl(std::string_view text, int slots) {
  TUTTI_ASSIGN_OR_RETURN(const MscclFile file, parse_msccl(text));
  const Events events(file);
  TUTTI_ASSIGN_OR_RETURN(const Found found, order_with(events, slots));
  TUTTI_RETURN_IF_ERROR(check_races(events, found.order));
  TUTTI_ASSIGN_OR_RETURN(const auto moved, follow(events, found.order));
  const auto merged = least_order(events, kMostSlots, Fifo::of_pair);
  if (!merged.is_ok()) {
    return error(Code::unavailable,
                 "several channels between two gpus cannot become the one channel of a schedule: in the order in which "
                 "their messages are sent, {}",
                 merged.status().message());
  }
  Imported imported = Builder(events, moved).run(merged.value().order, merged.value().slots);
  imported.least_slots = found.slots;
  return imported;
}

Result<Imported> import_file(const std::string& path, int slots) {
  TUTTI_ASSIGN_OR_RETURN(const std::string text, read_file(path, kMostInMsccl));
  auto imported = import_msccl(text, slots);
  if (imported.is_ok()) return imported;
  return error(imported.status().code(), "{}: {}", shown(path), imported.status().message());
}

Result<ScheduleProof> prove_imported(const Imported& imported) {
  constexpr int kSeveral = 4;
  constexpr std::int64_t kSlotBytes = 64;
  const Schedule& schedule = imported.schedule;
  const bool reduces = is_reducing(schedule.problem.collective);
  ScheduleProof result;
  for (const int slices : {1, kSeveral, 0}) {
    for (const bool is_in_place : {false, true}) {
      if (is_in_place && !imported.is_in_place) continue;
      for (const Op op : {Op::avg, Op::premul_sum}) {
        if (op == Op::premul_sum && (!reduces || slices != 1)) continue;
        const Count count = count_for(schedule, slices);
        const int longest = schedule.shape.largest_message * std::max(slices, 1);
        const BindRequest request{.count = count,
                                  .dtype = Dtype::f32,
                                  .op = reduces ? op : Op::none,
                                  .is_in_place = is_in_place,
                                  .buffers = Buffers::private_,
                                  .resources = {.slots = std::max(1, schedule.least_slots(longest)),
                                                .slot_bytes = kSlotBytes,
                                                .scratch_bytes = std::int64_t{1} << 40},
                                  .segment = count};
        TUTTI_ASSIGN_OR_RETURN(const Proof proof, prove(schedule, request));
        if (!proof.holds()) {
          const Finding& finding = proof.findings.front();
          std::string place;
          if (finding.rank >= 0 && finding.step >= 0) {
            place = fmt::format(
                "{}: ",
                imported.places[static_cast<std::size_t>(finding.rank)][static_cast<std::size_t>(finding.step)]);
          }
          return error(Code::refuted, "{}{} ({} place, {})", place, to_string(finding), is_in_place ? "in" : "out of",
                       slices == 0 ? "1 element a block" : fmt::format("{} slices a chunk", slices));
        }
        if (result.proofs++ == 0) result.labels = proof.labels;
        result.labels.synchronises &= proof.labels.synchronises;
      }
    }
  }
  return result;
}

}  // namespace tutti::harness::exchange
