// SPDX-License-Identifier: Apache-2.0
#include "harness/report/ranks.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/text/counted.h"

namespace tutti::harness::report {
namespace {

using Json = nlohmann::ordered_json;

double percent(std::int64_t part, std::int64_t all) {
  return all > 0 ? 100 * static_cast<double>(part) / static_cast<double>(all) : 0;
}

std::string wait_text(double us) { return us > 0 ? fmt::format("{:.2f}", us) : "-"; }
Json wait_or_null(double us) { return us > 0 ? Json(us) : Json(); }

std::string where(const RankResult& one) {
  return one.host.empty() ? fmt::format("rank {}", one.rank) : fmt::format("rank {} on {}", one.rank, one.host);
}

}  // namespace

std::string straggler_lines(std::span<const RankResult> ranks) {
  std::string lines;
  for (const RankResult& one : ranks) {
    if (one.is_late) {
      lines += fmt::format(
          "# straggler, P={}: {} came last to {} of {} ({:.0f} % if all ranks were alike), and the others waited for "
          "it "
          "{:.1f} % of the time\n",
          ranks.size(), where(one), one.came_last, counted(one.samples, "sample"),
          100.0 / static_cast<double>(ranks.size()), 100 * one.waited_share);
    }
    if (one.is_slow) {
      lines += fmt::format(
          "# straggler, P={}: {} ended last in {} of {}, and the others had ended before half of their time\n",
          ranks.size(), where(one), one.ended_last, counted(one.ended_samples, "sample"));
    }
  }
  return lines;
}

std::string ranks_table(std::span<const RankResult> ranks) {
  if (ranks.empty()) return {};
  std::size_t widest = std::string_view("host").size();
  for (const RankResult& one : ranks) widest = std::max(widest, one.host.size());
  std::string text = fmt::format(
      "# ranks of P={} over all cells, worst first: {}\n#  rank  {:<{}}  came last  others waited  median (us)    p95 "
      "(us)  "
      "ended last  own time\n",
      ranks.size(), counted(ranks.front().samples, "sample"), "host", widest);
  for (const RankResult& one : ranks) {
    const std::string ended =
        one.ended_samples > 0 ? fmt::format("{:.1f} %", percent(one.ended_last, one.ended_samples)) : "-";
    const std::string own = one.own_ratio > 0 ? fmt::format("{:+.1f} %", 100 * (one.own_ratio - 1)) : "-";
    text += fmt::format("#  {:>4}  {:<{}}  {:>7.1f} %  {:>11.1f} %  {:>11}  {:>10}  {:>10}  {:>8}{}\n", one.rank,
                        one.host.empty() ? "-" : one.host, widest, percent(one.came_last, one.samples),
                        100 * one.waited_share, wait_text(one.median_us), wait_text(one.p95_us), ended, own,
                        one.is_late || one.is_slow ? "  <- straggler" : "");
  }
  return text;
}

std::string ranks_json(std::span<const RankResult> ranks) {
  Json list = Json::array();
  for (const RankResult& one : ranks) {
    list.push_back({{"rank", one.rank},
                    {"host", one.host},
                    {"samples", one.samples},
                    {"came_last", one.came_last},
                    {"waited_us", one.waited_us},
                    {"waited_share", one.waited_share},
                    {"waited_median_us", wait_or_null(one.median_us)},
                    {"waited_p95_us", wait_or_null(one.p95_us)},
                    {"ended_samples", one.ended_samples},
                    {"ended_last", one.ended_last},
                    {"own_ratio", one.own_ratio > 0 ? Json(one.own_ratio) : Json()},
                    {"comes_late", one.is_late},
                    {"ends_late", one.is_slow}});
  }
  return list.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tutti::harness::report
