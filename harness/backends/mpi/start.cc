// SPDX-License-Identifier: Apache-2.0
#include "harness/backends/mpi/start.h"

#include <cstdlib>
#include <ifaddrs.h>
#include <initializer_list>
#include <netdb.h>
#include <netinet/in.h>
#include <sstream>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "harness/backends/mpi/library.h"

namespace tutti::backend_mpi {
namespace {

using Words = std::vector<std::string>;
using Variables = std::vector<std::pair<std::string, std::string>>;

struct Start {
  Words words;
  Variables environment;
  Words leaves;
  Words across = {};
  Variables pretended = {};
};

void add(Words& words, std::initializer_list<const char*> more) { words.insert(words.end(), more.begin(), more.end()); }

/// Of one host and of several.
Words open_mpi_words(const std::string& mpirun) {
  Words words{mpirun};
  add(words, {"--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--stdin", "none", "-np", "{ranks}"});
  for (const char* variable : {"TUTTI_CONTROL", "TUTTI_BACKENDS", "TUTTI_TRANSPORTS"}) add(words, {"-x", variable});
  const auto set = [&](const char* name, const char* value) { add(words, {"--mca", name, value}); };
  // Whatever batch system we are in, no foreign node is used.
  set("ras", "^slurm,gridengine,tm,lsf,loadleveler");
  // The path that Open MPI itself takes, named so that no network driver is probed, or complains.
  set("pml", "ob1");
  // Its first choice here; to ask the others it makes a file in /dev/shm, which a rank killed just then leaves behind.
  set("shmem", "mmap");
  set("mpi_yield_when_idle", "{crowded}");
  // Our ranks die at once when asked to; the default is to sleep for a second before making sure.
  set("odls_base_sigkill_timeout", "0");
  // One line in the log for each rank that ends, in order: mpirun's last words now and then leave out which rank was
  // first.
  set("odls_base_verbose", "5");
  return words;
}

Start open_mpi(const std::string& mpirun) {
  Start start{.words = open_mpi_words(mpirun), .environment = {}, .leaves = {}, .across = open_mpi_words(mpirun)};
  const auto set = [](Words& words, const char* name, const char* value) { add(words, {"--mca", name, value}); };
  set(start.words, "plm", "isolated");  // no ssh is needed
  set(start.words, "btl", "self,vader");
  for (const char* name :
       {"btl_vader_backing_directory", "osc_sm_backing_directory", "osc_rdma_backing_directory", "orte_tmpdir_base"}) {
    set(start.words, name, "{directory}");
  }
  add(start.across, {"-H", "{hosts}", "--map-by", "slot"});
  set(start.across, "plm", "rsh");
  set(start.across, "plm_rsh_agent", "{agent}");
  // Hosts whose names are alike up to the first dot would be one host to it.
  set(start.across, "orte_keep_fqdn_hostnames", "1");
  set(start.across, "plm_rsh_no_tree_spawn", "1");  // hosts need not reach each other by the agent
  set(start.across, "btl", "self,vader,tcp");
  set(start.across, "btl_tcp_if_include", "{subnet}");
  set(start.across, "oob_tcp_if_include", "{subnet}");
  return start;
}

/// Of MPICH, and of all that is made of it. Ranks are bound by tutti.
Start hydra(const std::string& mpirun) {
  Start start;
  start.words = start.across = {mpirun, "-rmk", "user", "-bind-to", "none", "-n", "{ranks}"};
  add(start.words, {"-launcher", "fork"});
  add(start.across, {"-launcher", "ssh", "-launcher-exec", "{agent_program}", "-disable-x", "-hosts", "{hosts}",
                     "-localhost", "{address}"});
  start.leaves = {"/dev/shm/mpich_shar_tmp", "/tmp/mpich_shar_tmp"};
  start.pretended = {{"MPIR_CVAR_NOLOCAL", "1"}, {"UCX_TLS", "tcp,self"}};
  return start;
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Its mpirun is a script that takes the next program from PATH, where another MPI's may come first.
Start intel_mpi(const std::string& mpirun) {
  Start start;
  const std::string folder = mpirun.substr(0, mpirun.rfind('/'));
  start.environment = {{"I_MPI_FABRICS", "shm"}, {"I_MPI_PIN", "0"}, {"I_MPI_THREAD_YIELD", "{crowded}"}};
  start.environment.emplace_back("PATH", folder + ":" + variable("PATH"));
  if (variable("I_MPI_ROOT").empty()) {
    start.environment.emplace_back("I_MPI_ROOT", folder.substr(0, folder.rfind('/')));
  }
  start.words = {mpirun, "-bootstrap", "fork", "-n", "{ranks}"};
  start.leaves = {"/dev/shm/Intel_MPI_"};
  return start;
}

bool can_execute(const std::string& path) { return ::access(path.c_str(), X_OK) == 0; }

/// The path itself, or a program of its name in PATH, or one without its suffix; else the path, which then fails.
std::string where_it_is(const std::string& path) {
  if (can_execute(path)) return path;
  const std::string name = path.substr(path.rfind('/') + 1);
  for (const std::string& one : {name, name.substr(0, name.find('.'))}) {
    std::istringstream folders(variable("PATH"));
    for (std::string folder; std::getline(folders, folder, ':');) {
      if (can_execute(folder + "/" + one)) return folder + "/" + one;
    }
  }
  return path;
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  result += escaped(text);
  result += '"';
  return result;
}

std::string list_of(const Words& words) {
  std::string text = "[";
  for (const std::string& word : words) text.append(text.size() > 1 ? ", " : "").append(quoted(word));
  return text + "]";
}

std::string object_of(const Variables& variables) {
  std::string text = "{";
  for (const auto& [name, value] : variables) {
    text.append(text.size() > 1 ? ", " : "").append(quoted(name)).append(": ").append(quoted(value));
  }
  return text + "}";
}

std::string text_of(const sockaddr* address) {
  if (address == nullptr) return "";
  const bool is_ipv6 = address->sa_family == AF_INET6;
  if (!is_ipv6 && address->sa_family != AF_INET) return "";
  const auto bytes = static_cast<socklen_t>(is_ipv6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
  char text[NI_MAXHOST] = "";
  return getnameinfo(address, bytes, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0 ? text : "";
}

/// Empty where none has it.
std::string interface_with(const std::string& address) {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return "";
  std::string name;
  for (const ifaddrs* one = first; one != nullptr && name.empty(); one = one->ifa_next) {
    if (text_of(one->ifa_addr) == address) name = one->ifa_name;
  }
  freeifaddrs(first);
  return name;
}

}  // namespace

// Open MPI is told a network by its start command. UCX, which MPICH may be built on, would take any interface that is
// up.
void take_interface_of(const std::string& address) {
  const std::string interface = interface_with(address);
  if (!interface.empty()) setenv("UCX_NET_DEVICES", interface.c_str(), 0);
}

std::string start_command(const std::string& mpirun) {
  const std::string library = library_identity().name;
  const std::string program = where_it_is(mpirun);
  const Start start = library == "Open MPI"    ? open_mpi(program)
                      : library == "Intel MPI" ? intel_mpi(program)
                                               : hydra(program);
  std::string text = "{\"command\": " + list_of(start.words) + ", \"environment\": " + object_of(start.environment) +
                     ", \"leaves\": " + list_of(start.leaves);
  if (!start.across.empty()) {
    text += ", \"across\": " + list_of(start.across) + ", \"pretended\": " + object_of(start.pretended);
  }
  return text + "}";
}

}  // namespace tutti::backend_mpi
