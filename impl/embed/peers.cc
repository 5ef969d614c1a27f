// SPDX-License-Identifier: Apache-2.0
#include "impl/embed/peers.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <map>
#include <mutex>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "impl/embed/operation.h"
#include "impl/transports/journal.h"

namespace tutti::embed {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks(5);

/// Field 22 of /proc/PID/stat; 0 where there is no such process.
std::uint64_t start_of(pid_t pid) {
  std::FILE* const file = std::fopen(fmt::format("/proc/{}/stat", pid).c_str(), "re");
  if (file == nullptr) return 0;
  std::string text(1024, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  const std::size_t after_name = text.rfind(')');  // which may hold any other character
  if (after_name == std::string::npos) return 0;
  unsigned long long start = 0;
  const int found =
      std::sscanf(text.c_str() + after_name + 1,
                  " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &start);
  return found == 1 ? start : 0;
}

}  // namespace

ProcessId this_process() { return {.pid = ::getpid(), .start = start_of(::getpid())}; }

std::shared_ptr<WatchedProcess> WatchedProcess::of(const ProcessId& id) {
  static std::mutex mutex;
  static auto& all = *new std::map<std::pair<pid_t, std::uint64_t>, std::weak_ptr<WatchedProcess>>;
  const std::lock_guard lock(mutex);
  std::erase_if(all, [](const auto& each) { return each.second.expired(); });
  std::weak_ptr<WatchedProcess>& known = all[{id.pid, id.start}];
  auto process = known.lock();
  if (process == nullptr) known = process = std::make_shared<WatchedProcess>(id);
  return process;
}

WatchedProcess::WatchedProcess(const ProcessId& id)
    : id_(id), pidfd_(static_cast<int>(::syscall(SYS_pidfd_open, id.pid, 0))) {
  // Another process may have had the number by then.
  if (start_of(id.pid) != id.start) is_gone_ = true;
}

bool WatchedProcess::is_gone() {
  if (is_gone_) return true;
  if (pidfd_.is_open()) {
    pollfd ended{.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
    is_gone_ = ::poll(&ended, 1, 0) > 0;
  } else {
    is_gone_ = ::kill(id_.pid, 0) != 0 && errno == ESRCH;
  }
  return is_gone_;
}

Peers::Peers(int rank, std::vector<ProcessId> ids, Domain& domain) : rank_(rank) {
  const pid_t own = ::getpid();
  for (int each = 0; each < static_cast<int>(ids.size()); ++each) {
    const ProcessId& id = ids[static_cast<std::size_t>(each)];
    Peer peer{.id = id};
    if (each != rank && id.pid > 0) peer.journal = domain.seat(each).journal;
    if (id.pid > 0 && id.pid != own) peer.process = WatchedProcess::of(id);
    peers_.push_back(std::move(peer));
  }
}

void Peers::look(Time now) {
  if (now - looked_ < kBetweenLooks) return;
  looked_ = now;
  for (Peer& peer : peers_) {
    if (peer.is_lost) continue;
    peer.has_left = peer.journal != nullptr && peer.journal->has_left.load(std::memory_order_acquire) != 0;
    if (!peer.has_left && (peer.process == nullptr || !peer.process->is_gone())) continue;
    peer.is_lost = true;
    peer.since = now;
    ++lost_;
  }
}

std::optional<int> Peers::lost_by(int needs, Time now) const {
  const auto is_lost = [&](int rank) {
    const Peer& peer = peers_[static_cast<std::size_t>(rank)];
    return peer.is_lost && now - peer.since >= kGrace;
  };
  if (lost_ == 0) return std::nullopt;
  if (needs >= 0) return is_lost(needs) ? std::optional(needs) : std::nullopt;
  std::optional<int> first;
  for (int rank = 0; rank < static_cast<int>(peers_.size()); ++rank) {
    if (rank == rank_) continue;
    if (is_lost(rank)) {
      if (!first) first = rank;
    } else if (needs == OperationOptions::kAnyRank) {
      return std::nullopt;
    }
  }
  return first;
}

std::string Peers::fate_of(int rank) const {
  const Peer& peer = peers_[static_cast<std::size_t>(rank)];
  if (peer.has_left) return fmt::format("it has left the group (pid {})", peer.id.pid);
  return fmt::format("its process (pid {}) has ended", peer.id.pid);
}

}  // namespace tutti::embed
