// SPDX-License-Identifier: Apache-2.0
#include "harness/faults/fault.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "harness/cases/lists.h"
#include "harness/verify/check.h"
#include "impl/types/dtype.h"
#include "impl/types/names.h"

namespace tutti::harness::faults {
namespace {

struct FaultRow {
  Fault fault;
  std::string_view name;
  std::string_view summary;
  std::array<std::string_view, 10> words;  ///< of diagnoses that name it
};

constexpr std::array kRows{
    FaultRow{Fault::flipped_bit,
             "flipped_bit",
             "a bit changes in what a MOVE has written: a slot, scratch or the output",
             {"bit differs", "was flipped"}},
    FaultRow{Fault::dropped_message,
             "dropped_message",
             "a MOVE that sends copies nothing; its slot or flag is published all the same",
             {"message was lost", "contribution is missing", "are missing", "contributed its", "earlier operation",
              "previous data", "previous poison", "holds zeros", "not written", "instead of input block"}},
    FaultRow{Fault::doubled_contribution,
             "doubled_contribution",
             "a MOVE that reduces has one of its sources twice",
             {"counted twice"}},
    FaultRow{Fault::swapped_blocks,
             "swapped_blocks",
             "two blocks of a rank's output, or the halves of its one block, change places",
             {"are swapped"}},
    FaultRow{
        Fault::previous_data, "previous_data", "one rank's call has the previous operation's input", {"previous data"}},
    FaultRow{Fault::missing_rank,
             "missing_rank",
             "one rank's input is left out, or nothing comes from it; barrier: a rank waits for no other",
             {"contribution is missing", "are missing", "not written", "nothing was written", "left the barrier",
              "reduced with no other"}},
    FaultRow{Fault::wrong_root, "wrong_root", "all ranks call with another root", {"were the root"}},
    FaultRow{Fault::off_by_one_count,
             "off_by_one_count",
             "all ranks call with a count of one element more, or fewer",
             {"the count is one too", "past the end of"}},
    FaultRow{
        Fault::write_past_end, "write_past_end", "a MOVE writes one element after the output", {"past the end of"}},
    FaultRow{Fault::write_before_start,
             "write_before_start",
             "a MOVE writes one element before the output",
             {"before the buffer"}},
    FaultRow{Fault::overwritten_input,
             "overwritten_input",
             "a MOVE writes one element of the input",
             {"the input was overwritten"}},
    FaultRow{Fault::one_rank_differs,
             "one_rank_differs",
             "the last bit of an element differs on one rank only",
             {"result differs"}},
    FaultRow{Fault::narrow_type,
             "narrow_type",
             "reductions keep half of the bits that the dtype has",
             {"too narrow a type"}},
    FaultRow{Fault::late_write,
             "late_write",
             "a part of one rank's output is written after its operation is complete",
             {"after the operation was complete"}},
};

constexpr auto kFaults = [] {
  std::array<Fault, kRows.size()> faults{};
  for (std::size_t i = 0; i < faults.size(); ++i) faults[i] = kRows[i].fault;
  return faults;
}();

const FaultRow& row_of(Fault fault) { return kRows[static_cast<std::size_t>(fault)]; }

/// Whether a value reduced with itself is that value.
bool is_idempotent(Op op, Dtype dtype) {
  return op == Op::min || op == Op::max || op == Op::band || op == Op::bor || dtype == Dtype::boolean;
}

constexpr std::array kClasses{DtypeClass::integer, DtypeClass::wide_float, DtypeClass::half_float,
                              DtypeClass::byte_float};

}  // namespace

std::span<const Fault> all_faults() { return kFaults; }
std::string_view to_string(Fault fault) { return row_of(fault).name; }
std::string_view summary_of(Fault fault) { return row_of(fault).summary; }

Result<std::vector<Fault>> parse_faults(std::string_view text) {
  if (text == "all") return std::vector<Fault>(kFaults.begin(), kFaults.end());
  TUTTI_ASSIGN_OR_RETURN(const auto items, split_list("faults", text));
  std::vector<std::string> names;
  for (const FaultRow& row : kRows) names.emplace_back(row.name);
  std::vector<Fault> faults;
  for (const std::string_view item : items) {
    const auto row = std::ranges::find(kRows, item, &FaultRow::name);
    if (row == kRows.end()) return unknown_name("fault", item, names);
    append_new(faults, row->fault);
  }
  return faults;
}

bool combines(const Problem& problem) {
  return is_reducing(problem.collective) && origin_of(problem, problem.ranks - 1, 0).ranks() > 1;
}

std::string why_not_applicable(Fault fault, const Cell& cell) {
  const Collective collective = cell.collective;
  if (!has_data(collective)) {
    if (fault != Fault::missing_rank) return "a barrier has no data";
    return cell.ranks_as->is_on_device ? "thread blocks begin together, when every rank has called" : "";
  }
  switch (fault) {
    case Fault::doubled_contribution:
      if (!combines(cell.problem())) return "nothing is combined: every element comes from one rank";
      return is_idempotent(cell.op, cell.dtype)
                 ? fmt::format("{} of a value with itself is that value", to_string(cell.op))
                 : "";
    case Fault::wrong_root:
      return is_rooted(collective) ? "" : "it has no root";
    case Fault::one_rank_differs:
      if (has_one_result(collective)) return {};
      if (!is_rooted(collective) || divides_input(collective)) return "every rank has its own result";
      return "only the root has a result";
    case Fault::narrow_type:
      if (cell.dtype == Dtype::boolean) return "half of a bool's bits are enough for 0 and 1";
      return combines(cell.problem()) ? "" : "nothing is reduced";
    default:
      return {};
  }
}

std::string why_not_on_gpu(Fault fault) {
  switch (fault) {
    case Fault::flipped_bit:
    case Fault::one_rank_differs:
    case Fault::narrow_type:
      return "the arithmetic of a GPU's kernels cannot be replaced";
    case Fault::previous_data:
    case Fault::wrong_root:
    case Fault::late_write:
      return "the host stands between a rank and its buffers, which on a GPU it does not reach";
    default:
      return {};
  }
}

bool fits_in_place(Fault fault, Collective collective) {
  if (!has_data(collective)) return false;
  const Collective base = base_of(collective);
  const bool has_longer_input = divides_input(collective) && !divides_output(collective);
  switch (fault) {
    case Fault::flipped_bit:
    case Fault::dropped_message:
    case Fault::doubled_contribution:
    case Fault::one_rank_differs:
    case Fault::narrow_type:
      return true;
    case Fault::missing_rank:  // a block that is left as it was holds no input there
      return is_reducing(collective) || base == Collective::broadcast || base == Collective::gather ||
             base == Collective::all_gather;
    case Fault::write_past_end:
    case Fault::write_before_start:
      return !has_longer_input;
    case Fault::overwritten_input:
      return has_longer_input;
    default:
      return false;
  }
}

bool fits_shared(Fault fault, Collective collective, bool peers_write_output) {
  if (fault == Fault::swapped_blocks && peers_write_output) return false;
  return has_data(collective) && fault != Fault::previous_data && fault != Fault::wrong_root &&
         fault != Fault::late_write;
}

bool names_cause(Fault fault, std::string_view diagnosis) {
  return std::ranges::any_of(row_of(fault).words, [&](std::string_view words) {
    return !words.empty() && diagnosis.find(words) != std::string_view::npos;
  });
}

std::span<const DtypeClass> all_dtype_classes() { return kClasses; }

std::string_view to_string(DtypeClass which) {
  constexpr std::array<std::string_view, kClasses.size()> kNames{"integer", "float", "16-bit float", "8-bit float"};
  return kNames[static_cast<std::size_t>(which)];
}

DtypeClass class_of(Dtype dtype) {
  return visit_dtype(dtype, []<class T>(std::type_identity<T>) {
    if constexpr (std::is_integral_v<T>) return DtypeClass::integer;
    if constexpr (std::is_floating_point_v<T>) return DtypeClass::wide_float;
    return sizeof(T) == 1 ? DtypeClass::byte_float : DtypeClass::half_float;
  });
}

}  // namespace tutti::harness::faults
