// SPDX-License-Identifier: Apache-2.0
#include "harness/gate/report.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/machine/machine.h"
#include "harness/statistics/statistics.h"
#include "harness/text/counted.h"
#include "harness/text/escapes.h"
#include "harness/text/json_writer.h"
#include "harness/text/text.h"
#include "impl/types/printable.h"

namespace tutti::harness::gate {
namespace {

std::string number(const std::optional<double>& value) { return value ? fmt::format("{:.3f}", *value) : "-"; }

std::string median_us(const std::vector<double>& times) {
  if (times.empty()) return "-";
  const double median = *summarise(times).median;
  return fmt::format("{:.{}f}", median, median < 10 ? 3 : median < 100 ? 2 : 1);
}

std::string interval_text(const Judgement& judgement) {
  return judgement.low ? fmt::format("{:.3f} to {:.3f}", *judgement.low, *judgement.high) : "-";
}

std::string floor_text(const Judgement& judgement) {
  return judgement.floor ? fmt::format("{:.1f}", 100 * *judgement.floor) : "-";
}

std::string_view word_of(const GateReport& report, Opinion opinion) {
  const bool is_comparison = report.kind == GateReport::Kind::compare;
  return is_comparison && opinion == Opinion::invalid ? "not comparable" : to_string(opinion);
}

std::string_view tool_of(const GateReport& report) {
  switch (report.kind) {
    case GateReport::Kind::compare:
      return "compare";
    case GateReport::Kind::guidelines:
      return "guidelines";
    case GateReport::Kind::tune:
      return "tune";
    case GateReport::Kind::gate:
      break;
  }
  return "gate";
}

/// What the times of the two sides are called.
struct SideWords {
  std::string_view other, mine, before_other;
};
SideWords words_of(const GateReport& report) {
  if (report.kind == GateReport::Kind::guidelines) return {"instead", "native", "instead"};
  if (report.kind == GateReport::Kind::tune) return {"other", "table", "other"};
  return {"other", "this", "was"};
}

/// What the interval is made of: pairs of launches, or launches of this side and of the other.
std::string measured_text(const GateReport& report, const Evidence& evidence) {
  if (report.kind != GateReport::Kind::compare) {
    return fmt::to_string(evidence.log_ratios.size() + evidence.confirmation.size());
  }
  return fmt::format("{}+{}", evidence.other_us.size(), evidence.this_us.size());
}

/// The reason, and what disturbed it.
std::string why_of(const GateCell& cell) {
  const std::string disturbed = disturbance_text(cell.evidence);
  const std::string& reason = cell.judgement.reason;
  return reason.empty() || disturbed.empty() ? reason + disturbed : fmt::format("{}; {}", reason, disturbed);
}

/// Whether the ratio is another one than that of the two times that stand beside it.
bool is_no_quotient(const GateCell& cell) {
  const Evidence& evidence = cell.evidence;
  if (!cell.judgement.ratio || evidence.this_us.empty() || evidence.other_us.empty()) return false;
  const double quotient = *summarise(evidence.this_us).median / *summarise(evidence.other_us).median;
  constexpr double kAlike = 1.05;
  return quotient > *cell.judgement.ratio * kAlike || quotient * kAlike < *cell.judgement.ratio;
}

/// Explains such ratios; empty if there is none.
std::string ratio_note(const GateReport& report) {
  const auto cells = std::ranges::count_if(report.cells, is_no_quotient);
  if (cells == 0) return {};
  const bool is_comparison = report.kind == GateReport::Kind::compare;
  return fmt::format(
      "ratio: the middle of the ratios of {}; in {} it is not the quotient of the times, each of which "
      "is the median of all launches of its side",
      is_comparison ? "every launch to every one of the other side" : "launches in pairs, in turn",
      counted(cells, "cell"));
}

/// One sentence: what was found of a cell, its numbers first.
std::string sentence(const GateReport& report, const GateCell& cell) {
  const Judgement& found = cell.judgement;
  std::string text(to_string(found.opinion));
  if (found.ratio) {
    text += fmt::format(": {} us, {} {} us; ratio {:.3f}, {:.0f} % interval {:.3f} to {:.3f}, floor {:.1f} %, {} pairs",
                        median_us(cell.evidence.this_us), words_of(report).before_other,
                        median_us(cell.evidence.other_us), *found.ratio, 100 * kGateConfidence, *found.low, *found.high,
                        100 * *found.floor, cell.evidence.log_ratios.size() + cell.evidence.confirmation.size());
  }
  const std::string why = why_of(cell);
  return why.empty() ? text : text + "; " + why;
}

/// The element that a case has beside its name; null: it passed.
const char* junit_element(const GateReport& report, Opinion opinion) {
  if (opinion == Opinion::slower || opinion == Opinion::wrong) return "failure";
  if (opinion == Opinion::missing || opinion == Opinion::invalid) return "error";
  if (opinion == Opinion::undecided) return report.unfinished.empty() ? "skipped" : "error";
  if (opinion == Opinion::too_short) return report.requires_times ? "error" : "skipped";
  return nullptr;
}

/// Cases with this element.
std::ptrdiff_t junit_count(const GateReport& report, std::string_view element) {
  return std::ranges::count_if(report.cells, [&](const GateCell& cell) {
    const char* const has = junit_element(report, cell.judgement.opinion);
    return has != nullptr && has == element;
  });
}

std::string junit_case(const GateReport& report, const GateCell& cell) {
  const Opinion opinion = cell.judgement.opinion;
  const char* const element = junit_element(report, opinion);
  const std::string text = xml_escaped(sentence(report, cell));
  std::string body = fmt::format("    <testcase classname=\"tutti.{}.{}\" name=\"{}\">\n", tool_of(report),
                                 xml_escaped(cell.evidence.collective), xml_escaped(cell.evidence.cell));
  if (element == nullptr) {
    body += fmt::format("      <system-out>{}</system-out>\n", text);
  } else {
    const bool is_skipped = element == std::string_view("skipped");
    const std::string type = is_skipped ? "" : fmt::format(" type=\"{}\"", to_string(opinion));
    body += fmt::format("      <{0} message=\"{1}\"{2}>against {3}, seed {4}; again: {5}</{0}>\n", element, text, type,
                        xml_escaped(report.other), report.seed, xml_escaped(report.command));
  }
  return body + "    </testcase>\n";
}

/// The gravest first, otherwise in the order of the suite.
std::vector<const GateCell*> by_gravity(const GateReport& report) {
  std::vector<const GateCell*> order;
  for (const GateCell& cell : report.cells) order.push_back(&cell);
  std::ranges::stable_sort(order, std::greater(), [](const GateCell* cell) { return cell->judgement.opinion; });
  return order;
}

/// Nothing in it ends a cell of a table, or is a link, a picture, an element or code: a baseline may be of anybody.
std::string markdown_cell(std::string_view text) {
  constexpr std::string_view kSpecial = "\\|`<>[]&*";
  std::string escaped;
  for (const char c : text) {
    if (kSpecial.find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return one_line(std::move(escaped));
}

}  // namespace

int GateReport::count(Opinion opinion) const {
  return static_cast<int>(
      std::ranges::count_if(cells, [&](const GateCell& cell) { return cell.judgement.opinion == opinion; }));
}

std::string counts_text(const GateReport& report) {
  std::string text;
  const auto opinions = all_opinions();
  for (auto gravest = opinions.rbegin(); gravest != opinions.rend(); ++gravest) {
    if (const int count = report.count(*gravest); count > 0) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, word_of(report, *gravest));
    }
  }
  return report.unfinished.empty() ? text : fmt::format("{}; not finished: {}", text, report.unfinished);
}

std::string gate_table(const GateReport& report) {
  std::size_t width = 4;
  for (const GateCell& cell : report.cells) width = std::max(width, cell.evidence.cell.size());
  std::string text =
      fmt::format("# {}: {} against {}\n", tool_of(report), one_line(report.mine), one_line(report.other));
  const auto [other, mine, _] = words_of(report);
  const std::string other_title = fmt::format("{} (us)", other);
  const std::string mine_title = fmt::format("{} (us)", mine);
  const std::size_t other_width = std::max<std::size_t>(10, other_title.size());
  const std::size_t mine_width = std::max<std::size_t>(10, mine_title.size());
  text +=
      fmt::format("# {:<{}}  {:>{}}  {:>{}}  {:>6}  {:>16}  {:>6}  {:>6}  verdict\n", "cell", width, other_title,
                  other_width, mine_title, mine_width, "ratio", fmt::format("{:.0f} % interval", 100 * kGateConfidence),
                  "floor%", report.kind == GateReport::Kind::compare ? "runs" : "pairs");
  for (const GateCell& cell : report.cells) {
    const Judgement& found = cell.judgement;
    text += fmt::format("  {:<{}}  {:>{}}  {:>{}}  {:>6}  {:>16}  {:>6}  {:>6}  {}\n", cell.evidence.cell, width,
                        median_us(cell.evidence.other_us), other_width, median_us(cell.evidence.this_us), mine_width,
                        number(found.ratio), interval_text(found), floor_text(found),
                        measured_text(report, cell.evidence), word_of(report, found.opinion));
    if (const std::string why = why_of(cell); !why.empty()) text += fmt::format("#   {}\n", one_line(why));
  }
  if (const std::string note = ratio_note(report); !note.empty()) text += fmt::format("# {}\n", note);
  if (!report.counted.empty()) text += fmt::format("# counted on both sides: {}\n", report.counted);
  for (const std::string& remark : report.remarks) text += fmt::format("# {}\n", one_line(remark));
  return printable(text) +
         fmt::format("# {}: {}\n", counted(report.cells.size(), "cell"), printable(one_line(counts_text(report))));
}

std::string gate_junit(const GateReport& report) {
  std::string text = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
      "  <testsuite name=\"tutti {}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n",
      tool_of(report), report.cells.size(), junit_count(report, "failure"), junit_count(report, "error"),
      junit_count(report, "skipped"));
  for (const GateCell& cell : report.cells) text += junit_case(report, cell);
  std::string told = report.unfinished.empty() ? "" : fmt::format("not finished: {}\n", report.unfinished);
  if (!report.counted.empty()) told += fmt::format("counted on both sides: {}\n", report.counted);
  for (const std::string& remark : report.remarks) told += remark + "\n";
  if (!told.empty()) text += fmt::format("    <system-out>{}</system-out>\n", xml_escaped(told));
  return text + "  </testsuite>\n</testsuites>\n";
}

std::string gate_markdown(const GateReport& report) {
  std::string text = fmt::format("### tutti {}: {}\n\n{} against {}, {}, seed {}.\n\n", tool_of(report),
                                 markdown_cell(counts_text(report)),
                                 report.kind == GateReport::Kind::guidelines ? "Each native call" : "This build",
                                 markdown_cell(report.other), counted(report.cells.size(), "cell"), report.seed);
  text += fmt::format(
      "| verdict | cell | {} (us) | {} (us) | ratio | {:.0f} % interval | floor (%) | why |\n"
      "| --- | --- | ---: | ---: | ---: | --- | ---: | --- |\n",
      words_of(report).other, words_of(report).mine, 100 * kGateConfidence);
  for (const GateCell* cell : by_gravity(report)) {
    const Judgement& found = cell->judgement;
    const bool is_bad = found.opinion == Opinion::slower || found.opinion == Opinion::wrong;
    text += fmt::format("| {0}{1}{0} | `{2}` | {3} | {4} | {5} | {6} | {7} | {8} |\n", is_bad ? "**" : "",
                        to_string(found.opinion), cell->evidence.cell, median_us(cell->evidence.other_us),
                        median_us(cell->evidence.this_us), number(found.ratio), interval_text(found), floor_text(found),
                        markdown_cell(why_of(*cell)));
  }
  if (const std::string note = ratio_note(report); !note.empty()) text += fmt::format("\nNote: {}.\n", note);
  if (!report.counted.empty()) text += fmt::format("\nCounted on both sides: {}.\n", report.counted);
  for (const std::string& remark : report.remarks) text += fmt::format("\nNote: {}.\n", markdown_cell(remark));
  return printable(text + fmt::format("\nAgain: `{}`\n", one_line(report.command)));
}

std::string gate_json(const GateReport& report) {
  using Document = nlohmann::ordered_json;
  const auto or_null = [](const std::optional<double>& value) { return value ? Document(*value) : Document(); };
  const auto median = [](const std::vector<double>& times) {
    return times.empty() ? Document() : Document(*summarise(times).median);
  };
  Document document{{"schema_version", 1},
                    {"kind", tool_of(report)},
                    {"command", report.command},
                    {"seed", report.seed},
                    {"this", report.mine},
                    {"other", report.other},
                    {"machine", report.host ? Document{{"hostname", *report.host}}
                                            : Document::parse(machine_to_json(describe_machine()), nullptr, false)},
                    {"finished", report.unfinished.empty()},
                    {"unfinished", report.unfinished},
                    {"counts", Document::object()},
                    {"counted", report.counted},
                    {"remarks", report.remarks},
                    {"cells", Document::array()}};
  for (const Opinion opinion : all_opinions()) {
    if (const int count = report.count(opinion); count > 0) document["counts"][word_of(report, opinion)] = count;
  }
  for (const GateCell& cell : report.cells) {
    const Judgement& found = cell.judgement;
    document["cells"].push_back({{"cell", cell.evidence.cell},
                                 {"collective", cell.evidence.collective},
                                 {"bytes", cell.evidence.bytes},
                                 {"verdict", word_of(report, found.opinion)},
                                 {"ratio", or_null(found.ratio)},
                                 {"low", or_null(found.low)},
                                 {"high", or_null(found.high)},
                                 {"floor", or_null(found.floor)},
                                 {"reason", why_of(cell)},
                                 {"this_us", median(cell.evidence.this_us)},
                                 {"other_us", median(cell.evidence.other_us)},
                                 {"this_launches", cell.evidence.this_us.size()},
                                 {"other_launches", cell.evidence.other_us.size()}});
    if (cell.evidence.this_case.empty()) continue;
    document["cells"].back()["this_case"] = cell.evidence.this_case;
    document["cells"].back()["other_case"] = cell.evidence.other_case;
  }
  return json_text(document, 2) + "\n";
}

}  // namespace tutti::harness::gate
