// SPDX-License-Identifier: Apache-2.0
#include "harness/machine/disturbance.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <string_view>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "harness/machine/clock.h"

namespace tutti::harness::machine {
namespace {

constexpr double kReadingTicks = 2;  ///< of the kernel's clock, by which a core's time may be wrong

double tick_s() {
  const long per_second = sysconf(_SC_CLK_TCK);
  return per_second > 0 ? 1.0 / static_cast<double>(per_second) : 0.01;
}

/// "cpu3 user nice system idle iowait irq softirq steal ...", in ticks; guests are in user and nice.
void add_line(CoresCounted& counted, std::istringstream numbers) {
  constexpr int kIdle = 3, kWaiting = 4, kSteal = 7;
  double value = 0;
  for (int column = 0; column <= kSteal && numbers >> value; ++column) {
    const double seconds = value * tick_s();
    counted.all_s += seconds;
    if (column == kSteal) counted.stolen_s += seconds;
    if (column != kIdle && column != kWaiting && column != kSteal) counted.busy_s += seconds;
  }
}

/// The number behind a word at the start of a line.
std::int64_t number_after(const std::string& text, std::string_view word) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(word)) return std::strtoll(line.c_str() + word.size(), nullptr, 10);
  }
  return 0;
}

}  // namespace

CoresCounted count_cores(const Tree& tree, const std::vector<int>& cores) {
  CoresCounted counted{.at_ns = monotonic_ns()};
  std::istringstream lines(tree.text("proc/stat"));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("cpu") || line.size() < 4 || line[3] == ' ') continue;
    char* end = nullptr;
    const auto core = static_cast<int>(std::strtol(line.c_str() + 3, &end, 10));
    if (std::ranges::find(cores, core) != cores.end()) add_line(counted, std::istringstream(std::string(end)));
  }
  // Whatever stops a group stops those in it.
  for (const auto& [controller, mount] : {std::pair{"", "sys/fs/cgroup"}, std::pair{"cpu", "sys/fs/cgroup/cpu"}}) {
    for (const std::string& folder : cgroup_folders(tree, controller, mount)) {
      counted.stopped += number_after(tree.text(folder + "/cpu.stat"), "nr_throttled ");
    }
  }
  double clocks_khz = 0;
  int known = 0;
  for (const int core : cores) {
    const std::string folder = fmt::format("sys/devices/system/cpu/cpu{}/", core);
    counted.hot += tree.number(folder + "thermal_throttle/core_throttle_count").value_or(0);
    const auto khz = tree.number(folder + "cpufreq/scaling_cur_freq");
    clocks_khz += static_cast<double>(khz.value_or(0));
    known += khz ? 1 : 0;
  }
  if (known > 0) counted.clock_khz = clocks_khz / known;
  return counted;
}

ThreadCounted count_this_thread() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return {.used_s = seconds(usage.ru_utime) + seconds(usage.ru_stime), .switches = usage.ru_nivcsw};
}

void add_thread(Watched& watched, const ThreadCounted& before, const ThreadCounted& after) {
  watched.used_s += after.used_s - before.used_s;
  watched.most_switches = std::max(watched.most_switches, after.switches - before.switches);
}

std::string disturbances_of(const Watched& watched) {
  const CoresCounted& before = watched.before;
  const CoresCounted& after = watched.after;
  const double all_s = after.all_s - before.all_s;
  const double elapsed_s = static_cast<double>(after.at_ns - before.at_ns) * 1e-9;
  const double others_s = after.busy_s - before.busy_s - watched.used_s;
  // Each core's times are read in ticks, before and after.
  const double cores = elapsed_s > 0 ? std::max(1.0, std::round(all_s / elapsed_s)) : 1;
  const double unsure_s = kReadingTicks * tick_s() * cores;
  const double switches = elapsed_s > 0 ? static_cast<double>(watched.most_switches) / elapsed_s : 0;
  const bool knows_clock = before.clock_khz.value_or(0) > 0 && after.clock_khz.has_value();
  std::string text;
  const auto see = [&](bool is_seen, std::string_view name) {
    if (is_seen) text += fmt::format("{}{}", text.empty() ? "" : "; ", name);
  };
  see(others_s - unsure_s > kMostOthers * all_s, "load");
  see(after.stolen_s - before.stolen_s > kMostStolen * all_s, "steal");
  const bool are_enough = watched.most_switches >= kLeastSwitches && switches > kMostSwitchesPerSecond;
  see(!watched.ranks_share_cores && are_enough, "switches");
  see(after.stopped > before.stopped, "quota");
  see(after.hot > before.hot, "heat");
  see(knows_clock && std::abs(*after.clock_khz / *before.clock_khz - 1) > kMostClockChange, "clock");
  return text;
}

}  // namespace tutti::harness::machine
