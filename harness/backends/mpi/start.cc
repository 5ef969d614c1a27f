// SPDX-License-Identifier: Apache-2.0
#include "harness/backends/mpi/start.h"

#include <cstdlib>
#include <sstream>
#include <unistd.h>
#include <utility>
#include <vector>

#include "harness/backends/mpi/library.h"

namespace tutti::backend_mpi {
namespace {

struct Start {
  std::vector<std::string> words;
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<std::string> leaves;
};

Start open_mpi(std::string mpirun) {
  Start start;
  start.words = {std::move(mpirun),
                 "--allow-run-as-root",
                 "--oversubscribe",
                 "--bind-to",
                 "none",
                 "--stdin",
                 "none",
                 "-np",
                 "{ranks}",
                 "-x",
                 "TUTTI_CONTROL"};
  const auto set = [&](const char* name, const char* value) {
    start.words.insert(start.words.end(), {"--mca", name, value});
  };
  // One host, whatever batch system we are in: no ssh is needed, and no foreign node is used.
  set("plm", "isolated");
  set("ras", "^slurm,gridengine,tm,lsf,loadleveler");
  // The path that Open MPI itself takes on one host, named so that no network driver is probed, or complains.
  set("pml", "ob1");
  set("btl", "self,vader");
  // Its first choice here; to ask the others it makes a file in /dev/shm, which a rank killed just then leaves behind.
  set("shmem", "mmap");
  set("btl_vader_backing_directory", "{directory}");
  set("osc_sm_backing_directory", "{directory}");
  set("osc_rdma_backing_directory", "{directory}");
  set("orte_tmpdir_base", "{directory}");
  set("mpi_yield_when_idle", "{crowded}");
  // Our ranks die at once when asked to; the default is to sleep for a second before making sure.
  set("odls_base_sigkill_timeout", "0");
  // One line in the log for each rank that ends, in order: mpirun's last words now and then leave out which rank was
  // first.
  set("odls_base_verbose", "5");
  return start;
}

/// Of MPICH, and of all that is made of it. Ranks are bound by tutti.
Start hydra(std::string mpirun) {
  Start start;
  start.words = {std::move(mpirun), "-launcher", "fork", "-rmk", "user", "-bind-to", "none", "-n", "{ranks}"};
  start.leaves = {"/dev/shm/mpich_shar_tmp", "/tmp/mpich_shar_tmp"};
  return start;
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Its mpirun is a script that takes the next program from PATH, where another MPI's may come first.
Start intel_mpi(std::string mpirun) {
  Start start;
  const std::string folder = mpirun.substr(0, mpirun.rfind('/'));
  start.environment = {{"I_MPI_FABRICS", "shm"}, {"I_MPI_PIN", "0"}, {"I_MPI_THREAD_YIELD", "{crowded}"}};
  start.environment.emplace_back("PATH", folder + ":" + variable("PATH"));
  if (variable("I_MPI_ROOT").empty()) {
    start.environment.emplace_back("I_MPI_ROOT", folder.substr(0, folder.rfind('/')));
  }
  start.words = {std::move(mpirun), "-bootstrap", "fork", "-n", "{ranks}"};
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

}  // namespace

std::string start_command(const std::string& mpirun) {
  const std::string library = library_identity().name;
  const std::string program = where_it_is(mpirun);
  const Start start = library == "Open MPI"    ? open_mpi(program)
                      : library == "Intel MPI" ? intel_mpi(program)
                                               : hydra(program);
  std::string text = "{\"command\": [";
  const char* separator = "";
  for (const std::string& word : start.words) {
    text.append(separator).append(quoted(word));
    separator = ", ";
  }
  text += "], \"environment\": {";
  separator = "";
  for (const auto& [name, value] : start.environment) {
    text.append(separator).append(quoted(name)).append(": ").append(quoted(value));
    separator = ", ";
  }
  text += "}, \"leaves\": [";
  separator = "";
  for (const std::string& path : start.leaves) {
    text.append(separator).append(quoted(path));
    separator = ", ";
  }
  return text + "]}";
}

}  // namespace tutti::backend_mpi
