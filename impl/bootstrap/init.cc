// SPDX-License-Identifier: Apache-2.0
#include "impl/bootstrap/init.h"

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "impl/types/descriptor.h"

namespace tutti {
namespace {

constexpr const char* kMakeSecret = "openssl rand -hex 32 > FILE; chmod 600 FILE";
constexpr int kLastPort = 65535;
// Below those that systems hand out themselves.
constexpr std::uint64_t kFirstDrawnPort = 20'000;
constexpr std::uint64_t kDrawnPorts = 10'000;

std::optional<int> port_from(std::string_view text) {
  int port = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), port);
  const bool is_number = failure == std::errc() && end == text.data() + text.size();
  return is_number && port > 0 && port <= kLastPort ? std::optional(port) : std::nullopt;
}

Result<int> port_of(const Environment& environment, const char* name) {
  const std::string text = environment(name).value_or("");
  const auto port = port_from(text);
  if (port) return *port;
  return error(Code::invalid_argument, "{} is '{}': a port is 1 to {}", name, text, kLastPort);
}

Result<Init> from_environment(const Environment& environment) {
  Init init{.said_by = "MASTER_ADDR and MASTER_PORT"};
  if (const auto host = environment("MASTER_ADDR")) {
    init.host = *host;
    if (environment("TUTTI_PORT")) {
      TUTTI_ASSIGN_OR_RETURN(init.port, port_of(environment, "TUTTI_PORT"));
      init.said_by = "MASTER_ADDR and TUTTI_PORT";
      return init;
    }
    if (!environment("MASTER_PORT")) {
      return error(Code::invalid_argument, "MASTER_ADDR is set, and neither TUTTI_PORT nor MASTER_PORT is");
    }
    TUTTI_ASSIGN_OR_RETURN(init.port, port_of(environment, "MASTER_PORT"));
    if (init.port == kLastPort) return error(Code::invalid_argument, "MASTER_PORT is {}: set TUTTI_PORT", kLastPort);
    ++init.port;
    return init;
  }
  const auto nodes = environment("SLURM_STEP_NODELIST");
  const auto job = environment("SLURM_JOB_ID"), step = environment("SLURM_STEP_ID");
  if (nodes && job && step) {
    init.host = first_of_nodelist(*nodes);
    init.said_by = "SLURM_STEP_NODELIST";
    if (environment("TUTTI_PORT")) {
      TUTTI_ASSIGN_OR_RETURN(init.port, port_of(environment, "TUTTI_PORT"));
      return init;
    }
    std::uint64_t sum = 0;
    for (const char c : *job + "." + *step) sum = sum * 31 + static_cast<unsigned char>(c);
    init.port = static_cast<int>(kFirstDrawnPort + sum % kDrawnPorts);
    return init;
  }
  return error(
      Code::unavailable,
      "nothing says where the hosts meet: set MASTER_ADDR and TUTTI_PORT, or --init tcp://HOST:PORT with a free "
      "port of rank 0's host, or --init file://PATH in a folder that all hosts share");
}

}  // namespace

Result<Init> init_from(std::string_view url, const Environment& environment) {
  const std::string text(url.empty() ? environment("TUTTI_INIT").value_or("env://") : std::string(url));
  const auto rest = [&](std::string_view scheme) { return text.substr(scheme.size()); };
  if (text == "env://") return from_environment(environment);
  if (text.starts_with("file://")) {
    Init init{.host = {}, .port = 0, .file = rest("file://"), .said_by = text};
    if (init.file.starts_with('/') && init.file.size() > 1 && !init.file.ends_with('/')) return init;
    return error(Code::invalid_argument, "'{}': the path begins with / and names a file: file:///shared/meeting", text);
  }
  if (text.starts_with("tcp://")) {
    const std::string address = rest("tcp://");
    const std::size_t colon = address.rfind(':');
    const auto port =
        colon == std::string::npos ? std::nullopt : port_from(std::string_view(address).substr(colon + 1));
    std::string host = address.substr(0, std::min(colon, address.size()));
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    if (port && !host.empty()) return Init{.host = std::move(host), .port = *port, .file = {}, .said_by = text};
    return error(Code::invalid_argument, "'{}': it takes a host and a port of 1 to {}: tcp://192.0.2.7:29400", text,
                 kLastPort);
  }
  return error(Code::invalid_argument, "'{}': it is env://, tcp://HOST:PORT or file://PATH", text);
}

std::string interface_from(const Environment& environment) { return environment("TUTTI_INTERFACE").value_or(""); }

Result<tcp::Secret> job_secret_from(const Environment& environment) {
  const auto path = environment("TUTTI_SECRET_FILE");
  if (!path) {
    const auto text = environment("TUTTI_SECRET");
    if (!text) {
      return error(Code::unavailable,
                   "processes of several hosts know each other by a secret, and there is none: `{}`, and "
                   "TUTTI_SECRET_FILE=FILE on all of them, or its text in TUTTI_SECRET",
                   kMakeSecret);
    }
    const auto secret = tcp::secret_from(*text);
    return secret.is_ok() ? secret : error(Code::invalid_argument, "TUTTI_SECRET: {}", secret.status().message());
  }
  const Descriptor file(::open(path->c_str(), O_RDONLY | O_CLOEXEC));
  struct stat about = {};
  if (!file.is_open() || ::fstat(file.get(), &about) != 0) {
    const int failure = errno;
    const std::string make = failure == ENOENT ? fmt::format("; `{}` makes one", kMakeSecret) : "";
    return error(Code::unavailable, "TUTTI_SECRET_FILE: cannot read '{}': {}{}", *path, std::strerror(failure), make);
  }
  if ((about.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return error(Code::unavailable, "TUTTI_SECRET_FILE: others may read '{0}' (mode {1:04o}): chmod 600 {0}", *path,
                 about.st_mode & 07777U);
  }
  std::string text(256, '\0');
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(::read(file.get(), text.data(), text.size()), 0)));
  while (text.ends_with('\n') || text.ends_with(' ')) text.pop_back();
  const auto secret = tcp::secret_from(text);
  return secret.is_ok()
             ? secret
             : error(Code::invalid_argument, "TUTTI_SECRET_FILE: '{}': {}", *path, secret.status().message());
}

std::uint64_t hash_of_start(const World& world, const Environment& environment) {
  std::vector<const char*> names{"TUTTI_LAUNCH"};
  if (world.started_by.starts_with("mpirun")) names.push_back("PMIX_NAMESPACE");
  if (world.started_by.starts_with("srun")) names.insert(names.end(), {"SLURM_JOB_ID", "SLURM_STEP_ID"});
  if (world.started_by.starts_with("RANK")) names.push_back("TORCHELASTIC_RUN_ID");
  std::uint64_t hash = 0;
  for (const char* const name : names) {
    const auto value = environment(name);
    if (!value) continue;
    if (hash == 0) hash = 0xcbf29ce484222325ULL;  // FNV-1a: the same in every process
    for (const char c : fmt::format("{}={}\n", name, *value))
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  }
  return hash;
}

std::string first_of_nodelist(std::string_view list) {
  const std::size_t end = list.find_first_of(",[");
  std::string first(list.substr(0, end));
  if (end == std::string_view::npos || list[end] == ',') return first;
  list.remove_prefix(end + 1);
  first += list.substr(0, list.find_first_of(",-]"));
  const std::size_t close = std::min(list.find(']'), list.size());
  list.remove_prefix(std::min(close + 1, list.size()));
  return first + std::string(list.substr(0, list.find(',')));
}

}  // namespace tutti
