// SPDX-License-Identifier: Apache-2.0
#include "impl/bootstrap/rendezvous.h"

#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <unistd.h>
#include <vector>

#include <fmt/ranges.h>

#include "impl/types/host_list.h"
#include "impl/types/names.h"

namespace tutti {
namespace {

/// The variables of one kind of starter; an empty name: it has none.
struct Starter {
  const char* name;
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
};
constexpr std::array kStarters{
    Starter{"RANK and WORLD_SIZE", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    Starter{"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
            "OMPI_COMM_WORLD_LOCAL_SIZE"},
    Starter{"mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
};
/// Only within a step: a batch script has SLURM_PROCID too, and is one process.
constexpr Starter kSlurm{"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", ""};
/// In a step the tasks of this step, too; only where it does not say them itself.
constexpr const char* kTasksOfJob = "SLURM_NTASKS";

constexpr std::size_t kMostNameBytes = 100;  // 107 fit an address

/// Launchers whose variables are only known well enough to say so.
struct UnknownStarter {
  const char* rank;
  const char* size;  ///< empty: it has none
};
constexpr std::array kUnknownStarters{
    UnknownStarter{"FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
    UnknownStarter{"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"},
    UnknownStarter{"PALS_RANKID", ""},
    UnknownStarter{"ALPS_APP_PE", ""},
    UnknownStarter{"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
    UnknownStarter{"HOROVOD_RANK", "HOROVOD_SIZE"},
    UnknownStarter{"AWS_BATCH_JOB_NODE_INDEX", "AWS_BATCH_JOB_NUM_NODES"},
    UnknownStarter{"JOB_COMPLETION_INDEX", ""},
};

/// `FLUX_TASK_RANK is 1 and FLUX_JOB_SIZE is 4: ...`; empty where there is no such variable, or one process.
std::string unknown_starter(const Environment& environment) {
  for (const UnknownStarter& one : kUnknownStarters) {
    const auto rank = environment(one.rank), size = environment(one.size);
    const bool has_size = *one.size != '\0';
    if (!rank || (has_size && size.value_or("1") == "1")) continue;
    return fmt::format(
        "{} is '{}'{}: tutti does not join jobs of this launcher, and runs alone in this process; RANK=${}, "
        "WORLD_SIZE, "
        "LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT make it one of a job",
        one.rank, shown(*rank), has_size ? fmt::format(" and {} is '{}'", one.size, shown(*size)) : "", one.rank);
  }
  return {};
}

class Reader {
 public:
  explicit Reader(const Environment& environment) : environment_(environment) {}

  Result<World> read() {
    for (const Starter& starter : kStarters) TUTTI_RETURN_IF_ERROR(hear(starter));
    const bool is_step = environment_("SLURM_STEP_ID").has_value();
    if (world_.started_by.empty() && is_step) {
      Starter slurm = kSlurm;
      if (!environment_(slurm.size) && environment_(kTasksOfJob)) slurm.size = kTasksOfJob;
      TUTTI_RETURN_IF_ERROR(hear(slurm));
    }
    // PMI that srun serves says nothing of hosts.
    const bool is_of_srun = environment_("SLURM_PROCID") == std::to_string(world_.process);
    if (is_step && is_of_srun && world_.local_processes == world_.processes) TUTTI_RETURN_IF_ERROR(hear_nodes());
    if (world_.started_by.empty()) {
      world_.unknown_starter = unknown_starter(environment_);
      return check_pmix();
    }
    TUTTI_RETURN_IF_ERROR(check_pmix().status());
    if (world_.processes > 1) TUTTI_RETURN_IF_ERROR(name_meeting());
    return world_;
  }

 private:
  /// Nothing where the variable is not set.
  Result<std::optional<int>> number(const std::string& name) const {
    const auto text = name.empty() ? std::nullopt : environment_(name);
    if (!text) return std::optional<int>();
    int value = -1;
    const auto [end, failure] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (failure == std::errc() && end == text->data() + text->size() && value >= 0) return std::optional(value);
    return error(Code::invalid_argument, "{} is '{}': it must be a whole number from 0", name, *text);
  }

  /// Takes what one starter says, or compares it with what another one has said.
  Status hear(const Starter& starter) {
    TUTTI_ASSIGN_OR_RETURN(const auto rank, number(starter.rank));
    TUTTI_ASSIGN_OR_RETURN(const auto size, number(starter.size));
    if (!rank && !size) return {};
    if (!rank || !size) {
      return error(Code::invalid_argument, "{} is set and {} is not: set both, or neither to run alone",
                   rank ? starter.rank : starter.size, rank ? starter.size : starter.rank);
    }
    if (*size < 1) return error(Code::invalid_argument, "{} is {}: at least 1", starter.size, *size);
    if (*rank >= *size) {
      return error(Code::invalid_argument, "{} is {} and {} is {}: ranks are 0 to {}", starter.rank, *rank,
                   starter.size, *size, *size - 1);
    }
    if (world_.started_by.empty()) {
      world_.process = *rank;
      world_.processes = *size;
      rank_name_ = starter.rank;
      size_name_ = starter.size;
      is_pmi_ = starter.rank == std::string("PMI_RANK");
      world_.started_by = starter.name == std::string("RANK and WORLD_SIZE")
                              ? starter.name
                              : fmt::format("{} ({})", starter.name, starter.rank);
      return hear_local(starter);
    }
    if (*rank != world_.process) return contradiction(rank_name_, world_.process, starter.rank, *rank);
    if (*size != world_.processes) return contradiction(size_name_, world_.processes, starter.size, *size);
    return {};
  }

  Status hear_local(const Starter& starter) {
    TUTTI_ASSIGN_OR_RETURN(const auto local_rank, number(starter.local_rank));
    TUTTI_ASSIGN_OR_RETURN(const auto local_size, number(starter.local_size));
    world_.local_process = local_rank.value_or(world_.process);
    world_.local_processes = local_size.value_or(world_.processes);
    if (world_.local_processes > world_.processes || world_.local_process >= world_.local_processes) {
      return error(Code::invalid_argument, "{} is {} of {} on this host, and {} is {}: ranks of a host are among all",
                   local_rank ? starter.local_rank : starter.rank, world_.local_process, world_.local_processes,
                   starter.size, world_.processes);
    }
    if (world_.local_processes == world_.processes) return {};
    world_.spread = fmt::format("{} is {}", starter.local_size, world_.local_processes);
    return {};
  }

  /// srun says how many tasks each node has.
  Status hear_nodes() {
    TUTTI_ASSIGN_OR_RETURN(const auto nodes, number("SLURM_STEP_NUM_NODES"));
    if (nodes.value_or(1) <= 1) return {};
    TUTTI_ASSIGN_OR_RETURN(const auto node, number("SLURM_NODEID"));
    TUTTI_ASSIGN_OR_RETURN(const auto local_rank, number("SLURM_LOCALID"));
    const auto text = environment_("SLURM_STEP_TASKS_PER_NODE");
    std::vector<int> tasks;
    if (text) {
      auto parsed = parse_tasks_per_node(*text);
      if (!parsed.is_ok())
        return error(Code::invalid_argument, "SLURM_STEP_TASKS_PER_NODE: {}", parsed.status().message());
      tasks = std::move(parsed).value();
    }
    if (!node || !local_rank || *node >= static_cast<int>(tasks.size())) {
      return error(
          Code::invalid_argument,
          "SLURM_STEP_NUM_NODES is {}, and SLURM_NODEID, SLURM_LOCALID and SLURM_STEP_TASKS_PER_NODE ('{}') do "
          "not say which tasks are on this node",
          *nodes, shown(text.value_or("")));
    }
    world_.local_process = *local_rank;
    world_.local_processes = tasks[static_cast<std::size_t>(*node)];
    world_.spread = fmt::format("SLURM_STEP_NUM_NODES is {}", *nodes);
    return {};
  }

  [[nodiscard]] static Status contradiction(const char* one, int is, const char* other, int other_is) {
    return error(Code::invalid_argument, "{} is {} and {} is {}: unset the one that does not belong to this job", one,
                 is, other, other_is);
  }

  /// PMIx gives the rank, but the size only by its library.
  Result<World> check_pmix() const {
    TUTTI_ASSIGN_OR_RETURN(const auto rank, number("PMIX_RANK"));
    if (!rank) return world_;
    if (world_.started_by.empty()) {
      return error(Code::invalid_argument, "PMIX_RANK is {} and nothing says of how many: set RANK and WORLD_SIZE",
                   *rank);
    }
    if (*rank != world_.process) return contradiction(rank_name_, world_.process, "PMIX_RANK", *rank);
    return world_;
  }

  Status name_meeting() {
    std::vector<std::string> parts;
    const auto add = [&](const std::string& variable) {
      if (const auto value = environment_(variable)) parts.push_back(*value);
    };
    for (const char* variable : {"TUTTI_LAUNCH", "PMIX_NAMESPACE"}) add(variable);
    if (environment_("SLURM_JOB_ID") && environment_("SLURM_STEP_ID")) {
      add("SLURM_JOB_ID");
      add("SLURM_STEP_ID");
    }
    const bool has_address = environment_("MASTER_ADDR").has_value();
    const char* const port = environment_("MASTER_PORT") ? "MASTER_PORT" : "TUTTI_PORT";
    const bool has_port = environment_(port).has_value();
    if (has_address && has_port) {
      add("MASTER_ADDR");
      add(port);
    }
    add("TUTTI_INIT");
    if (parts.empty() && has_address != has_port) {
      return error(Code::invalid_argument, "{} is set and {} is not: ranks meet where both say",
                   has_address ? "MASTER_ADDR" : "MASTER_PORT", has_address ? "MASTER_PORT" : "MASTER_ADDR");
    }
    // MPICH's proxy starts all ranks of a host itself, and names the job nowhere.
    if (parts.empty() && is_pmi_) parts.push_back(fmt::format("child-of-{}", getppid()));
    if (parts.empty()) {
      return error(
          Code::invalid_argument,
          "{} is {} of {}, and nothing names the job: set MASTER_ADDR and MASTER_PORT, or TUTTI_INIT, the same "
          "on all ranks",
          rank_name_, world_.process, world_.processes);
    }
    world_.meeting = fmt::format("tutti-meeting-{}-{}", getuid(), fmt::join(parts, "-"));
    if (world_.meeting.size() <= kMostNameBytes) return {};
    std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a: the same in every process
    for (const char c : world_.meeting) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    world_.meeting = fmt::format("tutti-meeting-{}-{:016x}", getuid(), hash);
    return {};
  }

  const Environment& environment_;
  World world_;
  const char* rank_name_ = "";
  const char* size_name_ = "";
  bool is_pmi_ = false;
};

}  // namespace

Result<World> world_from(const Environment& environment) { return Reader(environment).read(); }

Environment environment_here() {
  return [](const std::string& name) {
    const char* text = std::getenv(name.c_str());
    return text == nullptr || *text == '\0' ? std::nullopt : std::optional<std::string>(text);
  };
}

Result<World> world_from_environment() { return world_from(environment_here()); }

Status check_one_host(const World& world) {
  if (!world.spans_hosts()) return {};
  return error(Code::unavailable, "this job of {} ranks spans several hosts ({}): they must all be on one",
               world.processes, world.spread);
}

void let_the_first_speak(const World& world) {
  if (world.process > 0) let_the_first_speak();
}

void let_the_first_speak() {
  constexpr std::chrono::milliseconds kToSpeak(500);
  std::this_thread::sleep_for(kToSpeak);
}

}  // namespace tutti
