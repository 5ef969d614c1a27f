// SPDX-License-Identifier: Apache-2.0
#include "harness/machine/clock.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <vector>

#include <fmt/format.h>

namespace tutti::harness::machine {
namespace {

constexpr std::size_t kReadings = 10'000;
constexpr std::size_t kLeastShare = 100;  // a group has at least 1 / kLeastShare of the differences

struct Cluster {
  std::int64_t last = 0;
  double sum = 0;
  std::size_t count = 0;

  [[nodiscard]] double mean() const { return sum / static_cast<double>(count); }
};

std::int64_t read_ns(clockid_t clock) {
  timespec now = {};
  ::clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

std::int64_t monotonic_ns() { return read_ns(CLOCK_MONOTONIC); }

std::int64_t time_of_day_ns() { return read_ns(CLOCK_REALTIME); }

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                     utc.tm_hour, utc.tm_min, utc.tm_sec);
}

ClockFacts clock_facts_of(std::span<const std::int64_t> differences) {
  std::vector<std::int64_t> sorted(differences.begin(), differences.end());
  std::ranges::sort(sorted);
  std::vector<Cluster> groups;
  for (const std::int64_t value : sorted) {
    if (groups.empty() || value > groups.back().last + 1) groups.emplace_back();
    groups.back().last = value;
    groups.back().sum += static_cast<double>(value);
    ++groups.back().count;
  }
  std::erase_if(groups, [&](const Cluster& group) { return group.count * kLeastShare < sorted.size(); });
  ClockFacts facts{.read_ns = static_cast<double>(sorted[sorted.size() / 2])};
  for (std::size_t i = 1; i < groups.size(); ++i) {
    const double distance = groups[i].mean() - groups[i - 1].mean();
    facts.tick_ns = i == 1 ? distance : std::min(facts.tick_ns, distance);
  }
  return facts;
}

ClockFacts measure_clock() {
  std::vector<std::int64_t> differences(kReadings);
  std::int64_t before = monotonic_ns();
  for (std::int64_t& difference : differences) {
    const std::int64_t now = monotonic_ns();
    difference = now - before;
    before = now;
  }
  return clock_facts_of(differences);
}

}  // namespace tutti::harness::machine
