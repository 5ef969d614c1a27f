// SPDX-License-Identifier: Apache-2.0
#include "harness/launch/limits.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/process/processes.h"
#include "harness/process/thread_stacks.h"

namespace tutti::harness::launch {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

std::uint64_t open_descriptors() {
  std::error_code ignored;
  std::uint64_t count = 0;
  for (auto entry = std::filesystem::directory_iterator("/proc/self/fd", ignored);
       entry != std::filesystem::directory_iterator(); entry.increment(ignored)) {
    ++count;
  }
  return count;
}

std::uint64_t tasks_of_this_user() {
  std::uint64_t count = 0;
  for (const ProcessInfo& process : all_processes()) {
    struct stat about {};
    if (::stat(fmt::format("/proc/{}/task", process.pid).c_str(), &about) != 0 || about.st_uid != ::getuid()) continue;
    count += std::max<std::uint64_t>(about.st_nlink, 3) - 2;  // a folder has two links, and one for each folder in it
  }
  return count;
}

std::uint64_t address_bytes_here() {
  std::uint64_t pages = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  unsigned long read = 0;
  if (std::fscanf(file, "%lu", &read) == 1) pages = read;
  std::fclose(file);
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::optional<std::uint64_t> limit_of(decltype(RLIMIT_NOFILE) resource, bool is_hard) {
  rlimit limit = {};
  if (::getrlimit(resource, &limit) != 0) return std::nullopt;
  const rlim_t most = is_hard ? limit.rlim_max : limit.rlim_cur;
  return most == RLIM_INFINITY ? std::nullopt : std::optional<std::uint64_t>(most);
}

/// A thread's stack takes addresses. Without a limit, and below the least of ensure_stacks, it is the usual one.
std::uint64_t stack_bytes() {
  const std::uint64_t bytes = limit_of(RLIMIT_STACK, false).value_or(kUsualStack);
  return bytes < kLeastThreadStack ? kUsualStack : bytes;
}

struct Resource {
  const char* what;
  const char* command;
  std::uint64_t unit;
};

Status check_one(const Need& need, int ranks, const std::optional<std::uint64_t>& limit, const Resource& resource) {
  const std::uint64_t wanted = need.base + need.per_rank * static_cast<std::uint64_t>(ranks);
  if (!limit || wanted <= *limit) return {};
  const std::uint64_t most = *limit < need.base || need.per_rank == 0 ? 0 : (*limit - need.base) / need.per_rank;
  const std::string fewer = most == 0 ? "" : fmt::format(", or take at most {} {}", most, most == 1 ? "rank" : "ranks");
  return error(Code::resource, "{} {} need {} {}, and the limit is {} ({}): raise it{}", ranks,
               ranks == 1 ? "rank" : "ranks", (wanted + resource.unit - 1) / resource.unit, resource.what,
               *limit / resource.unit, resource.command, fewer);
}

}  // namespace

std::optional<std::uint64_t> tasks_left(const Tree& tree) {
  std::optional<std::uint64_t> least;
  for (const auto& [controller, mount] : {std::pair{"", "sys/fs/cgroup"}, std::pair{"pids", "sys/fs/cgroup/pids"}}) {
    for (const std::string& folder : cgroup_folders(tree, controller, mount)) {
      const auto most = tree.number(folder + "/pids.max");  // no number: "max"
      if (!most) continue;
      const std::int64_t left = std::max<std::int64_t>(0, *most - tree.number(folder + "/pids.current").value_or(0));
      least = std::min(least.value_or(static_cast<std::uint64_t>(left)), static_cast<std::uint64_t>(left));
    }
  }
  return least;
}

// Counted on Open MPI 4.1.4: its mpirun had 24 descriptors and 3.8 per rank open, and more while it starts them.
Needs needs_of(const Job& job) {
  const bool as_processes = job.ranks_as->is_process;
  constexpr std::uint64_t kLauncherFiles = 8;  // segments, the socket, a pipe to a child, the log
  const std::uint64_t launcher = open_descriptors() + kLauncherFiles;
  Needs needs{.ranks = job.ranks};
  needs.descriptors = {.base = launcher, .per_rank = as_processes ? 1U : 0U};
  needs.new_tasks = {.base = 2, .per_rank = as_processes ? 2U : 1U};  // a rank has a watching thread
  const std::uint64_t own = address_bytes_here() + 16 * kMiB + job.domain_bytes;
  needs.address_bytes = {.base = own, .per_rank = 4096};  // the board
  if (!as_processes && job.ranks_as->ranks_of_runner != 0) needs.address_bytes.per_rank += stack_bytes();
  if (job.start) {
    needs.descriptors = {.base = std::max<std::uint64_t>(40, launcher), .per_rank = 5};
    needs.new_tasks = {.base = 10, .per_rank = 4};
    needs.address_bytes.base += 256 * kMiB;  // the library, its threads' stacks and its own shared memory
  }
  needs.tasks = {.base = tasks_of_this_user() + needs.new_tasks.base, .per_rank = needs.new_tasks.per_rank};
  return needs;
}

Needs needs_of_joining(int processes, int ranks_here) {
  constexpr std::uint64_t kOwnFiles = 8;
  const auto here = static_cast<std::uint64_t>(ranks_here);
  const auto all = static_cast<std::uint64_t>(processes);
  Needs needs{.ranks = processes * ranks_here};
  needs.descriptors.base = open_descriptors() + kOwnFiles + all;
  needs.new_tasks.base = here + 1;
  needs.tasks.base = tasks_of_this_user() + needs.new_tasks.base;
  needs.address_bytes.base = address_bytes_here() + 16 * kMiB + here * stack_bytes();
  return needs;
}

Limits limits_here() {
  return {.descriptors = limit_of(RLIMIT_NOFILE, true),
          .tasks = ::geteuid() == 0 ? std::nullopt : limit_of(RLIMIT_NPROC, false),
          .new_tasks = tasks_left(Tree("/")),
          .address_bytes = limit_of(RLIMIT_AS, false)};
}

Status check_limits(const Needs& needs, const Limits& limits) {
  TUTTI_RETURN_IF_ERROR(
      check_one(needs.descriptors, needs.ranks, limits.descriptors, {"open files in one process", "ulimit -n", 1}));
  TUTTI_RETURN_IF_ERROR(check_one(needs.tasks, needs.ranks, limits.tasks,
                                  {"processes and threads of this user, with those that there are", "ulimit -u", 1}));
  TUTTI_RETURN_IF_ERROR(check_one(needs.new_tasks, needs.ranks, limits.new_tasks,
                                  {"new processes and threads", "what pids.max of the cgroup leaves", 1}));
  return check_one(needs.address_bytes, needs.ranks, limits.address_bytes,
                   {"KiB of addresses in one process", "ulimit -v", 1024});
}

Status prepare_limits(const Needs& needs) {
  TUTTI_RETURN_IF_ERROR(check_limits(needs, limits_here()));
  // Children inherit it, and may need more than was counted.
  const std::uint64_t counted =
      needs.descriptors.base + needs.descriptors.per_rank * static_cast<std::uint64_t>(needs.ranks);
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= 2 * counted) return {};
  limit.rlim_cur = std::min<rlim_t>(2 * counted, limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return {};
}

}  // namespace tutti::harness::launch
