// SPDX-License-Identifier: Apache-2.0
// What has to be tried on this machine: no file tells it.
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "harness/doctor/condition.h"
#include "impl/types/descriptor.h"

namespace tutti::harness::doctor {

Probes probe_system() {
  Probes probes;
  const Descriptor memory(::memfd_create("tutti-doctor", MFD_CLOEXEC));
  constexpr off_t kLittle = 1 << 20;
  if (memory.get() < 0 || ::posix_fallocate(memory.get(), 0, kLittle) != 0)
    probes.memory_refusal = std::strerror(errno);
  const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) probes.socket_refusal = std::strerror(errno);
  struct statvfs shm {};
  if (::statvfs("/dev/shm", &shm) == 0) {
    probes.shm_bytes = static_cast<std::int64_t>(shm.f_blocks) * static_cast<std::int64_t>(shm.f_frsize);
  }
  probes.gpus = look_at_gpus();
  probes.why_no_cuda = why_no_cuda();
  return probes;
}

}  // namespace tutti::harness::doctor
