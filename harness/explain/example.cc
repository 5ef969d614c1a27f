// SPDX-License-Identifier: Apache-2.0
#include "harness/explain/example.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "impl/collective/blocks.h"

namespace tutti::harness::explain {
namespace {

/// Numbers of one block that the examples of torch have, and that make sense for the collective.
int least_shown(const Problem& problem) {
  switch (problem.collective) {
    case Collective::broadcast:
    case Collective::all_gather:
    case Collective::reduce_scatter:
      return 2;
    case Collective::all_reduce:
      return problem.ranks;  // reduce_scatter gives each rank a part of it
    default:
      return 1;
  }
}

constexpr std::array kLengths{2, 0, 3, 1};  // of a v form's blocks, again and again: one of them is empty
constexpr int kGapBefore = 2;               // the block; of fewer blocks: before the first

bool is_divided_here(const Example& example, BufferSide side) {
  return side == BufferSide::input ? divides_input(example.problem.collective)
                                   : divides_output(example.problem.collective);
}

/// The `index`th number of the blocks of a v form's input.
double number_in_blocks(const Example& example, int rank, int index) {
  int before = 0;
  for (int block = 0; block < rank; ++block) before += example.lengths[static_cast<std::size_t>(block)];
  const int all = std::accumulate(example.lengths.begin(), example.lengths.end(), 0);
  if (!is_divided_here(example, BufferSide::input)) return before + index + 1;
  return index + 1 + (example.problem.collective == Collective::scatter_v ? 0 : all * rank);
}

double number_at(const Example& example, int rank, int index) {
  if (!example.lengths.empty()) return number_in_blocks(example, rank, index);
  const int size = input_blocks(example.problem, rank) * example.shown;
  switch (example.problem.collective) {
    case Collective::reduce:
      return 1;
    case Collective::all_to_all:
      return index + size * rank;
    case Collective::broadcast:
    case Collective::scatter:
      return index + 1;
    case Collective::reduce_scatter: {
      constexpr int kMostPower = 3;  // or eight ranks would have numbers of ten digits
      const int power = std::min(index / example.shown + 1, kMostPower);
      return std::pow((rank + 1) * (index % example.shown + 1), power);
    }
    default:
      return index + 1 + size * rank;
  }
}

/// The largest n such that every whole number up to n has a value of its own in the dtype.
double largest_exact(Dtype dtype) {
  return visit_dtype(dtype, []<class T>(std::type_identity<T>) -> double {
    if constexpr (std::is_same_v<T, Boolean>) {
      return 1;
    } else if constexpr (std::is_integral_v<T>) {
      return static_cast<double>(std::numeric_limits<T>::max());
    } else if constexpr (std::is_floating_point_v<T>) {
      return std::ldexp(1.0, std::numeric_limits<T>::digits);
    } else if constexpr (requires { T::kMantissaBits; }) {
      return std::ldexp(1.0, T::kMantissaBits + 1);
    } else {
      constexpr int kBfloat16Digits = 8;
      return std::ldexp(1.0, kBfloat16Digits);
    }
  });
}

/// No partial result is larger than this, in whatever order ranks reduce.
double largest_result(const Example& example) {
  double largest = 0;
  for (std::size_t i = 0; i < example.input.front().size() || i == 0; ++i) {
    double total = example.op == Op::prod ? 1 : 0;
    for (const Numbers& input : example.input) {
      const double number = i < input.size() ? input[i].value_or(0) : 0;
      if (combining(example.op) == Op::sum) {
        total += example.factors.empty() ? number : number * example.factors.back();
      } else {
        total = example.op == Op::prod ? total * number : std::max(total, number);
      }
    }
    largest = std::max(largest, total);
  }
  return largest;
}

Status check_exact(const Example& example) {
  double largest = largest_result(example);
  for (const Numbers& input : example.input) {
    for (const auto& number : input) largest = std::max(largest, number.value_or(0));
  }
  if (largest <= largest_exact(example.dtype)) return {};
  const bool double_holds_it = largest <= largest_exact(Dtype::f64);
  return error(Code::invalid_argument,
               "the example of {}{}{} on {} ranks goes up to {:.0f}, and {} holds whole numbers up to {:.0f} only: did "
               "you mean {}fewer ranks?",
               to_string(example.problem.collective), example.op == Op::none ? "" : " with ",
               example.op == Op::none ? "" : to_string(example.op), example.problem.ranks, largest,
               to_string(example.dtype), largest_exact(example.dtype), double_holds_it ? "'double', or " : "");
}

}  // namespace

int Example::length_of(int rank, int block) const {
  const int number = divides_both(problem.collective) ? (rank + block) % problem.ranks : block;
  return lengths[static_cast<std::size_t>(number)];
}

Stretch Example::place(BufferSide side, int rank, int unit) const {
  const int per_unit = shown / units;
  if (lengths.empty()) return {.first = unit * per_unit, .count = per_unit};
  if (!is_divided_here(*this, side)) return {.first = 0, .count = lengths[static_cast<std::size_t>(rank)]};
  int first = 0;
  for (int block = 0; block < unit; ++block) first += length_of(rank, block);
  const bool is_after_gap = unit >= (problem.ranks > kGapBefore ? kGapBefore : 0);
  return {.first = first + (is_after_gap ? 1 : 0), .count = length_of(rank, unit)};
}

int Example::units_in(BufferSide side, int rank) const {
  return (side == BufferSide::input ? input_blocks(problem, rank) : output_blocks(problem, rank)) * units;
}

int Example::numbers_in(BufferSide side, int rank) const {
  const int all = units_in(side, rank);
  if (all == 0) return 0;
  const Stretch last = place(side, rank, all - 1);
  return last.first + last.count;
}

int units_of(const Example& example) {
  int most = 0;
  for (int rank = 0; rank < example.problem.ranks; ++rank) {
    most = std::max({most, example.units_in(BufferSide::input, rank), example.units_in(BufferSide::output, rank)});
  }
  return most;
}

std::string_view meaning_of(Collective collective) {
  switch (collective) {
    case Collective::broadcast:
      return "One rank, the root, has a list of numbers. Afterwards every rank has it.";
    case Collective::reduce:
      return "Every rank gives a list of numbers. The lists are combined, number by number, and the root gets the "
             "result.";
    case Collective::all_reduce:
      return "Every rank gives a list of numbers. The lists are combined, number by number, and every rank gets the "
             "result.";
    case Collective::gather:
      return "Every rank gives a block of numbers. The root gets all blocks, in the order of the ranks.";
    case Collective::all_gather:
      return "Every rank gives a block of numbers. Every rank gets all blocks, in the order of the ranks.";
    case Collective::scatter:
      return "The root has one block of numbers for each rank. Afterwards each rank has its own.";
    case Collective::reduce_scatter:
      return "Every rank gives one block of numbers for each rank. The blocks for one rank are combined, number by "
             "number, and that rank gets the result.";
    case Collective::all_to_all:
      return "Every rank gives one block of numbers for each rank. Each rank gets the blocks meant for it, in the "
             "order of the ranks that gave them: rows become columns.";
    case Collective::barrier:
      return "No data. Every rank waits until all have come: no rank leaves before the last one has entered.";
    case Collective::sendrecv:
      return "Every rank gives a list of numbers to the next rank, the last one to the first, and gets that of "
             "the rank before.";
    case Collective::pingpong:
      return "Ranks 0 and 1, 2 and 3, and so on are pairs. The even rank's list goes to the odd one, and from "
             "there back; a rank without a partner copies its own.";
    case Collective::bandwidth:
      return "Ranks 0 and 1, 2 and 3, and so on are pairs. The even rank sends a window of messages to the odd one, "
             "back "
             "to back, and waits until that has all of them; a rank without a partner does nothing.";
    case Collective::bibandwidth:
      return "Ranks 0 and 1, 2 and 3, and so on are pairs. Both send each other a window of messages, back to back, "
             "and "
             "end when they have the other's; a rank without a partner does nothing.";
    case Collective::message_rate:
      return "Rank i of the lower half and rank i + P/2 are a pair. The lower one sends a window of messages, back to "
             "back, and waits until the other has all of them; a rank without a partner does nothing.";
    case Collective::gather_v:
      return "Every rank gives a block of numbers, as many as it likes. The root gets all blocks, each at the place "
             "that it chose for it.";
    case Collective::all_gather_v:
      return "Every rank gives a block of numbers, as many as it likes. Every rank gets all blocks, each at the place "
             "that it chose for it.";
    case Collective::scatter_v:
      return "The root has one block of numbers for each rank, some longer than others, wherever it likes. "
             "Afterwards each rank has its own.";
    case Collective::reduce_scatter_v:
      return "Every rank gives one block of numbers for each rank, some longer than others. The blocks for one rank "
             "are combined, number by number, and that rank gets the result.";
    case Collective::all_to_all_v:
      return "Every rank gives one block of numbers for each rank, some longer than others. Each rank gets the blocks "
             "meant for it, each at the place that it chose for it.";
    case Collective::scan:
      return "Every rank gives a list of numbers. Each rank gets what its own list and those of the ranks before it "
             "come to when they are combined, number by number.";
    case Collective::exscan:
      return "Every rank gives a list of numbers. Each rank gets what the lists of the ranks before it come to when "
             "they are combined, number by number; the first one, which has none before it, gets nothing.";
  }
  return "";
}

Result<Example> example_of(const Algorithm& algorithm, const Problem& problem, Dtype dtype, Op op) {
  TUTTI_ASSERT(has_data(problem.collective), "an example of {}", to_string(problem.collective));
  Example example{.problem = problem, .dtype = dtype, .op = op};
  example.units = algorithm.shape(problem).units_per_block;
  example.shown = std::lcm(least_shown(problem), example.units);
  for (int block = 0; has_counts(problem.collective) && block < problem.ranks; ++block) {
    example.lengths.push_back(kLengths[static_cast<std::size_t>(block) % kLengths.size()]);
  }
  if (example.units > 1) example.scale = 64 / static_cast<Count>(size_of(dtype));
  for (int rank = 0; rank < problem.ranks; ++rank) {
    if (op == Op::premul_sum) example.factors.push_back(rank + 1);
    Numbers input(static_cast<std::size_t>(example.numbers_in(BufferSide::input, rank)));
    int index = 0;
    for (int unit = 0; unit < example.units_in(BufferSide::input, rank); ++unit) {
      const Stretch place = example.place(BufferSide::input, rank, unit);
      for (int i = 0; i < place.count; ++i) {
        input[static_cast<std::size_t>(place.first + i)] = number_at(example, rank, index++);
      }
    }
    example.input.push_back(std::move(input));
  }
  TUTTI_RETURN_IF_ERROR(check_exact(example));
  return example;
}

}  // namespace tutti::harness::explain
