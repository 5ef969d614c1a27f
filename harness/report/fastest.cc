// SPDX-License-Identifier: Apache-2.0
#include "harness/report/fastest.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "harness/draw/svg.h"
#include "harness/text/counted.h"

namespace tutti::harness::report {
namespace {

constexpr double kWidth = 126, kHeight = 44;  // of a field
constexpr double kLeft = 96, kTop = 84, kMargin = 16;
constexpr double kLight = 0.84;

/// "8 B", "64 KiB".
std::string size_text(std::int64_t bytes) {
  constexpr std::array<const char*, 4> kUnits = {"B", "KiB", "MiB", "GiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.3g} {}", value, kUnits[unit]);
}

/// "0.58 us", "17 us", "3.9 ms".
std::string time_text(double us) {
  if (us >= 1e6) return fmt::format("{:.3g} s", us / 1e6);
  return us >= 1e3 ? fmt::format("{:.3g} ms", us / 1e3) : fmt::format("{:.3g} us", us);
}

/// How far ahead the fastest is: ", next 1.3x", or " = two_shot" of the same time. Empty where it is the only one.
std::string lead(const simulate::Forecast& forecast, std::size_t row) {
  constexpr double kSame = 1.005;
  const std::size_t fastest = forecast.fastest(row);
  const simulate::Forecast::Column* next = nullptr;
  for (std::size_t i = 0; i < forecast.columns.size(); ++i) {
    const simulate::Forecast::Column& one = forecast.columns[i];
    if (i != fastest && (next == nullptr || one.us[row] < next->us[row])) next = &one;
  }
  if (next == nullptr) return "";
  const double times = next->us[row] / std::max(forecast.best(row), 1e-9);
  return times < kSame ? " = " + next->algorithm : fmt::format(", next {:.3g}x", times);
}

}  // namespace

std::string fastest_svg(std::span<const simulate::Forecast> forecasts, const simulate::ForecastOf& what) {
  std::vector<std::string> names;
  std::set<std::int64_t> sizes;  // for other ranks a size is rounded to other bytes
  for (const simulate::Forecast& forecast : forecasts) {
    sizes.insert(forecast.bytes.begin(), forecast.bytes.end());
    for (const simulate::Forecast::Column& column : forecast.columns) {
      if (std::ranges::find(names, column.algorithm) == names.end()) names.push_back(column.algorithm);
    }
  }
  draw::Svg svg;
  svg.text({kMargin, 28},
           fmt::format("The fastest {} by ranks and size, predicted for machine {}", what.collective, what.machine),
           {.size = 16, .is_bold = true});
  svg.text({kMargin, 48},
           "Below each name: its time, and how many times as long the next algorithm takes, or which one takes as "
           "long. Nothing is measured.",
           {.colour = draw::kPale});
  const auto x_of = [&](std::int64_t bytes) {
    return kLeft + kWidth * static_cast<double>(std::distance(sizes.begin(), sizes.find(bytes)));
  };
  for (const std::int64_t bytes : sizes) {
    const std::string text = bytes > 0 || sizes.size() > 1 ? size_text(bytes) : std::string("no data");
    svg.text({x_of(bytes) + kWidth / 2, kTop - 10}, text, {.anchor = draw::Anchor::middle});
  }
  double y = kTop;
  for (const simulate::Forecast& forecast : forecasts) {
    svg.text({kLeft - 10, y + kHeight / 2 + 4}, counted(forecast.ranks, "rank"), {.anchor = draw::Anchor::end});
    for (std::size_t row = 0; row < forecast.bytes.size() && !forecast.columns.empty(); ++row) {
      const simulate::Forecast::Column& best = forecast.columns[forecast.fastest(row)];
      const auto index = static_cast<int>(std::ranges::find(names, best.algorithm) - names.begin());
      const double x = x_of(forecast.bytes[row]);
      svg.box({x + 1, y + 1, kWidth - 2, kHeight - 2},
              {.fill = draw::hue(index, static_cast<int>(names.size()), kLight), .round = 3});
      svg.text({x + kWidth / 2, y + 18}, best.algorithm,
               {.size = best.algorithm.size() > 14 ? 10.0 : 12.0, .anchor = draw::Anchor::middle, .is_bold = true});
      const std::string text = time_text(best.us[row]) + lead(forecast, row);
      svg.text({x + kWidth / 2, y + 34}, text, {.size = text.size() > 20 ? 8.5 : 11.0, .anchor = draw::Anchor::middle});
    }
    y += kHeight;
  }
  const double width = std::max(kLeft + kWidth * static_cast<double>(sizes.size()) + kMargin, 720.0);
  return svg.file(width, y + kMargin, fmt::format("The fastest {} by ranks and size", what.collective));
}

}  // namespace tutti::harness::report
