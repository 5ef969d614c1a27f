// SPDX-License-Identifier: Apache-2.0
#include "impl/bootstrap/init.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "impl/types/descriptor.h"
#include "impl/types/host_list.h"
#include "impl/types/host_name.h"
#include "impl/types/names.h"
#include "impl/types/number.h"

namespace tutti {
namespace {

constexpr const char* kMakeSecret = "openssl rand -hex 32 > FILE; chmod 600 FILE";
// Below those that systems hand out themselves.
constexpr std::uint64_t kFirstDrawnPort = 20'000;
constexpr std::uint64_t kDrawnPorts = 10'000;

/// An error that begins with the variable or option whose text it is about.
Status about(std::string_view name, const Status& status) {
  return error(status.code(), "{}: {}", name, status.message());
}

Result<int> port_of(const Environment& environment, const char* name) {
  const auto port = parse_number(environment(name).value_or(""), "a port", 1, kMostPort);
  return port.is_ok() ? port : about(name, port.status());
}

Result<Init> from_environment(const Environment& environment) {
  Init init{.said_by = "MASTER_ADDR and MASTER_PORT"};
  if (const auto host = environment("MASTER_ADDR")) {
    auto parsed = parse_lone_host(*host);
    if (!parsed.is_ok()) return about("MASTER_ADDR", parsed.status());
    init.host = std::move(parsed).value();
    if (environment("TUTTI_PORT")) {
      TUTTI_ASSIGN_OR_RETURN(init.port, port_of(environment, "TUTTI_PORT"));
      init.said_by = "MASTER_ADDR and TUTTI_PORT";
      return init;
    }
    if (!environment("MASTER_PORT")) {
      return error(Code::invalid_argument, "MASTER_ADDR is set, and neither TUTTI_PORT nor MASTER_PORT is");
    }
    TUTTI_ASSIGN_OR_RETURN(init.port, port_of(environment, "MASTER_PORT"));
    if (init.port == kMostPort) return error(Code::invalid_argument, "MASTER_PORT is {}: set TUTTI_PORT", kMostPort);
    ++init.port;
    return init;
  }
  const auto nodes = environment("SLURM_STEP_NODELIST");
  const auto job = environment("SLURM_JOB_ID"), step = environment("SLURM_STEP_ID");
  if (nodes && job && step) {
    const auto names = parse_nodelist(*nodes);
    if (!names.is_ok()) return about("SLURM_STEP_NODELIST", names.status());
    init.host = names.value().front();
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
    return error(Code::invalid_argument, "'{}': the path begins with / and names a file: file:///shared/meeting",
                 shown(text));
  }
  if (text.starts_with("tcp://")) {
    auto place = parse_host_and_port(rest("tcp://"));
    if (!place.is_ok()) return about(fmt::format("'{}'", shown(text)), place.status());
    return Init{.host = std::move(place.value().host), .port = place.value().port, .file = {}, .said_by = text};
  }
  return error(Code::invalid_argument, "'{}': it is env://, tcp://HOST:PORT or file://PATH", shown(text));
}

Result<std::string> interface_from(const Environment& environment) {
  const auto interface = environment("TUTTI_INTERFACE");
  if (!interface) return std::string();
  const Status status = check_interface(*interface);
  return status.is_ok() ? Result<std::string>(*interface) : about("TUTTI_INTERFACE", status);
}

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
  const Descriptor file(::open(path->c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
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
  constexpr int kPatienceMs = 10'000;  // for a pipe that is not yet written
  pollfd wait{.fd = file.get(), .events = POLLIN, .revents = 0};
  if (::poll(&wait, 1, kPatienceMs) == 0) {
    return error(Code::unavailable, "TUTTI_SECRET_FILE: nothing came from '{}' for {} s", *path, kPatienceMs / 1000);
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

}  // namespace tutti
