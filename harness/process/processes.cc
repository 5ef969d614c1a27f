// SPDX-License-Identifier: Apache-2.0
#include "harness/process/processes.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "impl/types/descriptor.h"

namespace tutti::harness::process {
namespace {

std::string contents(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 4096> bytes;
  for (;;) {
    const ssize_t n = file.is_open() ? ::read(file.get(), bytes.data(), bytes.size()) : 0;
    if (n <= 0) return text;
    text.append(bytes.data(), static_cast<std::size_t>(n));
  }
}

}  // namespace

std::optional<ProcessInfo> process_info(pid_t pid) {
  const std::string stat = contents(fmt::format("/proc/{}/stat", pid));
  const std::size_t name_end = stat.rfind(')');  // the name may hold anything, parentheses included
  ProcessInfo info;
  info.pid = pid;
  if (name_end == std::string::npos) return std::nullopt;
  int group = 0;
  if (std::sscanf(stat.c_str() + name_end + 1, " %c %d %d %d", &info.state, &info.parent, &group, &info.session) != 4) {
    return std::nullopt;
  }
  return info;
}

std::optional<int> unread_wait_status(pid_t pid) {
  const std::string stat = contents(fmt::format("/proc/{}/stat", pid));
  const std::size_t name_end = stat.rfind(')');
  const std::size_t last = stat.rfind(' ');  // exit_code is the last field
  if (name_end == std::string::npos || last <= name_end + 2 || stat[name_end + 2] != 'Z') return std::nullopt;
  return std::atoi(stat.c_str() + last);
}

std::vector<ProcessInfo> all_processes() {
  std::vector<ProcessInfo> processes;
  DIR* directory = ::opendir("/proc");
  if (directory == nullptr) return processes;
  while (const dirent* entry = ::readdir(directory)) {
    const int pid = std::atoi(entry->d_name);
    if (pid <= 0) continue;
    if (const auto info = process_info(pid)) processes.push_back(*info);
  }
  ::closedir(directory);
  return processes;
}

std::optional<std::string> environment_of(pid_t pid, std::string_view name) {
  const std::string all = contents(fmt::format("/proc/{}/environ", pid));
  for (std::size_t start = 0; start < all.size();) {
    std::size_t end = all.find('\0', start);
    if (end == std::string::npos) end = all.size();
    const std::string_view entry(all.data() + start, end - start);
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=') {
      return std::string(entry.substr(name.size() + 1));
    }
    start = end + 1;
  }
  return std::nullopt;
}

std::string describe_state(char state) {
  switch (state) {
    case 'R':
      return "running (state R)";
    case 'S':
      return "sleeping (state S)";
    case 'D':
      return "in a system call that cannot be interrupted (state D)";
    case 'T':
      return "stopped (state T)";
    case kUnheard:
      return "on a host that says nothing";
    case 't':
      return "stopped by a debugger (state t)";
    case 'Z':
      return "dead (state Z)";
    default:
      return fmt::format("in state {}", state);
  }
}

bool is_of_this_program(pid_t pid) {
  std::error_code failure;
  const auto its = std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), failure);
  return !failure && its == std::filesystem::read_symlink("/proc/self/exe", failure);
}

}  // namespace tutti::harness::process
