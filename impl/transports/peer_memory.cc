// SPDX-License-Identifier: Apache-2.0
#include "impl/transports/peer_memory.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

namespace tutti {
namespace {

using Copy = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);

/// All of it: a call may end early.
Status copy_all(Copy copy, int process, std::byte* here, const std::byte* there, std::size_t bytes) {
  while (bytes > 0) {
    const iovec own{.iov_base = here, .iov_len = bytes};
    const iovec peer{.iov_base = const_cast<std::byte*>(there), .iov_len = bytes};
    const ssize_t done = copy(process, &own, 1, &peer, 1, 0);
    if (done <= 0) {
      return error(Code::io, "cannot copy {} bytes {} the memory of process {}: {}", bytes,
                   copy == process_vm_readv ? "from" : "to", process,
                   done == 0 ? "nothing was copied" : std::strerror(errno));
    }
    here += done;
    there += done;
    bytes -= static_cast<std::size_t>(done);
  }
  return {};
}

std::uint64_t& own_word() {
  static std::uint64_t word = [] {
    std::uint64_t drawn = 0;
    if (getrandom(&drawn, sizeof drawn, 0) != sizeof drawn) drawn = static_cast<std::uint64_t>(getpid());
    return drawn;
  }();
  return word;
}

MemoryOffer own_offer() {
  return {.process = static_cast<std::uint64_t>(getpid()),
          .address = reinterpret_cast<std::uintptr_t>(&own_word()),
          .word = own_word()};
}

}  // namespace

MemoryOffer offer_memory() {
  prctl(PR_SET_PTRACER, getppid(), 0, 0, 0);  // no Yama, no such call: then nothing has to be allowed
  return own_offer();
}

Status try_memory(const MemoryOffer& offer) {
  const auto process = static_cast<int>(offer.process);
  auto* const there = reinterpret_cast<std::byte*>(offer.address);
  std::uint64_t word = 0;
  auto* const here = reinterpret_cast<std::byte*>(&word);
  Status tried = read_memory_of(process, here, there, sizeof word);
  const bool is_it = tried.is_ok() && word == offer.word;
  if (is_it) tried = write_memory_of(process, here, there, sizeof word);  // what stands there already
  if (tried.is_ok() && is_it) return {};
  return error(Code::unavailable, "{}",
               tried.is_ok() ? fmt::format("process {} is another one here", process) : tried.message());
}

Status expect_peer_memory() {
  TUTTI_RETURN_IF_ERROR(try_memory(own_offer()));
  constexpr const char* kScope = "/proc/sys/kernel/yama/ptrace_scope";
  constexpr int kMostScope = 1;  // only descendants, and who is allowed by name
  int scope = 0;
  std::ifstream(kScope) >> scope;
  if (scope <= kMostScope) return {};
  return error(Code::unavailable, "{} is {}: {} is the most that lets ranks read each other's memory", kScope, scope,
               kMostScope);
}

Status read_memory_of(int process, std::byte* to, const std::byte* from, std::size_t bytes) {
  return copy_all(process_vm_readv, process, to, from, bytes);
}

Status write_memory_of(int process, const std::byte* from, std::byte* to, std::size_t bytes) {
  return copy_all(process_vm_writev, process, const_cast<std::byte*>(from), to, bytes);
}

}  // namespace tutti
