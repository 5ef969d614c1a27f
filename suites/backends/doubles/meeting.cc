// SPDX-License-Identifier: Apache-2.0
#include "suites/backends/doubles/meeting.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <set>
#include <sys/mman.h>
#include <unistd.h>

namespace tutti::doubles {
namespace {

/// Files that not all ranks have found, of this process. They go when it ends, where no rank can come any more.
struct Unfinished {
  std::mutex mutex;
  std::set<std::string> names;

  static Unfinished& get() {
    static auto& one = *new Unfinished();
    static const int is_asked_for = std::atexit([] {
      const std::lock_guard lock(one.mutex);
      for (const std::string& name : one.names) ::shm_unlink(("/" + name).c_str());
    });
    static_cast<void>(is_asked_for);
    return one;
  }
  void note(const std::string& name, bool is_complete) {
    const std::lock_guard lock(mutex);
    if (is_complete) {
      names.erase(name);
    } else {
      names.insert(name);
    }
  }
};

/// Whether the process runs: one that has ended may wait for its parent to notice.
bool is_running(int process) {
  std::FILE* const file = std::fopen(("/proc/" + std::to_string(process) + "/stat").c_str(), "r");
  if (file == nullptr) return false;
  char state = 'X';
  const bool is_read = std::fscanf(file, "%*d (%*[^)]) %c", &state) == 1;
  std::fclose(file);
  return is_read && state != 'Z' && state != 'X';
}

}  // namespace

std::size_t Channel::write(const std::byte* from, std::size_t most) {
  const std::uint64_t at = written.load(std::memory_order_relaxed);
  const std::size_t room = kChannelBytes - (at - read.load(std::memory_order_acquire));
  const std::size_t count = std::min({most, room, static_cast<std::size_t>(kChannelBytes - at % kChannelBytes)});
  if (count > 0) std::memcpy(bytes.data() + at % kChannelBytes, from, count);
  written.store(at + count, std::memory_order_release);
  return count;
}

std::size_t Channel::take(std::byte* to, std::size_t most) {
  const std::uint64_t at = read.load(std::memory_order_relaxed);
  const std::size_t there = written.load(std::memory_order_acquire) - at;
  const std::size_t count = std::min({most, there, static_cast<std::size_t>(kChannelBytes - at % kChannelBytes)});
  if (count > 0) std::memcpy(to, bytes.data() + at % kChannelBytes, count);
  read.store(at + count, std::memory_order_release);
  return count;
}

Meeting::Meeting(const std::string& name, int rank, int ranks, int device) : name_(name), rank_(rank), ranks_(ranks) {
  const int file = ::shm_open(("/" + name).c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0 || ::ftruncate(file, sizeof(Room)) != 0) std::abort();
  void* const memory = ::mmap(nullptr, sizeof(Room), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (memory == MAP_FAILED) std::abort();
  room_ = static_cast<Room*>(memory);
  const auto at = static_cast<std::size_t>(rank);
  room_->processes[at] = ::getpid();
  room_->devices[at] = device;
  room_->states[at] = rank_there;
  const bool is_last = ++room_->attached == ranks;
  if (is_last) ::shm_unlink(("/" + name).c_str());
  Unfinished::get().note(name, is_last);
}

bool Meeting::is_complete() const {
  const bool is = room_->attached == ranks_;
  if (is) Unfinished::get().note(name_, true);
  return is;
}

Meeting::~Meeting() {
  if (!is_complete()) ::shm_unlink(("/" + name_).c_str());
  ::munmap(room_, sizeof(Room));
}

std::string Meeting::loss_of(int rank) const {
  const auto at = static_cast<std::size_t>(rank);
  if (room_->states[at] == rank_aborted) return "rank " + std::to_string(rank) + " has aborted";
  if (room_->states[at] != rank_there || is_running(room_->processes[at])) return {};
  return "the process of rank " + std::to_string(rank) + " has ended";
}

}  // namespace tutti::doubles
