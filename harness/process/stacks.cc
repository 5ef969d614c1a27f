// SPDX-License-Identifier: Apache-2.0
#include "harness/process/stacks.h"

#include <algorithm>
#include <optional>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/process/command_run.h"

namespace tutti::harness::process {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kReader = "eu-stack";

/// "#3  0x00007f1a2b poll" becomes "#3 poll".
std::string frame_text(std::string_view line) {
  const std::size_t address = line.find(" 0x");
  if (address == std::string_view::npos) return std::string(line);
  const std::size_t name = line.find(' ', address + 1);
  const std::string_view number = line.substr(0, line.find(' '));
  return fmt::format("{} {}", number, name == std::string_view::npos ? "?" : line.substr(name + 1));
}

/// Empty: there is no eu-stack.
std::optional<std::string> stack_of(pid_t pid, std::chrono::milliseconds most, const Interrupts& interrupts) {
  if (pid <= 0) return "its process is not known\n";
  if (most <= std::chrono::milliseconds(0)) return "not read: there was no more time\n";
  const auto run = run_command({kReader, "-p", std::to_string(pid)}, most, interrupts);
  if (run.status().code() == Code::unavailable) return std::nullopt;
  if (!run.is_ok()) return fmt::format("not read: {}\n", run.status().message());
  std::string text = without_addresses(std::string_view(run.value().output).substr(0, kMostStackBytes));
  return text.empty() ? fmt::format("not read: {}\n", run.value().last_words()) : std::move(text);
}

}  // namespace

std::string without_addresses(std::string_view printed) {
  std::string text;
  int thread = 0;
  std::istringstream lines{std::string(printed)};
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("TID ")) {
      text += fmt::format("thread {}\n", ++thread);
    } else if (line.starts_with('#')) {
      text += "  " + frame_text(line) + "\n";
    }
  }
  return text;
}

std::string grouped(std::span<const RankStack> stacks) {
  struct Group {
    std::vector<int> ranks;
    std::string_view text;
  };
  std::vector<Group> groups;
  for (const RankStack& one : stacks) {
    auto same = std::ranges::find(groups, one.text, &Group::text);
    if (same == groups.end()) same = groups.insert(groups.end(), Group{.ranks = {}, .text = one.text});
    same->ranks.push_back(one.rank);
  }
  std::ranges::stable_sort(groups, std::ranges::greater(), [](const Group& group) { return group.ranks.size(); });
  std::string text;
  for (const Group& group : groups) {
    text += fmt::format("{}{} {}\n{}", text.empty() ? "" : "\n", group.ranks.size() == 1 ? "rank" : "ranks",
                        fmt::join(group.ranks, ", "), group.text);
  }
  return text;
}

std::vector<RankStack> stacks_of(std::span<const pid_t> pids, std::chrono::milliseconds most) {
  const Interrupts interrupts;
  const auto end = Clock::now() + most;
  std::vector<RankStack> stacks;
  for (std::size_t rank = 0; rank < pids.size(); ++rank) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    auto text = stack_of(pids[rank], left, interrupts);
    if (!text) return {};
    stacks.push_back({.rank = static_cast<int>(rank), .text = *std::move(text)});
  }
  return stacks;
}

}  // namespace tutti::harness::process
