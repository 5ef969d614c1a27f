// SPDX-License-Identifier: Apache-2.0
#include "harness/machine/process_age.h"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <string>
#include <system_error>
#include <unistd.h>

#include "harness/machine/tree.h"

namespace tutti::harness::machine {

std::optional<double> process_age_s() {
  const std::optional<std::int64_t> ticks = start_ticks_in(Tree("/").text("proc/self/stat"));
  timespec now{};
  const long ticks_in_a_second = sysconf(_SC_CLK_TCK);
  if (!ticks || ticks_in_a_second <= 0 || clock_gettime(CLOCK_BOOTTIME, &now) != 0) return {};
  const double now_s = static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  return std::max(0.0, now_s - static_cast<double>(*ticks) / static_cast<double>(ticks_in_a_second));
}

std::optional<std::int64_t> start_ticks_in(std::string_view stat) {
  constexpr int kFieldsBefore = 20;  // of the 22nd, after the name
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) return {};
  std::size_t at = name_end;
  for (int field = 0; field < kFieldsBefore; ++field) {
    at = stat.find(' ', at + 1);
    if (at == std::string_view::npos) return {};
  }
  std::int64_t ticks = 0;
  const char* const begin = stat.data() + at + 1;
  const auto [end, failure] = std::from_chars(begin, stat.data() + stat.size(), ticks);
  if (failure != std::errc() || end == begin) return {};
  return ticks;
}

}  // namespace tutti::harness::machine
