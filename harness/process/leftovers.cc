// SPDX-License-Identifier: Apache-2.0
#include "harness/process/leftovers.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "harness/process/processes.h"

namespace tutti::harness::process {
namespace {

namespace fs = std::filesystem;

bool is_mine(const std::string& path) {
  struct stat about = {};
  return ::lstat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == ::getuid();
}

bool is_mapped(const std::string& path) {
  return std::ranges::any_of(all_processes(), [&](const ProcessInfo& process) {
    std::ifstream maps(fmt::format("/proc/{}/maps", process.pid));
    const std::string text{std::istreambuf_iterator<char>(maps), {}};
    return text.find(path) != std::string::npos;
  });
}

}  // namespace

Leftovers::Leftovers(std::vector<std::string> beginnings) : beginnings_(std::move(beginnings)), before_(present()) {}

std::set<std::string> Leftovers::present() const {
  std::set<std::string> found;
  for (const std::string& beginning : beginnings_) {
    std::error_code failure;
    for (fs::directory_iterator entry(fs::path(beginning).parent_path(), failure), end; !failure && entry != end;
         entry.increment(failure)) {
      if (entry->path().string().starts_with(beginning)) found.insert(entry->path().string());
    }
  }
  return found;
}

void Leftovers::remove() const {
  for (const std::string& path : present()) {
    if (before_.contains(path) || !is_mine(path) || is_mapped(path)) continue;
    std::error_code ignored;  // another process may have removed it
    fs::remove(path, ignored);
  }
}

}  // namespace tutti::harness::process
