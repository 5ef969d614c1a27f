// SPDX-License-Identifier: Apache-2.0
#include "harness/record/rank_tally.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include "harness/statistics/statistics.h"
#include "harness/text/json_reader.h"

namespace tutti::harness::record {
namespace {

using embed::Arrivals;
using embed::RankArrivals;
using Json = nlohmann::json;

Json json_of(const Arrivals& arrivals) {
  Json last = Json::array(), waited = Json::array();
  for (const RankArrivals& one : arrivals.ranks) {
    last.push_back(one.last);
    waited.push_back(one.waited);
  }
  return {{"operations", arrivals.operations}, {"time", arrivals.time}, {"last", last}, {"waited", waited}};
}

/// To be called in what read_json calls.
Result<Arrivals> arrivals_of(const Json& json) {
  Arrivals arrivals;
  const auto last = json.at("last").get<std::vector<std::int64_t>>();
  const auto waited = json.at("waited").get<std::vector<double>>();
  arrivals.operations = json.at("operations").get<std::int64_t>();
  arrivals.time = json.at("time").get<double>();
  if (last.size() != waited.size())
    return error(Code::invalid_argument, "{} ranks came last, and {} were waited for", last.size(), waited.size());
  for (std::size_t rank = 0; rank < last.size(); ++rank)
    arrivals.ranks.push_back({.last = last[rank], .waited = waited[rank]});
  return arrivals;
}

Json json_of(const std::vector<LogHistogram>& waits) {
  Json list = Json::array();
  for (const LogHistogram& one : waits) {
    Json bins = Json::array();
    for (const auto& [bin, count] : one.bins()) bins.push_back({bin, count});
    list.push_back(std::move(bins));
  }
  return list;
}

/// To be called in what read_json calls.
Result<std::vector<LogHistogram>> waits_of(const Json& json) {
  std::vector<LogHistogram> waits;
  for (const auto& bins : json.get<std::vector<std::vector<std::pair<int, std::int64_t>>>>()) {
    TUTTI_ASSIGN_OR_RETURN(LogHistogram one, LogHistogram::from_bins({bins.begin(), bins.end()}));
    waits.push_back(std::move(one));
  }
  return waits;
}

bool fits(std::size_t ranks, std::size_t others) { return ranks == 0 || others == 0 || ranks == others; }

}  // namespace

void RankTally::add_stream(std::span<const std::vector<double>> each_us, double apart_us, bool are_alike) {
  if (each_us.empty()) return;
  std::vector<double> now_us(each_us.size());
  for (std::size_t operation = 0; operation < each_us.front().size(); ++operation) {
    const std::vector<double> came_us = now_us;
    std::vector<double> took_us;
    for (std::size_t rank = 0; rank < each_us.size(); ++rank) {
      took_us.push_back(each_us[rank][operation]);
      now_us[rank] += took_us.back();
    }
    count({.came_us = came_us,
           .took_us = took_us,
           .all_us = std::ranges::max(now_us) - std::ranges::max(came_us),
           .apart_us = apart_us},
          are_alike);
  }
}

void RankTally::add(std::span<const Sample> samples, double apart_us, bool are_alike) {
  for (const Sample& one : samples) {
    const std::size_t ranks = one.rank_us.size();
    if (!one.is_of_state || ranks == 0 || one.rank_arrived_us.size() != ranks) continue;
    std::vector<double> took_us;
    for (const double us : one.rank_us) took_us.push_back(us * one.operations);
    count({.came_us = one.rank_arrived_us,
           .took_us = took_us,
           .all_us = one.global_us * one.operations,
           .apart_us = apart_us},
          are_alike);
  }
}

void RankTally::count(const Times& times, bool are_alike) {
  const auto last = came.add(times.came_us, times.all_us, times.apart_us);
  waits.resize(came.ranks.size());
  if (last) waits[static_cast<std::size_t>(last->rank)].add(last->waited);
  if (!are_alike) return;
  const std::size_t ranks = times.took_us.size();
  std::vector<double> ends_us;
  own_us.resize(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    ends_us.push_back(times.came_us[rank] + times.took_us[rank]);
    own_us[rank] += times.took_us[rank];
  }
  ended.add(ends_us, times.all_us, times.apart_us);
  middle_us += median_of({times.took_us.begin(), times.took_us.end()});
}

Status RankTally::add(const RankTally& other) {
  if (!fits(came.ranks.size(), other.came.ranks.size()) || !fits(ended.ranks.size(), other.ended.ranks.size())) {
    return error(Code::invalid_argument, "what {} ranks came to beside what {} came to", other.came.ranks.size(),
                 came.ranks.size());
  }
  came.add(other.came);
  waits.resize(came.ranks.size());
  for (std::size_t rank = 0; rank < other.waits.size(); ++rank) waits[rank].add(other.waits[rank]);
  ended.add(other.ended);
  own_us.resize(std::max(own_us.size(), other.own_us.size()));
  for (std::size_t rank = 0; rank < other.own_us.size(); ++rank) own_us[rank] += other.own_us[rank];
  middle_us += other.middle_us;
  return {};
}

std::string RankTally::json() const {
  return Json{{"came", json_of(came)},
              {"waits", json_of(waits)},
              {"ended", json_of(ended)},
              {"own_us", own_us},
              {"middle_us", middle_us}}
      .dump();
}

Result<RankTally> RankTally::from_json(std::string_view text) {
  return read_json(Code::invalid_argument, "what ranks came to", text, [](const Json& json) -> Result<RankTally> {
    RankTally tally;
    TUTTI_ASSIGN_OR_RETURN(tally.came, arrivals_of(json.at("came")));
    TUTTI_ASSIGN_OR_RETURN(tally.waits, waits_of(json.at("waits")));
    TUTTI_ASSIGN_OR_RETURN(tally.ended, arrivals_of(json.at("ended")));
    tally.own_us = json.at("own_us").get<std::vector<double>>();
    tally.middle_us = json.at("middle_us").get<double>();
    const bool fit = fits(tally.came.ranks.size(), tally.ended.ranks.size()) &&
                     tally.own_us.size() == tally.ended.ranks.size() && tally.waits.size() == tally.came.ranks.size();
    if (!fit) return error(Code::invalid_argument, "what ranks came to is of different numbers of ranks");
    return tally;
  });
}

std::vector<RankResult> rank_results(const RankTally& tally, std::span<const std::string> hosts) {
  constexpr double kMedian = 0.5, kMost = 0.95;
  std::vector<embed::Straggler> ends(tally.came.ranks.size());
  for (const embed::Straggler& one : stragglers_of(tally.ended)) ends[static_cast<std::size_t>(one.rank)] = one;
  std::vector<RankResult> reports;
  for (const embed::Straggler& one : stragglers_of(tally.came)) {
    const auto rank = static_cast<std::size_t>(one.rank);
    RankResult report{.rank = one.rank,
                      .host = rank < hosts.size() ? hosts[rank] : std::string(),
                      .samples = tally.came.operations,
                      .came_last = one.last,
                      .waited_us = tally.came.ranks[rank].waited,
                      .waited_share = one.share,
                      .median_us = tally.waits[rank].quantile(kMedian),
                      .p95_us = tally.waits[rank].quantile(kMost),
                      .ended_samples = tally.ended.operations,
                      .ended_last = ends[rank].last,
                      .is_late = one.is_one,
                      .is_slow = ends[rank].is_one && ends[rank].share > kSlowShare};
    if (rank < tally.own_us.size() && tally.middle_us > 0) report.own_ratio = tally.own_us[rank] / tally.middle_us;
    reports.push_back(std::move(report));
  }
  std::ranges::stable_sort(reports, std::ranges::greater(),
                           [](const RankResult& one) { return one.is_late || one.is_slow; });
  return reports;
}

}  // namespace tutti::harness::record
