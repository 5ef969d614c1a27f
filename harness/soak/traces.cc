// SPDX-License-Identifier: Apache-2.0
#include "harness/soak/traces.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tutti::harness::soak {
namespace {

constexpr std::string_view kFiles = "/dev/shm/";

/// Names in a folder; none where it cannot be read.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (std::filesystem::directory_iterator at(folder, ignored), end; at != end; at.increment(ignored)) {
    names.push_back(at->path().filename());
  }
  return names;
}

bool is_number(std::string_view name) { return name.find_first_not_of("0123456789") == name.npos; }

std::int64_t count_children() {
  std::int64_t count = 0;
  for (const std::string& name : names_in("/proc")) {
    if (!is_number(name)) continue;
    std::ifstream file("/proc/" + name + "/stat");
    std::string stat;
    std::getline(file, stat);
    // pid (name) state parent ...: the name may hold anything.
    const std::size_t name_end = stat.rfind(')');
    if (name_end == stat.npos || stat.size() < name_end + 4) continue;
    int parent = 0;
    std::from_chars(stat.data() + name_end + 4, stat.data() + stat.size(), parent);
    count += parent == ::getpid() ? 1 : 0;
  }
  return count;
}

std::int64_t lines_with(const std::string& path, std::string_view text) {
  std::ifstream file(path);
  std::int64_t count = 0;
  for (std::string line; std::getline(file, line);) count += line.find(text) != line.npos ? 1 : 0;
  return count;
}

/// Whether a live process that may be looked at has the file open or mapped.
bool is_in_use(const std::string& path) {
  for (const std::string& name : names_in("/proc")) {
    if (!is_number(name)) continue;
    if (lines_with("/proc/" + name + "/maps", path) > 0) return true;
    const std::string open_files = "/proc/" + name + "/fd";
    for (const std::string& number : names_in(open_files)) {
      std::error_code ignored;
      if (std::filesystem::read_symlink(open_files + "/" + number, ignored) == path) return true;
    }
  }
  return false;
}

/// Whether it is a file of this user's that nobody has open, and stays so: another job's may be about to be opened, or
/// to be removed.
bool is_forgotten(const std::string& path) {
  constexpr std::chrono::milliseconds kPause{100};
  for (int look = 0; look < 2; ++look) {
    if (look > 0) std::this_thread::sleep_for(kPause);
    struct stat about {};
    if (::lstat(path.c_str(), &about) != 0 || about.st_uid != ::geteuid() || is_in_use(path)) return false;
  }
  return true;
}

}  // namespace

std::int64_t count_descriptors() { return static_cast<std::int64_t>(names_in("/proc/self/fd").size()); }
std::int64_t count_mappings(std::string_view name) {
  return lines_with("/proc/self/maps", fmt::format("/memfd:{}", name));
}

Traces Traces::now() {
  const std::vector<std::string> files = names_in(std::string(kFiles));
  return {.descriptors = count_descriptors(),
          .children = count_children(),
          .mappings = count_mappings("tutti"),
          .files = {files.begin(), files.end()}};
}

std::string left_behind(const Traces& before, const Traces& after) {
  std::vector<std::string> left;
  const auto compare = [&left](const char* what, std::int64_t then, std::int64_t now) {
    if (now > then) left.push_back(fmt::format("{}: {}, before {}", what, now, then));
  };
  compare("descriptors", before.descriptors, after.descriptors);
  compare("child processes", before.children, after.children);
  compare("mappings of shared memory", before.mappings, after.mappings);
  for (const std::string& file : after.files) {
    const std::string path = std::string(kFiles) + file;
    if (before.files.contains(file) || !is_forgotten(path)) continue;
    left.push_back(fmt::format("{}, which no process has open", path));
  }
  return fmt::format("{}", fmt::join(left, "; "));
}

}  // namespace tutti::harness::soak
