// SPDX-License-Identifier: Apache-2.0
// Machines as folders: the files of /proc and /sys that `tutti doctor` reads, for tests.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "harness/doctor/findings.h"

namespace tutti::harness::machine {

/// A root folder that goes away with it.
class FakeRoot {
 public:
  FakeRoot() {
    std::string name = (std::filesystem::temp_directory_path() / "tutti-doctor-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~FakeRoot() { std::filesystem::remove_all(path_); }
  FakeRoot(const FakeRoot&) = delete;
  FakeRoot& operator=(const FakeRoot&) = delete;

  void write(std::string_view path, std::string_view content) const {
    const std::filesystem::path file = path_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << content << "\n";
  }
  [[nodiscard]] Tree tree() const { return Tree(path_); }

 private:
  std::filesystem::path path_;
};

struct Cores {
  int sockets = 1;
  int per_socket = 2;
  int threads = 1;  ///< of a core; thread t of all cores comes after thread t-1 of all
};

/// What every machine has.
inline void write_machine(const FakeRoot& root, const Cores& cores, std::string_view model, std::string_view flags) {
  const int physical = cores.sockets * cores.per_socket;
  const int all = physical * cores.threads;
  root.write("proc/cpuinfo", fmt::format("processor\t: 0\nmodel name\t: {}\nflags\t\t: {}", model, flags));
  root.write("proc/meminfo", "MemTotal:       67108864 kB\nMemAvailable:   33554432 kB\nHugePages_Total:       0");
  root.write("proc/self/status",
             fmt::format("Name:\ttutti\nCapEff:\t0000000000000000\nCpus_allowed_list:\t0-{}", all - 1));
  root.write("proc/self/cgroup", "0::/");
  root.write("proc/loadavg", "0.05 0.10 0.20 1/100 4242");
  root.write("proc/stat", "cpu  1000 0 1000 98000 0 0 0 0 0 0\ncpu0 1 2 3");
  root.write("proc/sys/kernel/osrelease", "6.1.0-18-amd64");
  root.write("sys/devices/system/cpu/online", fmt::format("0-{}", all - 1));
  root.write("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc");
  root.write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never");
  for (int core = 0; core < all; ++core) {
    const std::string folder = fmt::format("sys/devices/system/cpu/cpu{}/", core);
    root.write(folder + "topology/physical_package_id", std::to_string(core % physical / cores.per_socket));
    std::string siblings;
    for (int t = 0; t < cores.threads; ++t) {
      siblings += fmt::format("{}{}", t == 0 ? "" : ",", core % physical + t * physical);
    }
    root.write(folder + "topology/thread_siblings_list", siblings);
  }
  root.write("sys/devices/system/cpu/cpu0/cache/index0/level", "1");
  root.write("sys/devices/system/cpu/cpu0/cache/index0/type", "Data");
  root.write("sys/devices/system/cpu/cpu0/cache/index0/size", "48K");
  root.write("sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_list", "0");
  root.write("sys/devices/system/cpu/cpu0/cache/index1/level", "1");
  root.write("sys/devices/system/cpu/cpu0/cache/index1/type", "Instruction");
  for (int node = 0; node < cores.sockets; ++node) {
    const int first = node * cores.per_socket;
    std::string list = fmt::format("{}-{}", first, first + cores.per_socket - 1);
    if (cores.threads == 2) list += fmt::format(",{}-{}", first + physical, first + physical + cores.per_socket - 1);
    root.write(fmt::format("sys/devices/system/node/node{}/cpulist", node), list);
  }
}

/// Probes of a machine on which nothing is refused and all is there.
inline Probes good_probes() {
  return {.shm_bytes = std::int64_t{32} << 30, .programs_path = {"/usr/bin"}, .backends = {"openmpi"}};
}

}  // namespace tutti::harness::machine
