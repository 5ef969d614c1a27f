// SPDX-License-Identifier: Apache-2.0
#include "harness/process/stacks.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/process/command_run.h"
#include "harness/process/spawn.h"
#include "harness/process/waits.h"

namespace tutti::harness::process {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kReader = "eu-stack";
constexpr std::chrono::milliseconds kKillPatience(500);

/// "#3  0x00007f1a2b poll" becomes "#3 poll".
std::string frame_text(std::string_view line) {
  const std::size_t address = line.find(" 0x");
  if (address == std::string_view::npos) return std::string(line);
  const std::size_t name = line.find(' ', address + 1);
  const std::string_view number = line.substr(0, line.find(' '));
  return fmt::format("{} {}", number, name == std::string_view::npos ? "?" : line.substr(name + 1));
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

std::string stack_lines(std::string_view told) {
  constexpr std::array<std::string_view, 3> kBegins{"thread ", "  #", "not read: "};
  std::string text;
  std::istringstream lines{std::string(told)};
  for (std::string line; std::getline(lines, line);) {
    if (std::ranges::any_of(kBegins, [&](std::string_view begin) { return line.starts_with(begin); })) {
      text += line + "\n";
    }
  }
  return text;
}

StackReader::StackReader(int first, int ranks, std::chrono::milliseconds most, PidOfRank pid_of)
    : rank_(first), after_last_(first + ranks), end_(Clock::now() + most), pid_of_(std::move(pid_of)) {}

std::optional<RankStack> StackReader::next() {
  if (is_done()) return std::nullopt;
  std::string text = reader_ == 0 ? start() : finish();
  if (text.empty()) return std::nullopt;
  return RankStack{.rank = rank_++, .text = std::move(text)};
}

std::string StackReader::start() {
  const pid_t pid = pid_of_(rank_);
  if (pid == kEnded) return "not read: its process has ended\n";
  if (pid == 0) return "not read: its process is not known\n";
  if (Clock::now() >= end_) return "not read: there was no more time\n";
  auto printed = memory_file("tutti-stacks");
  if (!printed.is_ok()) return fmt::format("not read: {}\n", printed.status().message());
  printed_ = std::move(printed).value();
  const auto reader = spawn({.command = {kReader, "-p", std::to_string(pid)},
                             .environment = {},
                             .output = printed_.get(),
                             .death_signal = SIGKILL});
  if (reader.status().code() == Code::unavailable) {
    is_there_ = false;
    rank_ = after_last_;
    return {};
  }
  if (!reader.is_ok()) return fmt::format("not read: {}\n", reader.status().message());
  reader_ = reader.value();
  limit_ = std::min(end_, Clock::now() + kStackPatience);
  return {};
}

std::string StackReader::finish() {
  if (::waitpid(reader_, nullptr, WNOHANG) == 0) {
    if (Clock::now() < limit_) return {};
    kill_reader();
    return fmt::format("not read: '{}' did not end in time\n", kReader);
  }
  reader_ = 0;
  std::string printed(kMostStackBytes, '\0');
  printed.resize(
      static_cast<std::size_t>(std::max<ssize_t>(0, ::pread(printed_.get(), printed.data(), printed.size(), 0))));
  std::string text = without_addresses(printed);
  if (!text.empty()) return text;
  return fmt::format("not read: {}\n", CommandRun{.exit_code = 0, .output = printed, .errors = {}}.last_words());
}

void StackReader::kill_reader() {
  if (reader_ == 0) return;
  ::kill(reader_, SIGKILL);
  nap_until(kKillPatience, [this] { return ::waitpid(reader_, nullptr, WNOHANG) != 0; });
  reader_ = 0;
}

std::vector<RankStack> stacks_of(int ranks, std::chrono::milliseconds most, const PidOfRank& pid_of,
                                 const Interrupts& interrupts) {
  StackReader reader(0, ranks, most, pid_of);
  std::vector<RankStack> stacks;
  nap_until(most + kStackPatience, [&] {
    while (auto one = reader.next()) stacks.push_back(*std::move(one));
    return reader.is_done() || interrupts.signal() != 0;
  });
  return reader.is_there() ? stacks : std::vector<RankStack>();
}

}  // namespace tutti::harness::process
