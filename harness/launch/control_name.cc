// SPDX-License-Identifier: Apache-2.0
#include "harness/launch/control_name.h"

#include <cstdlib>
#include <random>
#include <sstream>
#include <unistd.h>

#include <fmt/ranges.h>

namespace tutti::harness::launch {
namespace {

constexpr char kBeforeFirsts = '@';

}  // namespace

std::string draw_control_name() {
  std::random_device random;
  return fmt::format("tutti-{}-{}-{:08x}{:08x}", ::getuid(), ::getpid(), random(), random());
}

std::string control_name_of(const std::string& job, int first) { return fmt::format("{}-first{}", job, first); }

std::string control_text_of(const std::string& job, std::span<const int> firsts) {
  return fmt::format("{}{}{}", job, kBeforeFirsts, fmt::join(firsts, ","));
}

std::string control_name_in(const std::string& text, int rank) {
  const std::size_t at = text.rfind(kBeforeFirsts);
  if (at == std::string::npos) return text;
  int own = 0;
  std::istringstream firsts(text.substr(at + 1));
  for (std::string first; std::getline(firsts, first, ',');) {
    if (const int number = std::atoi(first.c_str()); number <= rank) own = number;
  }
  return control_name_of(text.substr(0, at), own);
}

}  // namespace tutti::harness::launch
