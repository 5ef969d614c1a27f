// SPDX-License-Identifier: Apache-2.0
#include "impl/prove/forms.h"

#include <algorithm>

#include "impl/types/counted.h"

namespace tutti {
namespace {

constexpr std::int64_t kAnyScratch = std::int64_t{1} << 40;
constexpr std::int64_t kAnyBytes = std::int64_t{1} << 40;

Op op_of(Collective collective, Op op) {
  if (!is_reducing(collective)) return Op::none;
  return takes_op(collective, op) ? op : Op::sum;
}

/// Elements of block `index`, some blocks empty, others of several slices.
Count uneven_count(int index) { return index % 3 == 1 ? 0 : (Count{7} * index * index + 3 * index + 5) % 41; }

}  // namespace

std::string describe(const Schedule& schedule) {
  return fmt::format("{} {} on {}, root {}", to_string(schedule.problem.collective), schedule.name,
                     counted(schedule.problem.ranks, "rank"), schedule.problem.root);
}

std::string describe(const Schedule& schedule, const Form& form) {
  return fmt::format("{}, {} place, {} buffers, {}{}{}{}{}", describe(schedule), form.is_in_place ? "in" : "out of",
                     to_string(form.buffers),
                     form.slices == 0 ? "1 element per block" : counted(form.slices, "slice") + " per unit",
                     form.op == Op::premul_sum ? ", premul_sum" : "", form.slots_per_need > 1 ? ", longer turns" : "",
                     form.copies_short ? ", short inputs staged" : "", form.has_lengths ? ", lengths of a v form" : "");
}

BindRequest request_of(const Schedule& schedule, const Form& form) {
  const Count line = kFormSlotBytes / static_cast<Count>(size_of(Dtype::f32));
  const bool has_bytes = has_data(schedule.problem.collective);
  const Count count = !has_bytes ? 0 : form.slices == 0 ? 1 : schedule.shape.units_per_block * form.slices * line;
  const int longest = schedule.shape.largest_message * std::max(1, form.slices);
  return {.count = count,
          .dtype = Dtype::f32,
          .op = op_of(schedule.problem.collective, form.op),
          .is_in_place = form.is_in_place,
          .buffers = form.buffers,
          .most_copied = form.copies_short ? kAnyBytes : 0,
          .resources = {.slots = longest == 0 ? 1 : form.slots_per_need * schedule.least_slots(longest),
                        .slot_bytes = kFormSlotBytes,
                        .scratch_bytes = kAnyScratch},
          .segment = count,
          .keep_exposures = true,
          .has_sound_steps = true};
}

std::vector<Form> forms_of(const Schedule& schedule) {
  const Collective collective = schedule.problem.collective;
  const bool exposes = schedule.shape.exposes_input || schedule.shape.exposes_output;
  std::vector<Form> forms;
  for (const bool is_in_place : {false, true}) {
    const Form first{.slices = 1, .is_in_place = is_in_place, .buffers = Buffers::shared};
    for (const int slices : {1, kMostSlicesOfForms, 0}) {
      Form form = first;
      form.slices = slices;
      forms.push_back(form);
      if (slices > 1 && schedule.shape.largest_message > 0) {
        forms.push_back(form);
        forms.back().slots_per_need = 2;
      }
      if (!exposes) continue;
      form.buffers = Buffers::private_;
      forms.push_back(form);
    }
    if (schedule.shape.exposes_input) {
      forms.push_back(first);
      forms.back().copies_short = true;
    }
    if (is_reducing(collective)) {
      forms.push_back(first);
      forms.back().op = Op::premul_sum;
    }
    if (schedule.takes_counts) {
      forms.push_back(first);
      forms.back().buffers = Buffers::private_;
      forms.back().has_lengths = true;
    }
  }
  return forms;
}

Result<BlockTable> uneven_blocks(const Problem& problem, int rank) {
  const auto place = [rank](const std::vector<Count>& counts) {
    std::vector<Count> displacements(counts.size());
    Count next = 2 * rank;
    for (std::size_t i = counts.size(); i-- > 0; next += counts[i] + 3) displacements[i] = next;
    return displacements;
  };
  const bool has_own = divides_both(problem.collective);
  std::vector<Count> counts;
  for (int block = 0; block < problem.ranks; ++block) counts.push_back(uneven_count(has_own ? rank + block : block));
  const std::vector<Count> displacements = place(counts);
  const Division division{.counts = counts, .displacements = displacements};
  return has_own ? blocks_of(problem, division, division, size_of(Dtype::f32))
                 : blocks_of(problem, rank, division, size_of(Dtype::f32));
}

}  // namespace tutti
