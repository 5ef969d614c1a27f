// SPDX-License-Identifier: Apache-2.0
#include "impl/embed/arena.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>

#include <fmt/ranges.h>

#include "impl/types/names.h"

namespace tutti::embed {
namespace {

constexpr std::size_t kTokenOfArena = 32;  // bytes at its beginning, which show that it is the right file
constexpr std::size_t kPage = 4096;
/// Of what is released so much keeps its pages, for the next one that wants memory.
constexpr std::size_t kMostKept = std::size_t{256} << 20U;
/// A part is cut off a larger one, so twice the memory of the host is more than can be full.
constexpr std::size_t kMemories = 2;

std::size_t whole_pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

Result<std::byte*> map_arena(int file, std::size_t bytes) {
  void* const begin = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (begin == MAP_FAILED) {
    return error(Code::resource, "cannot map {} bytes of memory that ranks share: {}", bytes, std::strerror(errno));
  }
  ::madvise(begin, bytes, MADV_DONTFORK);
  return static_cast<std::byte*>(begin);
}

}  // namespace

Result<Arena*> Arena::of_process() {
  static std::mutex making;
  static Arena* newest = nullptr;  // never freed: tensors may outlive static objects
  const std::lock_guard lock(making);
  if (newest != nullptr && !newest->is_of_child_) return newest;
  std::unique_ptr<Arena> made(new Arena(newest));
  TUTTI_RETURN_IF_ERROR(made->make());
  if (newest == nullptr) {
    ::pthread_atfork(
        [] {
          making.lock();
          newest->before_fork();
        },
        [] {
          newest->after_fork_in_parent();
          making.unlock();
        },
        [] {
          newest->after_fork_in_child();
          making.unlock();
        });
  }
  newest = made.release();
  return newest;
}

Status Arena::make() {
  const auto pages = static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES));
  bytes_ = kMemories * pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  file_ = Descriptor(::memfd_create("tutti-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file_.is_open() || ::ftruncate(file_.get(), static_cast<off_t>(bytes_)) != 0 ||
      ::fcntl(file_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return error(Code::resource, "cannot make {} bytes of memory that ranks share: {}", bytes_, std::strerror(errno));
  }
  TUTTI_ASSIGN_OR_RETURN(begin_, map_arena(file_.get(), bytes_));
  std::array<unsigned char, kTokenOfArena> token{};
  if (::getrandom(token.data(), token.size(), 0) != static_cast<ssize_t>(token.size())) {
    return error(Code::io, "no random bytes: {}", std::strerror(errno));
  }
  std::memcpy(begin_, token.data(), token.size());
  offer_ = fmt::format("{}:{}:{:02x}", file_.get(), bytes_, fmt::join(token, ""));
  add_free(kPage, bytes_ - kPage);
  return {};
}

void Arena::add_free(std::size_t offset, std::size_t bytes) {
  free_[offset] = bytes;
  by_bytes_.emplace(bytes, offset);
}

void Arena::remove_free(std::map<std::size_t, std::size_t>::iterator part) {
  by_bytes_.erase({part->second, part->first});
  free_.erase(part);
}

void* Arena::allocate(std::size_t bytes) {
  if (bytes == 0 || bytes > bytes_) return nullptr;
  const std::size_t size = whole_pages(bytes);
  const std::lock_guard lock(mutex_);
  // The smallest part that has room: the one that was released last by a call of the same size is among them.
  const auto smallest = by_bytes_.lower_bound({size, 0});
  if (is_of_child_ || smallest == by_bytes_.end()) return nullptr;
  const auto [available, offset] = *smallest;
  remove_free(free_.find(offset));
  if (available > size) add_free(offset + size, available - size);
  used_[offset] = size;
  kept_ -= std::min(kept_, size);
  return begin_ + offset;
}

void Arena::release(void* pointer) {
  const std::lock_guard lock(mutex_);
  const auto offset = static_cast<std::size_t>(static_cast<std::byte*>(pointer) - begin_);
  const auto used = used_.find(offset);
  if (used == used_.end()) return;
  const std::size_t size = used->second;
  used_.erase(used);
  if (is_of_child_) {  // its own copy
    ::madvise(pointer, size, MADV_DONTNEED);
    return;
  }
  if (kept_ + size > kMostKept) {
    ::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                static_cast<off_t>(size));
  } else {
    kept_ += size;
  }
  give_back(offset, size);
}

/// Joined with free parts beside it.
void Arena::give_back(std::size_t offset, std::size_t bytes) {
  const auto next = free_.find(offset + bytes);
  if (next != free_.end()) {
    bytes += next->second;
    remove_free(next);
  }
  auto before = free_.lower_bound(offset);
  if (before != free_.begin() && (--before)->first + before->second == offset) {
    offset = before->first;
    bytes += before->second;
    remove_free(before);
  }
  add_free(offset, bytes);
}

bool Arena::holds(const void* pointer, std::size_t bytes) const {
  const auto offset = reinterpret_cast<std::uintptr_t>(pointer) - reinterpret_cast<std::uintptr_t>(begin_);
  return offset <= bytes_ && bytes <= bytes_ - offset;
}

void Arena::before_fork() {
  mutex_.lock();
  if (is_of_child_) return;
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();  // a child without its memory would go wrong later
  waits_for_copy_ = ends[0];
  tells_of_copy_ = ends[1];
}

// The end of the pipe is seen when the child has closed it, or has ended, or was not made.
void Arena::after_fork_in_parent() {
  if (!is_of_child_) {
    ::close(tells_of_copy_);
    char byte = 0;
    while (::read(waits_for_copy_, &byte, 1) < 0 && errno == EINTR) {
    }
    ::close(waits_for_copy_);
  }
  mutex_.unlock();
}

// Only what may be called between fork and exec: no memory is allocated.
void Arena::after_fork_in_child() {
  if (!is_of_child_) {
    is_of_child_ = true;
    void* const here = ::mmap(begin_, bytes_, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (here != begin_) std::abort();
    for (const auto& [offset, bytes] : used_) copy_for_child(offset, bytes);
    file_.close();
    ::close(waits_for_copy_);
    ::close(tells_of_copy_);
  }
  mutex_.unlock();
}

void Arena::copy_for_child(std::size_t offset, std::size_t bytes) {
  const auto end = static_cast<off_t>(offset + bytes);
  for (auto at = static_cast<off_t>(offset); at < end;) {
    const off_t data = ::lseek(file_.get(), at, SEEK_DATA);  // pages that were never touched are none of the child's
    if (data < 0 || data >= end) return;
    const off_t hole = std::min<off_t>(::lseek(file_.get(), data, SEEK_HOLE), end);
    for (at = data; at < hole;) {
      const ssize_t copied = ::pread(file_.get(), begin_ + at, static_cast<std::size_t>(hole - at), at);
      if (copied > 0) {
        at += copied;
      } else if (copied == 0 || errno != EINTR) {
        std::abort();
      }
    }
  }
}

Result<std::shared_ptr<PeerArena>> PeerArena::of(const ProcessId& process, const std::string& offer) {
  static std::mutex mutex;
  // A forked child has none of its parent's mappings.
  static auto& all = *new std::map<std::tuple<pid_t, pid_t, std::uint64_t>, std::weak_ptr<PeerArena>>;
  const std::lock_guard lock(mutex);
  std::erase_if(all, [](const auto& each) { return each.second.expired(); });
  std::weak_ptr<PeerArena>& known = all[{::getpid(), process.pid, process.start}];
  if (auto arena = known.lock()) return arena;
  TUTTI_ASSIGN_OR_RETURN(auto arena, map(process, offer));
  known = arena;
  return arena;
}

Result<std::shared_ptr<PeerArena>> PeerArena::map(const ProcessId& process, const std::string& offer) {
  int number = -1;
  unsigned long long bytes = 0;
  std::array<char, 2 * kTokenOfArena + 1> expected{};
  static_assert(kTokenOfArena == 32);
  if (std::sscanf(offer.c_str(), "%d:%llu:%64s", &number, &bytes, expected.data()) != 3) {
    return error(Code::mismatch, "'{}' does not say where the memory of process {} is", shown(offer), process.pid);
  }
  const std::string path = fmt::format("/proc/{}/fd/{}", process.pid, number);
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file.is_open()) {
    return error(Code::io, "cannot open the memory of process {}, {}: {}", process.pid, path, std::strerror(errno));
  }
  std::array<unsigned char, kTokenOfArena> token{};
  struct stat status {};
  const bool is_it = ::fstat(file.get(), &status) == 0 && status.st_uid == ::geteuid() &&
                     static_cast<unsigned long long>(status.st_size) == bytes &&
                     ::pread(file.get(), token.data(), token.size(), 0) == static_cast<ssize_t>(token.size()) &&
                     fmt::format("{:02x}", fmt::join(token, "")) == expected.data();
  if (!is_it) return error(Code::mismatch, "{} is not the memory of process {}: it has gone", path, process.pid);
  TUTTI_ASSIGN_OR_RETURN(std::byte* const begin, map_arena(file.get(), bytes));
  return std::shared_ptr<PeerArena>(new PeerArena(begin, bytes));
}

PeerArena::~PeerArena() { ::munmap(begin_, bytes_); }

}  // namespace tutti::embed
