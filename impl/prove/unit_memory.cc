// SPDX-License-Identifier: Apache-2.0
#include "impl/prove/unit_memory.h"

#include <algorithm>

namespace tutti::steps {
namespace {

int user_units(const Problem& problem, int per_block, int rank, bool is_in_place) {
  const int outputs = output_blocks(problem, rank) * per_block;
  if (!is_in_place) return outputs;
  const auto end = [&](Space space, int units) {
    return units == 0 ? 0 : begin_in_place(problem, per_block, rank, space) + units;
  };
  return std::max(end(Space::output, outputs), end(Space::input, input_blocks(problem, rank) * per_block));
}

}  // namespace

UnitMemory::UnitMemory(const Schedule& schedule, const Form& form)
    : schedule_(schedule),
      form_(form),
      ranks_(schedule.problem.ranks),
      per_block_(schedule.shape.units_per_block),
      users_(static_cast<std::size_t>(ranks_)),
      scratch_(static_cast<std::size_t>(ranks_) * static_cast<std::size_t>(schedule.shape.scratch_units)) {}

int UnitMemory::units_of_user(int rank) const {
  return user_units(schedule_.problem, per_block_, rank, form_.is_in_place);
}

std::vector<Sum>& UnitMemory::user(int rank) {
  std::vector<Sum>& values = users_[static_cast<std::size_t>(rank)];
  if (!values.empty()) return values;
  stored_.insert(std::ranges::upper_bound(stored_, rank), rank);
  values.resize(static_cast<std::size_t>(units_of_user(rank)));
  if (!form_.is_in_place) return values;
  const std::size_t begin = begin_of(rank, Space::input);
  for (int unit = 0; unit < units_of(rank, Space::input); ++unit) {
    values[begin + static_cast<std::size_t>(unit)] = Sum::of_input(rank, unit);
  }
  return values;
}

Sum UnitMemory::read(int rank, Space space, int unit) const {
  if (space == Space::scratch) {
    return scratch_[static_cast<std::size_t>(rank) * static_cast<std::size_t>(schedule_.shape.scratch_units) +
                    static_cast<std::size_t>(unit)];
  }
  if (space == Space::input && !form_.is_in_place) return Sum::of_input(rank, unit);
  const std::vector<Sum>& values = users_[static_cast<std::size_t>(rank)];
  if (!values.empty()) return values[begin_of(rank, space) + static_cast<std::size_t>(unit)];
  if (!form_.is_in_place) return {};
  const std::int64_t of_input =
      static_cast<std::int64_t>(begin_of(rank, space)) + unit - static_cast<std::int64_t>(begin_of(rank, Space::input));
  if (of_input < 0 || of_input >= units_of(rank, Space::input)) return {};
  return Sum::of_input(rank, static_cast<int>(of_input));
}

void UnitMemory::write(int rank, Space space, int unit, const Sum& value) {
  if (space != Space::scratch) {
    user(rank)[begin_of(rank, space) + static_cast<std::size_t>(unit)] = value;
    return;
  }
  Sum& there = scratch_[static_cast<std::size_t>(rank) * static_cast<std::size_t>(schedule_.shape.scratch_units) +
                        static_cast<std::size_t>(unit)];
  if (const auto found = of_scratch_.find(unit); found != of_scratch_.end()) {
    found->second.change(rank, there, -1);
    found->second.change(rank, value, 1);
  }
  there = value;
}

void UnitMemory::Sums::change(int rank, const Sum& value, int by) {
  if (value.finals == Sum::kUnwritten) {
    unwritten.add(rank, by);
    return;
  }
  sums.add(rank, by > 0 ? value.sum : 0 - value.sum);
  finals.add(rank, by * value.finals);
  if (value.first != rank || value.ranks != 1) others.add(rank, by);
}

std::optional<Sum> UnitMemory::sum_over(RankArc ranks, Space space, int unit) {
  if (schedule_.problem.collective == Collective::all_reduce) return {};  // the tree is not that of a whole
  Sum all{.sum = 0, .finals = 0, .first = ranks.begin, .ranks = ranks.end - ranks.begin, .tree = 0};
  if (space == Space::scratch) {
    const auto [found, is_new] = of_scratch_.try_emplace(unit, ranks_);
    Sums& sums = found->second;
    for (int rank = 0; is_new && rank < ranks_; ++rank) sums.change(rank, read(rank, space, unit), 1);
    if (sums.unwritten.over(ranks) > 0 || sums.others.over(ranks) > 0) return {};
    all.sum = sums.sums.over(ranks);
    all.finals = sums.finals.over(ranks);
    return all;
  }
  if (space != Space::input) return {};
  all.sum = input_values(ranks.begin, ranks.end, unit);
  if (!form_.is_in_place) return all;
  // In place, those that have been stored to hold something else.
  constexpr std::ptrdiff_t kMostStored = 64;
  const auto first = std::ranges::lower_bound(stored_, ranks.begin);
  const auto last = std::ranges::lower_bound(stored_, ranks.end);
  if (last - first > kMostStored) return {};
  for (auto rank = first; rank != last; ++rank) {
    const Sum value = read(*rank, space, unit);
    if (value.finals == Sum::kUnwritten) return {};
    all.sum += value.sum - input_value(*rank, unit);
    all.finals += value.finals;
    if (value.first != *rank || value.ranks != 1) all.ranks = Sum::kDisordered;
  }
  return all;
}

std::int64_t bytes_of_memory(const Schedule& schedule) {
  std::int64_t units = 0;
  for (int rank = 0; rank < schedule.problem.ranks; ++rank) {
    if (output_blocks(schedule.problem, rank) > 0) {  // nobody stores to the others
      units += user_units(schedule.problem, schedule.shape.units_per_block, rank, true);
    }
    units += schedule.shape.scratch_units;
  }
  constexpr std::int64_t kOfAccesses = 32;  // that are kept for the check of races
  const bool exposes = schedule.shape.exposes_input || schedule.shape.exposes_output;
  return units * (static_cast<std::int64_t>(sizeof(Sum)) + (exposes ? kOfAccesses : 0));
}

}  // namespace tutti::steps
