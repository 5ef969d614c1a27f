// SPDX-License-Identifier: Apache-2.0
#include "harness/train/report.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/text/counted.h"
#include "harness/text/json_reader.h"
#include "harness/text/json_writer.h"
#include "harness/train/network.h"
#include "impl/types/names.h"

namespace tutti::harness::train {
namespace {

/// Four digits.
std::string time_text(double us) { return us >= 1000 ? fmt::format("{:.0f}", us) : fmt::format("{:.4g}", us); }

std::string percent(double share) { return fmt::format("{:.1f}", share * 100); }

/// "bits" where every step had those of the serial sum, else the largest difference as a share of the bound.
std::string serial_text(const TrainRow& row) {
  if (row.serial_bits == row.steps) return "bits";
  return fmt::format("{:.2g} of bound", row.of_bound);
}

std::string numbers_text(const std::vector<double>& numbers) {
  std::vector<std::string> texts;
  for (const double number : numbers) texts.push_back(fmt::format("{:.4g}", number));
  return fmt::format("{}", fmt::join(texts, " "));
}

std::string name_of(const TrainRow& row) {
  return row.algorithm == "-" ? fmt::format("{} {}", row.backend, row.gradients)
                              : fmt::format("{} {} {}", row.backend, row.gradients, row.algorithm);
}

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n") == text.npos) return text;
  std::string cell = "\"";
  for (const char c : text) cell += c == '"' ? std::string("\"\"") : std::string(1, c == '\n' ? ' ' : c);
  return cell + '"';
}

std::string cell_of(const std::string& text) { return quoted(text); }
std::string cell_of(std::int64_t number) { return fmt::format("{}", number); }
std::string cell_of(bool is_so) { return is_so ? "yes" : "no"; }
std::string cell_of(double number) { return fmt::format("{:.6g}", number); }
std::string cell_of(const std::vector<double>& numbers) { return numbers_text(numbers); }

constexpr std::array<std::string_view, 9> kJobColumns{"ranks",   "ranks_as", "transport", "buffers",     "images",
                                                      "learned", "batch",    "epochs",    "bucket_bytes"};

std::string html(std::string_view text) {
  std::string out;
  for (const char c : shown(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// Of the page's pictures, in pixels.
constexpr double kWidth = 760, kHeight = 300, kLeft = 50, kBottom = 40, kTop = 12, kRight = 12;
constexpr std::array<std::string_view, 8> kColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                   "#e69f00", "#56b4e9", "#7f7f7f", "#000000"};

/// Curves of one job, over steps. What is no number has no point.
std::string curves(const std::vector<const TrainRow*>& rows) {
  double most = 0, steps = 1;
  for (const TrainRow* const row : rows) {
    for (const double loss : row->losses) most = std::isfinite(loss) ? std::max(most, loss) : most;
    steps = std::max(steps, static_cast<double>(row->steps));
  }
  most = most > 0 ? most * 1.05 : 1;
  const auto x_of = [&](double step) { return kLeft + step / steps * (kWidth - kLeft - kRight); };
  const auto y_of = [&](double loss) { return kTop + (1 - loss / most) * (kHeight - kTop - kBottom); };
  std::string svg = fmt::format(
      "<svg viewBox=\"0 0 {0:.0f} {1:.0f}\" role=\"img\" aria-label=\"loss over steps\">\n"
      "<path class=\"axis\" d=\"M{2:.1f} {3:.1f}V{4:.1f}H{5:.1f}\"/>\n",
      kWidth, kHeight, kLeft, kTop, y_of(0), kWidth - kRight);
  constexpr int kTicks = 4;
  for (int i = 0; i <= kTicks; ++i) {
    const double loss = most * i / kTicks, step = steps * i / kTicks;
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:.2f}</text>\n", kLeft - 6, y_of(loss) + 4,
                       loss);
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:.0f}</text>\n", x_of(step),
                       y_of(0) + 16, step);
  }
  svg +=
      fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">step</text>\n", x_of(steps / 2), kHeight - 4);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::string path;
    for (std::size_t j = 0; j < rows[i]->losses.size(); ++j) {
      const double loss = rows[i]->losses[j];
      if (!std::isfinite(loss)) continue;
      const double step = (static_cast<double>(j) + 0.5) * static_cast<double>(rows[i]->steps_of_loss);
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x_of(step), y_of(loss));
    }
    // Curves lie upon each other where all sums have the same bits: later ones are thinner.
    svg += fmt::format("<path fill=\"none\" stroke=\"{}\" stroke-width=\"{:.1f}\" d=\"{}\"><title>{}</title></path>\n",
                       kColours[i % kColours.size()], 1.2 + 0.8 * static_cast<double>(rows.size() - 1 - i), path,
                       html(name_of(*rows[i])));
  }
  svg += "</svg>\n<p class=\"legend\">";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    svg += fmt::format("<span><b style=\"color:{}\">&#9644;</b> {}</span> ", kColours[i % kColours.size()],
                       html(name_of(*rows[i])));
  }
  return svg + "</p>\n";
}

std::string table_of(const std::vector<const TrainRow*>& rows) {
  std::string text =
      "<table><tr><th>backend<th>gradients<th>algorithm<th>calls<th>step (us)<th>computing<th>communication"
      "<th>alone<th>share (%)<th>late (%)<th>hidden (%)<th>loss<th>right (%)<th>serial sum<th>verdict</tr>\n";
  for (const TrainRow* const row : rows) {
    text += fmt::format("<tr><td>{}<td>{}<td>{}", html(row->backend), html(row->gradients), html(row->algorithm));
    if (!row->skipped.empty()) {
      text += fmt::format("<td colspan=\"12\">skipped: {}</tr>\n", html(row->skipped));
      continue;
    }
    text += fmt::format("<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}", row->calls,
                        time_text(row->step_us), time_text(row->computing_us), time_text(row->communication_us),
                        time_text(row->alone_us));
    text += fmt::format("<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{:.3f}<td class=n>{}<td>{}<td>{}</tr>\n",
                        percent(row->share), percent(row->late),
                        row->gradients == to_string(Way::overlapped) ? percent(row->hidden) : "",
                        row->epoch_losses.empty() ? 0 : row->epoch_losses.back(), percent(row->accuracy),
                        serial_text(*row), html(row->wrong > 0 ? "wrong: " + row->reason : "ok"));
  }
  return text + "</table>\n";
}

constexpr std::string_view kStyle =
    "body{font:15px/1.45 sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#1a1a1a;background:#fff}"
    "table{border-collapse:collapse;font-size:13px}th,td{padding:.25em .6em;border-bottom:1px solid "
    "#ddd;text-align:left}"
    "td.n{text-align:right;font-variant-numeric:tabular-nums}svg{width:100%;max-width:760px;font:11px sans-serif}"
    ".axis{fill:none;stroke:#555}.legend span{margin-right:1.2em;white-space:nowrap}code{background:#f3f3f3}";

}  // namespace

std::string_view verdict_of(const TrainRow& row) {
  if (!row.skipped.empty()) return "skipped";
  return row.wrong > 0 ? "wrong" : "ok";
}

std::string heading_of(const TrainJob& job) {
  const std::int64_t of_rank = job.learned / job.ranks, batch = std::min<std::int64_t>(job.batch / job.ranks, of_rank);
  const std::int64_t steps = (of_rank + batch - 1) / batch;
  return fmt::format(
      "# train: {} {}, P={} {} over {}, {} buffers, {} a step on each rank, {} of {}\n"
      "# {} parameters: {} bytes of gradients; buckets of {} bytes\n"
      "# backend     gradients      algorithm           calls      step computing      comm     alone share  late "
      "hidden   "
      "loss  right  serial sum\n"
      "#                                                           (us)      (us)      (us)      (us)   (%)   (%)    "
      "(%)   "
      "        (%)\n",
      counted(job.learned, "digit"), shown(job.images), job.ranks, job.ranks_as, job.transport, job.buffers,
      counted(batch, "image"), counted(job.epochs, "epoch"), counted(steps, "step"), kParameters,
      kParameters * sizeof(float), job.bucket_bytes);
}

std::string line_of(const TrainRow& row) {
  const std::string names = fmt::format("  {:<11} {:<14} {:<18} ", row.backend, row.gradients, row.algorithm);
  if (!row.skipped.empty()) return fmt::format("{}skipped: {}\n", names, shown(row.skipped));
  return fmt::format(
      "{}{:>6} {:>9} {:>9} {:>9} {:>9} {:>5} {:>5} {:>6} {:>6.3f} {:>6}  {}, {}\n", names, row.calls,
      time_text(row.step_us), time_text(row.computing_us), time_text(row.communication_us), time_text(row.alone_us),
      percent(row.share), percent(row.late), row.gradients == to_string(Way::overlapped) ? percent(row.hidden) : "",
      row.epoch_losses.empty() ? 0 : row.epoch_losses.back(), percent(row.accuracy), serial_text(row), verdict_of(row));
}

std::string ending_of(const std::vector<TrainRow>& rows) {
  std::vector<std::pair<std::string, int>> curves;  // what rows have the same loss to four digits
  for (const TrainRow& row : rows) {
    if (!row.skipped.empty()) continue;
    const std::string curve = numbers_text(row.epoch_losses);
    const auto known = std::ranges::find(curves, curve, &std::pair<std::string, int>::first);
    if (known == curves.end()) {
      curves.emplace_back(curve, 1);
    } else {
      ++known->second;
    }
  }
  std::string text;
  for (const auto& [curve, count] : curves) {
    text += fmt::format("# loss by epoch, of {}: {}\n", counted(count, "row"), curve);
  }
  for (const TrainRow& row : rows) {
    if (row.wrong > 0) {
      text += fmt::format("# wrong: {}: {} of {}: {}\n", name_of(row), row.wrong, counted(row.steps, "step"),
                          shown(row.reason));
    }
    if (row.straggler >= 0) {
      text += fmt::format(
          "# straggler: {}: rank {} came last to the sums of {} of {}, and the others waited for it {:.1f} % of the "
          "time\n",
          name_of(row), row.straggler, row.straggler_last, counted(row.steps, "step"), 100 * row.straggler_share);
    }
    const auto bad = std::ranges::find_if_not(row.losses, [](double loss) { return std::isfinite(loss); });
    if (bad == row.losses.end()) continue;
    text += fmt::format("# {}: the loss is no number from step {} on: a smaller --rate learns\n", name_of(row),
                        (bad - row.losses.begin()) * row.steps_of_loss);
  }
  return text;
}

std::string csv_head() {
  std::string head = fmt::format("{}", fmt::join(kJobColumns, ","));
  visit_fields(std::type_identity<TrainRow>(), [&](const char* word, auto) { head += fmt::format(",{}", word); });
  return head + ",verdict\n";
}

std::string csv_line(const TrainResult& result) {
  const TrainJob& job = result.job;
  std::string line = fmt::format("{},{},{},{},{},{},{},{},{}", job.ranks, job.ranks_as, job.transport, job.buffers,
                                 quoted(job.images), job.learned, job.batch, job.epochs, job.bucket_bytes);
  visit_fields(std::type_identity<TrainRow>(),
               [&](const char*, auto member) { line += fmt::format(",{}", cell_of(result.row.*member)); });
  return fmt::format("{},{}\n", line, verdict_of(result.row));
}

std::string json_of(const TrainRecord& record) {
  nlohmann::ordered_json json{
      {"kind", "tutti train"},         {"version", record.version},
      {"command", record.command},     {"started", record.started},
      {"seed", record.seed},           {"machine", parse_json<nlohmann::ordered_json>(record.machine_json)},
      {"diagnosis", record.diagnosis}, {"rows", nlohmann::ordered_json::array()}};
  for (const auto& result : record.results) {
    const TrainJob& job = result.job;
    const TrainRow& row = result.row;
    nlohmann::ordered_json one{
        {"ranks", job.ranks},        {"ranks_as", job.ranks_as}, {"transport", job.transport},
        {"buffers", job.buffers},    {"images", job.images},     {"learned", job.learned},
        {"batch", job.batch},        {"epochs", job.epochs},     {"bucket_bytes", job.bucket_bytes},
        {"verdict", verdict_of(row)}};
    visit_fields(std::type_identity<TrainRow>(), [&](const char* word, auto member) { one[word] = row.*member; });
    json["rows"].push_back(std::move(one));
  }
  return json_text(json, 2) + "\n";
}

std::string page_of(const TrainRecord& record) {
  std::string text = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>tutti train</title>\n<style>{}</style>\n"
      "<h1>Training</h1>\n<p>{}, started {}, seed {}</p>\n<p><code>{}</code></p>\n",
      kStyle, html(record.version), html(record.started), record.seed, html(record.command));
  for (std::size_t i = 0; i < record.results.size();) {
    const TrainJob& job = record.results[i].job;
    std::vector<const TrainRow*> rows, drawn;
    for (; i < record.results.size() && record.results[i].job == job; ++i) {
      rows.push_back(&record.results[i].row);
      if (record.results[i].row.skipped.empty()) drawn.push_back(rows.back());
    }
    text += fmt::format("<h2>{} {} over {}</h2>\n<p>{} {}, {} images a step, {}; {} buffers, buckets of {} bytes</p>\n",
                        job.ranks, job.ranks_as, html(job.transport), job.learned, html("digits " + job.images),
                        job.batch, counted(job.epochs, "epoch"), job.buffers, job.bucket_bytes);
    if (!drawn.empty()) text += curves(drawn);
    text += table_of(rows);
  }
  if (!record.diagnosis.empty()) text += fmt::format("<p>Ended early: {}</p>\n", html(record.diagnosis));
  return text +
         "<p>Times are medians over steps. Communication is what is behind the backward pass of the last rank to get "
         "there; late is what the others wait for it; hidden is 1 - communication / the same calls alone. The serial "
         "sum is that of a run which computes the shares of all ranks one after the other.</p>\n</html>\n";
}

}  // namespace tutti::harness::train
