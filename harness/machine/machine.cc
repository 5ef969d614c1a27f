// SPDX-License-Identifier: Apache-2.0
#include "harness/machine/machine.h"

#include <array>
#include <charconv>
#include <fstream>
#include <iterator>
#include <sys/utsname.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "harness/machine/allowed_cores.h"
#include "harness/machine/caches.h"
#include "tutti_version.h"

namespace tutti::harness::machine {
namespace {

constexpr const char* kUnknown = "unknown";

/// The file's content without the last line end; empty where it cannot be read.
std::string content_of(const std::string& path) {
  std::ifstream file(path);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

/// The machine id. Where there is no id, the host's name, but not that of a container, which has another one each time.
std::string identity_of(const char* host_name) {
  const std::string id = content_of("/etc/machine-id");
  const bool is_container = ::access("/.dockerenv", F_OK) == 0 || ::access("/run/.containerenv", F_OK) == 0;
  return !id.empty() || is_container ? id : std::string(host_name);
}

std::string digits_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a: the same in every build
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return fmt::format("{:08x}", (hash >> 32U) ^ (hash & 0xffffffffU));
}

}  // namespace

std::string cpu_model_of(std::string_view cpuinfo) {
  for (const std::string_view key : {"\nmodel name", "\nModel", "\nHardware", "\nCPU part"}) {
    // The first entry may be the first line.
    const bool is_first_line = cpuinfo.starts_with(key.substr(1));
    const std::size_t at = is_first_line ? 0 : cpuinfo.find(key);
    if (at == std::string_view::npos) continue;
    const std::size_t start = cpuinfo.find_first_not_of(" \t", cpuinfo.find(':', at) + 1);
    const std::size_t end = cpuinfo.find('\n', start);
    if (start < end && start != std::string_view::npos) return std::string(cpuinfo.substr(start, end - start));
  }
  return kUnknown;
}

std::int64_t cache_bytes_of(std::string_view size) {
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(size.data(), size.data() + size.size(), value);
  const std::string_view suffix = size.substr(static_cast<std::size_t>(end - size.data()));
  if (failure != std::errc() || value < 0) return 0;
  if (suffix == "K") return value << 10;
  if (suffix == "M") return value << 20;
  return suffix.empty() ? value : 0;
}

Machine describe_machine() {
  const std::vector<int> cores = allowed_cores();
  Machine machine;
  machine.cpu_model = cpu_model_of(content_of("/proc/cpuinfo"));
  machine.cores_allowed = static_cast<std::int64_t>(cores.size());
  machine.cores_online = sysconf(_SC_NPROCESSORS_ONLN);
  machine.caches = caches_of(Tree("/"), cores.front());
  machine.memory_bytes = std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  utsname system{};
  machine.kernel = kUnknown;
  if (uname(&system) == 0) {
    machine.kernel = fmt::format("{} {} {}", system.sysname, system.release, system.machine);
    machine.hostname = system.nodename;
    machine.identity = identity_of(system.nodename);
  }
#ifdef __clang__
  machine.compiler = "clang " __clang_version__;
#else
  machine.compiler = "gcc " __VERSION__;
#endif
  machine.build_type = TUTTI_BUILD_TYPE;
  machine.commit = TUTTI_COMMIT;
  return machine;
}

std::string fingerprint_of(const Machine& machine) {
  return digits_of(fmt::format("{}\n{}\n{}", machine.cpu_model, machine.cores_allowed, machine.identity));
}

std::string fingerprint_of(std::span<const std::string> machines) {
  return machines.size() == 1 ? machines.front() : digits_of(fmt::format("{}", fmt::join(machines, "\n")));
}

std::string running_kernel() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

std::string machine_to_json(const Machine& machine) {
  nlohmann::ordered_json object{{"cpu_model", machine.cpu_model},
                                {"cores_allowed", machine.cores_allowed},
                                {"cores_online", machine.cores_online},
                                {"caches", nlohmann::ordered_json::array()},
                                {"memory_bytes", machine.memory_bytes},
                                {"kernel", machine.kernel},
                                {"compiler", machine.compiler},
                                {"build_type", machine.build_type},
                                {"commit", machine.commit}};
  for (const Cache& cache : machine.caches) {
    object["caches"].push_back(
        {{"level", cache.level}, {"type", cache.type}, {"bytes", cache.bytes}, {"shared_cpus", cache.shared_cpus}});
  }
  if (!machine.hostname.empty()) object["hostname"] = machine.hostname;
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace tutti::harness::machine
