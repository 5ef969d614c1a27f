// SPDX-License-Identifier: Apache-2.0
// A rank program for the tests of the launcher: `test_rank MODE [VICTIM]`. The rank VICTIM does what MODE says, the
// others wait for it. Open MPI is looked for at run time, so that this builds without one.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>

#include "harness/launch/rank_link.h"

namespace {

using namespace tutti;
using namespace tutti::harness;

[[noreturn]] void sleep_for_ever() {
  for (;;) ::pause();
}

int bad(const Status& status) {
  std::fprintf(stderr, "%s\n", status.message().c_str());
  return 1;
}

// Every rank adds its number + 1 to a word of the domain, waits for all, and reports what it sees.
int exchange(RankLink& link) {
  Result<Mapping> memory = Mapping::map(link.domain_fd(), link.domain_bytes());
  if (!memory.is_ok()) return bad(memory.status());
  auto& sum = *static_cast<std::atomic<int>*>(memory.value().data());
  auto& arrived = static_cast<std::atomic<int>*>(memory.value().data())[1];
  link.announce(Activity::exchange, 7);
  sum += link.rank() + 1;
  ++arrived;
  while (arrived < link.ranks()) std::this_thread::yield();
  link.settle();
  for (int i = 0; i < 3; ++i) {
    const Status sent = link.send("row", std::to_string(i) + ":" + std::to_string(sum) + ":" + link.payload());
    if (!sent.is_ok()) return bad(sent);
  }
  const Status sent = link.send("long", std::string(1 << 20, 'x'));
  return sent.is_ok() && link.finish().is_ok() ? 0 : 1;
}

// Barriers of Open MPI, without its headers; reports the shared files that it maps.
int barriers(RankLink& link, bool for_ever) {
  void* library = ::dlopen("libmpi.so.40", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return bad(link.fail(error(Code::unavailable, "no libmpi.so.40")));
  const auto init = reinterpret_cast<int (*)(int*, char***)>(::dlsym(library, "MPI_Init"));
  const auto barrier = reinterpret_cast<int (*)(void*)>(::dlsym(library, "MPI_Barrier"));
  const auto finalize = reinterpret_cast<int (*)()>(::dlsym(library, "MPI_Finalize"));
  void* world = ::dlsym(library, "ompi_mpi_comm_world");
  init(nullptr, nullptr);
  barrier(world);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t path = line.find('/');
    const bool is_shared = line.find("rw-s") != std::string::npos && path != std::string::npos;
    if (is_shared && line.find("memfd") == std::string::npos && !link.send("file", line.substr(path)).is_ok()) return 1;
  }
  if (!link.send("ready", "").is_ok()) return 1;
  for (int i = 0; for_ever || i < 100; ++i) {
    link.announce(Activity::operation, 0);
    barrier(world);
    link.settle();
  }
  const Status done = link.finish();
  finalize();
  return done.is_ok() ? 0 : 1;
}

int misbehave(RankLink& link, std::string_view mode) {
  if (mode == "exit") std::exit(3);
  if (mode == "leave") std::exit(0);
  if (mode == "abort") std::abort();
  if (mode == "stop") ::raise(SIGSTOP);
  if (mode == "error") {
    [[maybe_unused]] const Status sent = link.fail(error(Code::unavailable, "no such backend"));
    return 1;
  }
  if (mode == "late-exit") {
    [[maybe_unused]] const Status sent = link.finish();
    ::usleep(300'000);  // mpirun ends the others because of the exit code: they say their goodbyes before
    return 4;
  }
  if (mode == "grandchild" && ::fork() == 0) sleep_for_ever();
  if (mode == "grandchild") std::exit(3);
  sleep_for_ever();  // "idle", and "stop" once it goes on
}

int run(std::string_view mode, int victim) {
  const char* own = std::getenv("TUTTI_RANK");
  const char* rank = own != nullptr ? own : std::getenv("OMPI_COMM_WORLD_RANK");
  const bool is_victim = rank != nullptr && std::atoi(rank) == victim;
  if (is_victim && mode == "early-kill") ::raise(SIGKILL);
  if (is_victim && mode == "early-exit") return 5;
  if (is_victim && mode == "early-stop") ::raise(SIGSTOP);
  if (is_victim && mode == "early-sleep") sleep_for_ever();
  if (is_victim && mode == "garbage") {
    Result<Descriptor> socket = connect_to(std::getenv("TUTTI_CONTROL"), std::chrono::seconds(10));
    const Status hello = send_frame(socket.value().get(), {"hello", rank});
    constexpr std::string_view kNonsense = "this is not what the launcher expects";
    if (!hello.is_ok() || ::write(socket.value().get(), kNonsense.data(), kNonsense.size()) < 0) return 1;
    sleep_for_ever();
  }
  Result<RankLink> link = RankLink::connect();
  if (!link.is_ok()) return bad(link.status());
  const char* directory = std::getenv("TMPDIR");
  if (directory != nullptr && !link.value().send("directory", directory).is_ok()) return 1;
  if (mode == "place") {
    const RankPlace& place = link.value().place();
    const std::string text = std::to_string(place.host) + "/" + std::to_string(place.local);
    return link.value().send("row", text).is_ok() && link.value().finish().is_ok() ? 0 : 1;
  }
  if (mode == "exchange") return exchange(link.value());
  if (mode == "mpi" || mode == "mpi-for-ever") return barriers(link.value(), mode == "mpi-for-ever");
  if (mode == "complain" && !is_victim) {  // waits for the victim only for a while
    ::usleep(300000);
    [[maybe_unused]] const Status sent = link.value().fail(error(Code::timeout, "waited for too long"));
    return 1;
  }
  if (mode == "complain") ::raise(SIGSTOP);
  if (!link.value().send("ready", std::to_string(::getpid())).is_ok()) return 1;
  if (is_victim) return misbehave(link.value(), mode);
  if (mode == "late-exit") return link.value().finish().is_ok() ? 0 : 1;
  if (mode != "sleep") link.value().announce(Activity::operation, 5);
  sleep_for_ever();
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) return 2;
  return run(arguments[1], count > 2 ? std::atoi(arguments[2]) : -1);
}
