// SPDX-License-Identifier: Apache-2.0
// Case ids, both ways, and the names of the small enumerations that stand in them.
#include "harness/cases/case.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include <fmt/ranges.h>

#include "harness/cases/compositions.h"
#include "harness/cases/groups.h"
#include "harness/cases/kinds.h"
#include "harness/cases/lists.h"
#include "harness/cases/settings.h"
#include "harness/text/counted.h"
#include "impl/schedule/tuning.h"

namespace tutti::harness::cases {
namespace {

constexpr std::array kPlacements{Named{Placement::out, "out"}, Named{Placement::in, "in"}};
constexpr std::array kCadences{Named{Cadence::isolated, "isolated"}, Named{Cadence::streaming, "streaming"}};

enum Part : std::size_t { collective, system, transport, dtype, op, ranks, root, bytes, placement, buffers, cadence };
constexpr std::array<std::string_view, 11> kParts{"collective", "backend.algorithm", "transport", "dtype",
                                                  "op",         "P<ranks>.<as>",     "root",      "bytes",
                                                  "placement",  "buffers",           "cadence"};
constexpr std::string_view kExample =
    "broadcast/tutti.knomial/shm/float/none/P4.processes/root1/1048576B/out/private/isolated";

/// The number between `prefix` and `suffix`; empty unless it is written as `case_id` writes it.
std::optional<std::int64_t> number_in(std::string_view text, std::string_view prefix, std::string_view suffix) {
  if (!text.starts_with(prefix) || !text.ends_with(suffix) || text.size() <= prefix.size() + suffix.size()) return {};
  const std::string_view digits = text.substr(prefix.size(), text.size() - prefix.size() - suffix.size());
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (failure != std::errc() || value < 0 || fmt::to_string(value) != digits) return {};
  return value;
}

/// `1048576B`, `1048576B.ramp` or `1048576B.window64`.
std::string bytes_part(const Cell& cell) {
  if (has_window(cell.collective)) return fmt::format("{}B.window{}", cell.bytes, cell.pairing.window);
  const bool is_plain = cell.counts.pattern == Pattern::equal;
  return fmt::format("{}B{}{}", cell.bytes, is_plain ? "" : ".", is_plain ? "" : cell.counts.name);
}

/// `P4.processes`, or `P8.processes.group0of2x4.together`.
std::string ranks_part(const Cell& cell) {
  std::string text = fmt::format("P{}.{}", cell.ranks, to_string(cell.ranks_as));
  const Among& among = cell.among;
  if (!among.is_any()) return text;
  text += fmt::format(".group{}of{}.{}", among.group, among.groups, among.is_together ? kTogether : kAlone);
  return among.deal.empty() ? text : text + "." + among.deal;
}

/// Reads the parts of one id into a case, one after the other, the collective first: it decides which parts apply.
class IdReader {
 public:
  explicit IdReader(std::vector<std::string_view> parts) : parts_(std::move(parts)) {}

  Result<Case> read() {
    TUTTI_RETURN_IF_ERROR(named(Part::collective, case_.collective, parse_collective));
    TUTTI_RETURN_IF_ERROR(read_system());
    TUTTI_RETURN_IF_ERROR(read_work());
    TUTTI_RETURN_IF_ERROR(read_ranks());
    TUTTI_RETURN_IF_ERROR(read_bytes());
    return std::move(case_);
  }

 private:
  [[nodiscard]] Status wrong(Part part, std::string_view right) const {
    return error(Code::invalid_argument, "case id: {} '{}' must be {}", kParts[part], shown(parts_[part]), right);
  }

  /// A part that is a name of `parse`.
  template <class Id>
  Status named(Part part, Id& target, Result<Id> (*parse)(std::string_view)) {
    Result<Id> parsed = parse(parts_[part]);
    if (!parsed.is_ok()) return error(Code::invalid_argument, "case id: {}", parsed.status().message());
    target = parsed.value();
    return {};
  }

  [[nodiscard]] Status must_be_none(Part part) const {
    return parts_[part] == kNone ? Status() : wrong(part, fmt::format("'none' for {}", parts_[Part::collective]));
  }

  /// A name, or `none` exactly where the part does not apply.
  template <class Id>
  Status applicable(Part part, bool applies, Id& target, Result<Id> (*parse)(std::string_view)) {
    return applies ? named(part, target, parse) : must_be_none(part);
  }

  Status read_system() {
    const std::string_view text = parts_[Part::system];
    const std::size_t dot = text.find('.');
    if (dot == text.npos || !is_system(text.substr(0, dot)) || !is_name(without_tuning(text.substr(dot + 1)))) {
      return wrong(Part::system, "two names, such as 'tutti.ring' or 'openmpi.none'");
    }
    const std::string_view algorithm = text.substr(dot + 1);
    const auto tuning = tuning_from(tuning_behind(algorithm));
    if (!tuning.is_ok() || to_text(tuning.value()) != tuning_behind(algorithm)) {
      return wrong(Part::system, "an algorithm, and what its tuning is written as, such as 'tutti.ring+64K+streamed'");
    }
    case_.backend = text.substr(0, dot);
    case_.algorithm = algorithm;
    if (!is_name(parts_[Part::transport]))
      return wrong(Part::transport, fmt::format("a name, such as '{}'", usual_transport(RanksAs::processes)));
    case_.transport = parts_[Part::transport];
    return {};
  }

  Status read_work() {
    const bool with_data = has_data(case_.collective);
    TUTTI_RETURN_IF_ERROR(applicable(Part::dtype, with_data, case_.dtype, parse_dtype));
    TUTTI_RETURN_IF_ERROR(applicable(Part::op, is_reducing(case_.collective), case_.op, parse_op));
    if (!op_exists(case_.op, case_.dtype)) {
      return wrong(Part::op, fmt::format("an op that {} has, such as 'sum'", to_string(case_.dtype)));
    }
    if (!takes_op(case_.collective, case_.op)) {
      return wrong(Part::op, fmt::format("an op that {} has, such as 'sum'", to_string(case_.collective)));
    }
    Placement where = Placement::out;
    TUTTI_RETURN_IF_ERROR(applicable(Part::placement, with_data, where, parse_placement));
    case_.is_in_place = where == Placement::in;
    TUTTI_RETURN_IF_ERROR(applicable(Part::buffers, with_data, case_.buffers, parse_buffers));
    return named(Part::cadence, case_.cadence, parse_cadence);
  }

  Status read_ranks() {
    const std::vector<std::string_view> halves = split(parts_[Part::ranks], '.');
    const auto number = number_in(halves[0], "P", "");
    const bool is_whole = halves.size() == 2 || halves.size() == 4 || halves.size() == 5;
    if (!is_whole || !number || *number < 1 || *number > kMaxRanks) {
      return wrong(Part::ranks, fmt::format("such as 'P4.processes', with 1 to {} ranks", kMaxRanks));
    }
    case_.ranks = static_cast<int>(*number);
    if (halves.size() > 2) TUTTI_RETURN_IF_ERROR(read_group(std::span(halves).subspan(2)));
    if (has_window(case_.collective) && case_.ranks_of_call() < 2) {
      return wrong(Part::ranks, fmt::format("such as 'P2.processes', with 2 to {} ranks", kMaxRanks));
    }
    Result<RanksAs> ranks_as = parse_ranks_as(halves[1]);
    if (!ranks_as.is_ok()) return error(Code::invalid_argument, "case id: {}", ranks_as.status().message());
    case_.ranks_as = ranks_as.value();
    if (has_pairs(case_.collective)) return read_pair();
    if (!is_rooted(case_.collective)) return must_be_none(Part::root);
    const auto root_rank = number_in(parts_[Part::root], "root", "");
    if (const int most = case_.ranks_of_call(); !root_rank || *root_rank >= most) {
      return wrong(Part::root, fmt::format("'root0' to 'root{}' for {} ranks", most - 1, most));
    }
    case_.root = static_cast<int>(*root_rank);
    return {};
  }

  /// `group0of2x4`, `together` or `alone`, and the deal where groups run different collectives.
  Status read_group(std::span<const std::string_view> words) {
    constexpr std::string_view kOf = "of";
    const Status misfit = wrong(Part::ranks, "with a group such as 'P8.processes.group0of2x4.together'");
    const std::size_t of = words[0].find(kOf);
    const auto number = number_in(words[0].substr(0, of), "group", "");
    if (of == words[0].npos || !number || (words[1] != kTogether && words[1] != kAlone)) return misfit;
    const auto groups = parse_groups(words[0].substr(of + kOf.size()));
    if (!groups.is_ok() || !check_groups(groups.value(), case_.ranks).is_ok()) return misfit;
    if (*number >= groups.value().count || (words.size() > 2 && !is_deal(words[2]))) return misfit;
    case_.among = {.groups = to_string(groups.value()),
                   .group = static_cast<int>(*number),
                   .ranks = static_cast<int>(members_of(groups.value(), static_cast<int>(*number), case_.ranks).size()),
                   .is_together = words[1] == kTogether,
                   .deal = words.size() > 2 ? std::string(words[2]) : std::string()};
    return {};
  }

  Status read_pair() {
    const std::string_view text = parts_[Part::root];
    if (text == kNone) return {};
    const std::size_t dash = text.find('-');
    const auto first = number_in(text.substr(0, dash), "pair", "");
    std::optional<std::int64_t> second;
    if (dash != text.npos) second = number_in(text.substr(dash + 1), "", "");
    if (const int most = case_.ranks_of_call(); !first || !second || *first >= *second || *second >= most) {
      return wrong(Part::root, most < 2
                                   ? std::string("'none' for one rank")
                                   : fmt::format("'none', or two of {} ranks, such as 'pair0-{}'", most, most - 1));
    }
    case_.pairing.first = static_cast<int>(*first);
    case_.pairing.second = static_cast<int>(*second);
    return {};
  }

  Status read_window(std::string_view text) {
    const auto window = number_in(text, "window", "");
    if (!window || *window < 1 || *window > kMaxWindow) {
      return wrong(Part::bytes, fmt::format("a number of bytes and a window of 1 to {}, such as '1048576B.window{}'",
                                            kMaxWindow, kUsualWindow));
    }
    case_.pairing.window = static_cast<int>(*window);
    return {};
  }

  /// Requires: the bytes are set.
  [[nodiscard]] Status check_drawn_in_place() const {
    if (!is_drawn(case_.counts.pattern) || !case_.is_in_place || blocks_of(case_).is_same_both_ways()) return {};
    return wrong(Part::placement, fmt::format("'out': in place, ranks send what they receive, and counts '{}' do not",
                                              case_.counts.name));
  }

  Status read_bytes() {
    const std::string_view text = parts_[Part::bytes];
    const std::size_t dot = text.find('.');
    const auto number = number_in(text.substr(0, dot), "", "B");
    if (!number) return wrong(Part::bytes, "a number of bytes, such as '1048576B'");
    if (has_window(case_.collective)) {
      TUTTI_RETURN_IF_ERROR(read_window(dot == text.npos ? "" : text.substr(dot + 1)));
    } else if (dot != text.npos) {
      TUTTI_RETURN_IF_ERROR(read_counts(text.substr(dot + 1)));
      const bool is_misfit = is_drawn(case_.counts.pattern) && !fits(case_.counts, case_.problem());
      if (is_misfit) return wrong(Part::bytes, "others: " + misfit(case_.counts, case_.problem()));
    }
    set_bytes(case_, *number);
    if (case_.bytes == *number) return check_drawn_in_place();
    return wrong(Part::bytes, fmt::format("whole elements in every block: '{}' is the nearest", bytes_part(case_)));
  }

  Status read_counts(std::string_view name) {
    if (!has_counts(case_.collective)) return wrong(Part::bytes, "a number of bytes, such as '1048576B'");
    Result<Counts> counts = counts_of_name(name);
    if (!counts.is_ok()) return error(Code::invalid_argument, "case id: {}", counts.status().message());
    case_.counts = std::move(counts).value();
    if (case_.counts.pattern != Pattern::equal) return {};
    return wrong(Part::bytes, "without '.equal', which is not named");
  }

  std::vector<std::string_view> parts_;
  Case case_;
};

}  // namespace

bool is_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

bool is_system(std::string_view text) {
  const std::string_view backend = backend_of(text), instance = instance_of(text);
  if (!is_name(backend) || !are_settings(instance.substr(backend.size()))) return false;
  const std::string_view part = text.substr(instance.size());
  return part.empty() || part == kTwin || (is_composition(text) && composition_of(text).size() + 1 == part.size());
}

std::string_view to_string(RanksAs ranks_as) { return ranks_as->name; }
std::string_view to_string(Placement placement) { return name_in(kPlacements, placement); }
std::string_view to_string(Cadence cadence) { return name_in(kCadences, cadence); }

Result<RanksAs> parse_ranks_as(std::string_view name) {
  std::vector<std::string> names;
  for (const RanksAs kind : rank_kinds()) {
    if (is_same_name(name, kind->name)) return kind;
    names.emplace_back(kind->name);
  }
  return unknown_name("ranks-as", name, names);
}
Result<Placement> parse_placement(std::string_view name) { return parse_kind("placement", name, kPlacements); }
Result<Buffers> parse_buffers(std::string_view name) {
  static const std::array kBuffers{Named{Buffers::private_, to_string(Buffers::private_)},
                                   Named{Buffers::shared, to_string(Buffers::shared)}};
  return parse_kind("buffers", name, kBuffers);
}
Result<Cadence> parse_cadence(std::string_view name) { return parse_kind("cadence", name, kCadences); }

std::string_view dtype_name(const Cell& cell) { return has_data(cell.collective) ? to_string(cell.dtype) : kNone; }
std::string_view placement_name(const Cell& cell) {
  if (!has_data(cell.collective)) return kNone;
  return to_string(cell.is_in_place ? Placement::in : Placement::out);
}
std::string_view buffers_name(const Cell& cell) { return has_data(cell.collective) ? to_string(cell.buffers) : kNone; }

std::string_view counts_name(const Cell& cell) { return has_counts(cell.collective) ? cell.counts.name : kNone; }

std::string pair_name(const Cell& cell) {
  if (!has_pairs(cell.collective)) return {};
  if (!cell.pairing.is_one_pair()) return std::string(kNeighbours);
  return fmt::format("{}-{}", cell.pairing.first, cell.pairing.second);
}

std::string case_id(const Case& one) {
  std::string root_part = is_rooted(one.collective) ? fmt::format("root{}", one.root) : std::string(kNone);
  if (one.pairing.is_one_pair()) root_part = "pair" + pair_name(one);
  return fmt::format("{}/{}.{}/{}/{}/{}/{}/{}/{}/{}/{}/{}", to_string(one.collective), one.backend, one.algorithm,
                     one.transport, dtype_name(one), to_string(one.op), ranks_part(one), root_part, bytes_part(one),
                     placement_name(one), buffers_name(one), to_string(one.cadence));
}

Case within_group(Case one) {
  one.ranks = one.ranks_of_call();
  one.among = {};
  return one;
}

CellBlocks blocks_of(const Cell& cell) {
  return {cell.problem(), cell.counts, cell.bytes / static_cast<std::int64_t>(size_of(cell.dtype))};
}

void set_bytes(Cell& cell, std::int64_t bytes) {
  const auto element_bytes = static_cast<std::int64_t>(size_of(cell.dtype));
  cell.bytes = bytes;
  if (cell.counts.pattern == Pattern::equal) {
    cell.count = count_for_bytes(cell.problem(), bytes, size_of(cell.dtype));
    cell.bytes = buffer_bytes(cell.problem(), cell.count, size_of(cell.dtype));
  } else if (cell.counts.pattern != Pattern::file) {
    constexpr std::int64_t kMostGap = 8;  // before each block of `random`
    const std::int64_t rows =
        is_drawn(cell.counts.pattern) ? cell.ranks_of_call() : 1;  // all of them are counted together
    const std::int64_t most =
        std::numeric_limits<std::int64_t>::max() / element_bytes / rows - kMostGap * cell.ranks_of_call();
    cell.bytes = std::clamp<std::int64_t>(bytes / element_bytes, bytes > 0 ? 1 : 0, most) * element_bytes;
    cell.count = blocks_of(cell).largest();
  } else if (!cell.counts.numbers.empty()) {
    const CellBlocks blocks = blocks_of(cell);
    cell.bytes = blocks.most_elements() * element_bytes;
    cell.count = blocks.largest();
  }
}

std::int64_t largest_buffer_bytes(const Cell& cell) {
  if (has_window(cell.collective)) {
    std::int64_t bytes = 0;
    const bool overflows = __builtin_mul_overflow(cell.bytes, std::int64_t{cell.pairing.window}, &bytes);
    return overflows ? std::numeric_limits<std::int64_t>::max() : bytes;
  }
  if (cell.counts.pattern != Pattern::random && !is_drawn(cell.counts.pattern)) return cell.bytes;
  const CellBlocks blocks = blocks_of(cell);
  Count most = 0;
  for (int rank = 0; rank < cell.ranks_of_call(); ++rank) {
    most = std::max({most, blocks.input_elements(rank), blocks.output_elements(rank)});
  }
  return most * static_cast<std::int64_t>(size_of(cell.dtype));
}

Status complete_counts(Case& one, const std::vector<Counts>& known) {
  if (one.counts.pattern != Pattern::file) return {};
  const auto found = std::ranges::find(known, one.counts.name, &Counts::name);
  if (found == known.end()) {
    return error(Code::invalid_argument, "case id '{}': its counts are those of a file: name it with --counts FILE",
                 case_id(one));
  }
  if (!fits(*found, one.problem())) {
    return error(Code::invalid_argument, "case id '{}': the file has {}, which is not one for each of {}", case_id(one),
                 counted(found->numbers.size(), "count"), counted(one.ranks, "rank"));
  }
  const std::int64_t bytes = one.bytes;
  one.counts = *found;
  set_bytes(one, bytes);
  if (one.bytes == bytes) return {};
  return error(Code::invalid_argument, "case id: the counts of its file are {} bytes, not {}", one.bytes, bytes);
}

Result<Case> parse_case_id(std::string_view id) {
  std::vector<std::string_view> parts = split(id, '/');
  if (parts.size() != kParts.size()) {
    return error(Code::invalid_argument, "case id '{}' has {}, not {}: {}\nan example: {}", shown(id),
                 counted(parts.size(), "part"), kParts.size(), fmt::join(kParts, "/"), kExample);
  }
  TUTTI_ASSIGN_OR_RETURN(Case one, IdReader(std::move(parts)).read());
  // A name may be written in several ways, an id only in one: that of the rows.
  if (std::string canonical = case_id(one); canonical != id) {
    return error(Code::invalid_argument, "case id '{}': did you mean '{}'?", shown(id), canonical);
  }
  return one;
}

}  // namespace tutti::harness::cases
