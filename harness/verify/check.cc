// SPDX-License-Identifier: Apache-2.0
#include "harness/verify/check.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "harness/verify/buffers.h"
#include "harness/verify/comparison.h"
#include "harness/verify/rounding.h"

namespace tutti::harness::verify {
namespace {

/// Whether the rank's output holds what it would if the rank were the root, as far as it goes.
bool is_result_of_root(Operation operation, const RankBuffer& output) {
  constexpr Count kMost = 64;  // of a block
  operation.problem.root = output.rank;
  const std::size_t element_bytes = size_of(operation.dtype);
  const auto there = static_cast<Count>(output.bytes.size() / element_bytes);
  bool holds_any = false;
  for (int block = 0; block < output_blocks(operation.problem, output.rank); ++block) {
    const Place place = operation.output_place(output.rank, block);
    const Count count = std::min({place.count, there - place.first, kMost});
    if (count < 1) continue;
    std::vector<std::byte> expected(static_cast<std::size_t>(count) * element_bytes);
    fill_expected(expected, operation, {.rank = output.rank, .block = block});
    const std::size_t at = static_cast<std::size_t>(place.first) * element_bytes;
    if (!std::ranges::equal(expected, output.bytes.subspan(at, expected.size()))) return false;
    holds_any = true;
  }
  return holds_any;
}

CheckResult verify_untouched(const Operation& operation, const RankBuffer& output) {
  std::vector<std::byte> poison(output.bytes.size());
  fill_poison(poison, operation.salt);
  Comparison comparison(operation);
  comparison.compare_bits(0, poison, output.bytes);
  CheckResult& result = comparison.result();
  if (result.is_ok()) return result;
  result.diagnosis = "this rank's output is not to be written";
  result.tells_cause = is_rooted(operation.problem.collective) && is_result_of_root(operation, output);
  if (result.tells_cause) result.diagnosis += ": it holds the result, as if this rank were the root";
  return result;
}

}  // namespace

std::vector<Place> gaps_of(const Operation& operation, int rank) {
  std::vector<Place> blocks;
  for (int block = 0; block < output_blocks(operation.problem, rank); ++block) {
    blocks.push_back(operation.output_place(rank, block));
  }
  std::ranges::sort(blocks, {}, &Place::first);
  std::vector<Place> gaps;
  Count end = 0;  // of the blocks so far
  for (const Place& block : blocks) {
    if (block.first > end) gaps.push_back({.first = end, .count = block.first - end});
    end = std::max(end, block.first + block.count);
  }
  return gaps;
}

std::string CheckResult::text() const {
  if (is_ok()) return fmt::format("{} checked, none wrong", checked);
  const std::string likely = diagnosis.empty() ? "" : "; " + diagnosis;
  return fmt::format("{} of {} wrong, the first at {}, the last at {}: expected {}, actual {}{}", wrong, checked,
                     first_bad, last_bad, expected, actual, likely);
}

CheckResult verify_output(Oracle& oracle, const RankBuffer& output) {
  const Operation& operation = oracle.operation();
  const std::size_t element_bytes = size_of(operation.dtype);
  const int blocks = output_blocks(operation.problem, output.rank);
  if (blocks == 0) return verify_untouched(operation, output);
  if (operation.is_rounded()) return verify_rounded(operation, output);
  const Count whole = operation.output_elements(output.rank);
  TUTTI_ASSERT(output.bytes.size() == static_cast<std::size_t>(whole) * element_bytes, "{} bytes for {} elements",
               output.bytes.size(), whole);

  Comparison comparison(operation);
  for (int block = 0; block < blocks; ++block) {
    const Place place = operation.output_place(output.rank, block);
    for (Count first = 0; first < place.count; first += Oracle::kChunk) {
      const Count elements = std::min(Oracle::kChunk, place.count - first);
      const Count index = place.first + first;
      comparison.compare(index, oracle.expect({.rank = output.rank, .block = block, .first = first}, elements),
                         output.bytes.subspan(static_cast<std::size_t>(index) * element_bytes,
                                              static_cast<std::size_t>(elements) * element_bytes));
    }
  }
  return comparison.judged(operation, output);
}

CheckResult verify_gaps(const Operation& operation, const RankBuffer& output, bool hold_input) {
  const std::vector<Place> gaps = gaps_of(operation, output.rank);
  if (gaps.empty()) return {};
  const std::size_t element_bytes = size_of(operation.dtype);
  std::vector<std::byte> before(output.bytes.size());
  if (hold_input) {
    fill_input(before, input_of(operation, output.rank));
  } else {
    fill_poison(before, operation.salt);
  }
  Comparison comparison(operation);
  for (const Place& gap : gaps) {
    const auto at = static_cast<std::size_t>(gap.first) * element_bytes;
    const auto bytes = static_cast<std::size_t>(gap.count) * element_bytes;
    comparison.compare_bits(gap.first, std::span(before).subspan(at, bytes), output.bytes.subspan(at, bytes));
  }
  CheckResult& result = comparison.result();
  if (!result.is_ok()) result.diagnosis = "the gaps between blocks are not to be written";
  return result;
}

CheckResult verify_input_unchanged(const Operation& operation, const RankBuffer& input) {
  const std::size_t element_bytes = size_of(operation.dtype);
  Comparison comparison(operation);
  std::vector<std::byte> expected(static_cast<std::size_t>(Oracle::kChunk) * element_bytes);
  for (std::size_t done = 0; done < input.bytes.size(); done += expected.size()) {
    const std::span chunk = std::span(expected).first(std::min(expected.size(), input.bytes.size() - done));
    const auto first = static_cast<Count>(done / element_bytes);
    fill_input(chunk, input_of(operation, input.rank), first);
    comparison.compare_bits(first, chunk, input.bytes.subspan(done, chunk.size()));
  }
  CheckResult& result = comparison.result();
  if (!result.is_ok()) {
    result.diagnosis = fmt::format("the operation wrote into the input of rank {}, which it may only read", input.rank);
  }
  return result;
}

bool has_one_result(Collective collective) {
  const Collective base = base_of(collective);
  return base == Collective::broadcast || base == Collective::all_reduce || base == Collective::all_gather;
}

CheckResult check_barrier(const BarrierTimes& times) {
  CheckResult result{.checked = 1};
  if (times.first_leave_ns >= times.last_enter_ns) return result;
  result.wrong = 1;
  result.first_bad = result.last_bad = 0;
  result.expected = fmt::format("no rank leaves before {} ns", times.last_enter_ns);
  result.actual = fmt::format("left at {} ns", times.first_leave_ns);
  result.diagnosis = fmt::format("a rank left the barrier {} ns before the last one had entered",
                                 times.last_enter_ns - times.first_leave_ns);
  return result;
}

}  // namespace tutti::harness::verify
