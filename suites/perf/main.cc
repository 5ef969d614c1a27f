// SPDX-License-Identifier: Apache-2.0
// The drop-in programs: read the name, the flags and the environment, meet the other processes, run a thread per rank,
// report. Whatever goes wrong in one process ends all of them.
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <numeric>
#include <pthread.h>
#include <sched.h>
#include <thread>
#include <unistd.h>

#include "harness/hosts/joined_job.h"
#include "harness/machine/machine.h"
#include "harness/measure/mesh.h"
#include "harness/process/thread_stacks.h"
#include "harness/session/session.h"
#include "harness/text/file.h"
#include "harness/text/streams.h"
#include "suites/perf/case_names.h"
#include "suites/perf/flags.h"
#include "suites/perf/gpu.h"
#include "suites/perf/reports.h"
#include "suites/perf/split.h"
#include "suites/perf/walk.h"
#include "tutti_version.h"

namespace tutti::perf {
namespace {

/// As those of `tutti`, but 7 for wrong data and for too little bandwidth, as in nccl-tests.
enum Exit : int { exit_ok = 0, exit_usage = 2, exit_environment = 3, exit_crash = 5, exit_wrong = 7 };

int exit_code_of(const Status& status) {
  switch (status.code()) {
    case Code::ok:
      return exit_ok;
    case Code::invalid_argument:
    case Code::mismatch:  // processes that were started differently
      return exit_usage;
    case Code::unavailable:
    case Code::resource:
    case Code::io:
      return exit_environment;
    case Code::refuted:
      return exit_wrong;
    case Code::timeout:
    case Code::aborted:
      return exit_crash;
  }
  return exit_crash;
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

int complain(const char* program, const Status& status) {
  harness::to_stderr(fmt::format("{}: {}\n", base_name(program), status.message()));
  return exit_code_of(status);
}

/// The words, one per line.
std::string words(int first, int argc, char** argv) {
  std::string text;
  for (int i = first; i < argc; ++i) text += (i > first ? "\n" : "") + std::string(argv[i]);
  return text;
}

std::string version() { return fmt::format("tutti {} (commit {})", TUTTI_VERSION, TUTTI_COMMIT); }

/// Of NCCL_TESTS_MIN_BW, in 1e9 bytes/s. Errors: invalid_argument.
Result<std::optional<double>> least_bandwidth() {
  const char* text = std::getenv("NCCL_TESTS_MIN_BW");
  if (text == nullptr) return std::optional<double>();
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end != text && *end == '\0' && std::isfinite(value)) return std::optional(value);
  return error(Code::invalid_argument, "NCCL_TESTS_MIN_BW is '{}': it must be a number, such as 12.5", text);
}

/// What alltoallv moves. Errors: invalid_argument: the environment's; a matrix and flags that contradict it.
Status add_traffic(Settings& settings, int ranks) {
  TUTTI_ASSIGN_OR_RETURN(settings.traffic, Traffic::from_environment(ranks));
  const Traffic& traffic = settings.traffic;
  settings.notes.push_back(fmt::format("Traffic: {}", traffic.name()));
  settings.notes.emplace_back("In place every pair exchanges the mean of its two counts: both ways must be the same");
  if (!traffic.has_matrix()) return {};
  if (settings.min_bytes != settings.max_bytes) {
    return error(Code::invalid_argument, "-b {} and -e {}: a matrix has one size: did you mean '-b {}'?",
                 settings.min_bytes, settings.max_bytes, settings.max_bytes);
  }
  if (traffic.most_of_matrix() <= settings.max_bytes) return {};
  return error(Code::invalid_argument, "-e {}: the matrix moves up to {} bytes per rank: did you mean '-b {} -e {}'?",
               settings.max_bytes, traffic.most_of_matrix(), traffic.most_of_matrix(), traffic.most_of_matrix());
}

void pin_this_thread(int core) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CPU_SET(core, &mask);
  pthread_setaffinity_np(pthread_self(), sizeof mask, &mask);  // a refusal leaves the thread where it may run
}

/// By how much a rank is later than the watch to complain of another: the watch knows more.
constexpr std::chrono::seconds kPatienceWithWatch(5);

/// The ranks of this process, a thread each.
class Ranks {
 public:
  /// `exchange`: how the processes hear of each other.
  Ranks(const Program& program, const Settings& settings, const Split& split, harness::JoinedJob& job, Domain& domain,
        harness::Exchange& exchange, CaseNames& names)
      : program_(program),
        settings_(settings),
        split_(split),
        job_(job),
        domain_(domain),
        exchange_(&exchange),
        names_(names),
        cores_(job.cores()) {}

  Result<WalkResult> run(const OnRow& on_row) {
    if (settings_.has_one_host()) return run_on_one_host(on_row);
    std::vector<Result<WalkResult>> results(static_cast<std::size_t>(job_.ranks_here()), WalkResult());
    std::vector<std::thread> threads;
    for (int index = 0; index < job_.ranks_here(); ++index) {
      threads.emplace_back([&, index] {
        auto& result = results[static_cast<std::size_t>(index)];
        result = run_rank(job_.first_rank() + index, on_row);
        if (!result.is_ok()) job_.board().abort_flag().store(1, std::memory_order_release);
      });
    }
    for (std::thread& thread : threads) thread.join();
    const Result<WalkResult>* first = &results.front();
    for (const auto& result : results) {  // a rank that was only told to stop explains less
      const bool explains_more = first->is_ok() || first->status().code() == Code::aborted;
      if (!result.is_ok() && explains_more) first = &result;
    }
    return *first;
  }

 private:
  [[nodiscard]] harness::RankPlace place_of(int rank) const {
    const harness::MetAcross* const across = job_.across();
    if (across == nullptr) return {.host = 0, .local = rank};
    return {.host = across->hosts.own,
            .local = rank - across->hosts.all[static_cast<std::size_t>(across->hosts.own)].first};
  }

  /// Before anything is timed.
  Status begin(harness::Runner& runner) {
    exchange_->answer_clock(&runner.clock());
    return runner.compare_clocks();
  }

  /// One runner for all ranks of the process.
  Result<WalkResult> run_on_one_host(const OnRow& on_row) {
    std::vector<int> devices;
    if (has_gpu_memory(settings_)) {
      TUTTI_ASSIGN_OR_RETURN(devices, devices_of(settings_, job_.first_rank(), job_.ranks_here()));
    }
    const Share share = split_.of(job_.process());
    const auto count = static_cast<std::size_t>(job_.ranks_here());
    std::vector<int> ranks(count), places(count);
    std::iota(ranks.begin(), ranks.end(), share.first_rank);
    std::iota(places.begin(), places.end(), job_.first_rank());
    harness::Runner runner(job_.board(), {.runner = job_.process(),
                                          .runners = job_.ranks() / job_.ranks_here(),
                                          .job_ranks = job_.ranks(),
                                          .ranks = ranks,
                                          .group = share.group,
                                          .at = place_of(job_.first_rank()),
                                          .places = places,
                                          .exchange = exchange_,
                                          .timeout = std::chrono::seconds(settings_.timeout_s) + kPatienceWithWatch});
    TUTTI_RETURN_IF_ERROR(begin(runner));
    auto result = walk(program_, settings_,
                       {.runner = runner,
                        .domain = domain_,
                        .split = split_,
                        .share = share,
                        .cores = cores_,
                        .has_processes = job_.participants().size() > 1,
                        .devices = devices,
                        .first_rank = job_.first_rank(),
                        .names = &names_},
                       on_row);
    if (!result.is_ok()) job_.board().abort_flag().store(1, std::memory_order_release);
    return result;
  }

  Result<WalkResult> run_rank(int rank, const OnRow& on_row) {
    const bool has_core_each = job_.ranks_on_cores() <= static_cast<int>(cores_.size());
    // Where the processes may use different cores, their starter has placed them.
    const int place = job_.ranks_before_on_cores() + rank - job_.first_rank();
    if (has_core_each && job_.shares_cores()) pin_this_thread(cores_[static_cast<std::size_t>(place)]);
    const Share share = split_.of(job_.process());
    harness::Runner runner(job_.board(), {.runner = rank,
                                          .runners = job_.ranks(),
                                          .job_ranks = job_.ranks(),
                                          .ranks = {share.first_rank + rank - job_.first_rank()},
                                          .group = share.group,
                                          .at = place_of(rank),
                                          .places = {rank},
                                          .exchange = exchange_,
                                          .yields = !has_core_each,
                                          .timeout = std::chrono::seconds(settings_.timeout_s) + kPatienceWithWatch});
    TUTTI_RETURN_IF_ERROR(begin(runner));
    return walk(program_, settings_,
                {.runner = runner,
                 .domain = domain_,
                 .split = split_,
                 .share = share,
                 .cores = cores_,
                 .has_processes = job_.participants().size() > 1,
                 .names = rank == job_.first_rank() ? &names_ : nullptr},
                on_row);
  }

  const Program& program_;
  const Settings& settings_;
  const Split& split_;
  harness::JoinedJob& job_;
  Domain& domain_;
  harness::Exchange* exchange_;
  CaseNames& names_;
  std::vector<int> cores_;
};

std::string backend_text(const Settings& settings, const harness::JoinedJob& job, const Domain& domain) {
  if (settings.device) return fmt::format("tutti, {}", blocks_text(settings));
  const std::string ranks =
      fmt::format("{} {} in {} {}", job.ranks(), job.ranks() == 1 ? "rank" : "ranks", job.participants().size(),
                  job.participants().size() == 1 ? "process" : "processes");
  return settings.backend == kNccl ? fmt::format("{}, {}", nccl_text(), ranks)
                                   : fmt::format("tutti, {} over {}", ranks, domain.transport());
}

RunFacts facts_of(const Program& program, const Settings& settings, const Split& split, const harness::JoinedJob& job,
                  const Domain& domain, std::string command) {
  RunFacts facts{.command = std::move(command),
                 .version = version(),
                 .backend = backend_text(settings, job, domain),
                 .split = split.setting(),
                 .group_sizes = split.sizes(),
                 .has_rows = has_rows(program, split),
                 .nccl_version = settings.backend == kNccl ? nccl_version() : 0};
  for (int rank = 0; rank < job.ranks(); ++rank) {
    const int process = rank / job.ranks_here();
    const auto& one = job.participants()[static_cast<std::size_t>(process)];
    Device device{.rank = rank, .group = split.of(process).group, .pid = one.pid, .hostname = one.hostname};
    if (has_gpu_memory(settings)) {
      describe_device(device, device_of(settings, rank));
    } else {
      device.device = settings.device ? device_of(settings, rank) : rank;
      device.bus = "0000:00:00";
      device.model = harness::describe_machine().cpu_model;
    }
    facts.devices.push_back(std::move(device));
  }
  return facts;
}

/// How processes of several hosts hear of each other; null on one host.
Result<std::unique_ptr<harness::Exchange>> join_mesh(const harness::JoinedJob& job, const Settings& settings) {
  const harness::MetAcross* const across = job.across();
  if (across == nullptr) return std::unique_ptr<harness::Exchange>();
  TUTTI_ASSIGN_OR_RETURN(auto mesh, harness::Mesh::join({.runner = job.process(),
                                                         .machines = job.host_of_ranks(),
                                                         .key = across->hosts.key,
                                                         .interface = across->place.interface,
                                                         .address = across->place.exchange_address,
                                                         .listener = across->listeners.exchange.get(),
                                                         .timeout = std::chrono::seconds(settings.timeout_s)}));
  return std::unique_ptr<harness::Exchange>(std::move(mesh));
}

/// What rank 0 says at the end, and the job's exit code.
int conclude(const char* program, Reports& reports, const WalkResult& result, std::optional<double> least) {
  constexpr double kSlack = 0.9;
  Trailer trailer{.failed_checks = result.failed_checks, .average = result.average()};
  if (least && trailer.average) trailer.is_enough = *trailer.average >= kSlack * *least;
  reports.add_init(result);
  reports.add_ranks(result.ranks);
  const Status written = reports.conclude(trailer, result.memory);
  const int code = written.is_ok() ? static_cast<int>(exit_ok) : complain(program, written);
  if (!trailer.average) {
    return complain(program, error(Code::unavailable, "nothing was measured: the table has no row and says why"));
  }
  return trailer.failed_checks > 0 || !trailer.is_enough.value_or(true) ? exit_wrong : code;
}

/// What the environment adds to the flags.
struct Surroundings {
  Split split;
  std::optional<double> least = {};  ///< bandwidth; empty where none was asked for
  std::string traffic = {};          ///< of alltoallv in process 0's group, the same in all processes
};

/// Adds to the settings what flags alone do not say, and notes. Errors: invalid_argument, the same in all processes
/// that were started alike.
Result<Surroundings> complete(Settings& settings, const Program& program, const World& world) {
  TUTTI_RETURN_IF_ERROR(settle_backend(settings, program));
  TUTTI_RETURN_IF_ERROR(check_blocks(settings, world.processes));
  TUTTI_RETURN_IF_ERROR(take_first_device(settings, world.processes));
  set_patience(settings);
  TUTTI_ASSIGN_OR_RETURN(Split split, Split::from_environment(world.processes, settings.ranks_here()));
  if (!split.setting().empty()) settings.notes.push_back(split.note(is_rooted(program.collective)));
  TUTTI_RETURN_IF_ERROR(check_for(settings, program, world.processes * settings.ranks_here(), split.sizes().front()));
  if (settings.backend == kNccl && !has_in_place(program.collective)) {
    settings.notes.emplace_back(
        "NCCL has this not in place, where messages would arrive in what is still to be sent: 0");
  }
  Surroundings surroundings{.split = std::move(split)};
  const int shown_ranks = surroundings.split.of(0).ranks;
  if (has_counts(program.collective)) {
    TUTTI_ASSIGN_OR_RETURN(const Traffic traffic, Traffic::from_environment(shown_ranks));
    surroundings.traffic = traffic.name();
    TUTTI_RETURN_IF_ERROR(add_traffic(settings, surroundings.split.of(world.process).ranks));
  }
  const int most_ranks = surroundings.split.sizes().back();
  for (std::string& note : notes_on_passes(program, settings, most_ranks)) settings.notes.push_back(std::move(note));
  const bool has_busbw = !program.is_hypercube && bus_factor({.collective = program.collective, .ranks = 1}) > 0;
  if (shown_ranks == 1 && !has_busbw) {
    settings.notes.emplace_back("busbw is 0: it counts what goes from rank to rank, and there is one: -g 2 makes two");
  }
  TUTTI_ASSIGN_OR_RETURN(surroundings.least, least_bandwidth());
  return surroundings;
}

Result<int> run(const Program& program, Settings settings, const World& world, const Surroundings& surroundings,
                int argc, char** argv) {
  const Split& split = surroundings.split;
  std::string arguments = fmt::format("{}\n{}\n{}", program.name, settings.backend, words(1, argc, argv));
  for (const std::string& more : {surroundings.traffic, split.setting()}) {
    if (!more.empty()) arguments += "\n" + more;
  }
  TUTTI_ASSIGN_OR_RETURN(const std::unique_ptr<harness::JoinedJob> job,
                         harness::JoinedJob::join({.world = world,
                                                   .ranks_here = settings.ranks_here(),
                                                   .arguments = std::move(arguments),
                                                   .build = version(),
                                                   .timeout = std::chrono::seconds(settings.timeout_s)}));
  TUTTI_ASSIGN_OR_RETURN(const std::unique_ptr<Domain> domain, job->open_domain());
  TUTTI_ASSIGN_OR_RETURN(const std::unique_ptr<harness::Exchange> mesh, join_mesh(*job, settings));
  const std::int64_t asked = settings.max_bytes;
  const harness::MemoryLeft left = job->memory_left();
  const std::int64_t fitting = most_bytes_that_fit(program, settings, job->ranks(), left);
  if (!has_gpu_memory(settings)) settings.max_bytes = fitting;
  if (has_gpu_memory(settings)) {
    TUTTI_ASSIGN_OR_RETURN(const std::vector<int> devices, devices_of(settings, job->first_rank(), job->ranks_here()));
    for (const int device : devices) {
      settings.max_bytes = std::min(
          settings.max_bytes, most_bytes_on_gpu(settings, bytes_of_a_rank(program, settings, job->ranks()), device));
    }
  }
  if (settings.max_bytes < settings.min_bytes) {
    return error(Code::resource,
                 "sizes from {} to {} are skipped, which are all: their buffers do not fit: at most {}; {}",
                 settings.min_bytes, asked, settings.max_bytes,
                 has_gpu_memory(settings) ? "those of a GPU have to lie in its memory" : left.text());
  }
  if (settings.max_bytes < asked) {
    settings.notes.push_back(
        fmt::format("Sizes above {} are skipped, up to {}: their buffers do not fit; {}", settings.max_bytes, asked,
                    has_gpu_memory(settings) ? "those of a GPU have to lie in its memory" : left.text()));
  }
  if (settings.traffic.most_of_matrix() > settings.max_bytes) {
    return error(Code::resource, "the matrix moves {} bytes per rank, of which the buffers do not fit: at most {}",
                 settings.traffic.most_of_matrix(), settings.max_bytes);
  }
  const bool is_reporter = job->process() == 0;
  std::optional<Reports> reports;
  Status status;
  if (is_reporter) {
    auto opened =
        Reports::open(program, settings, facts_of(program, settings, split, *job, *domain, words(0, argc, argv)));
    status = opened.status();
    if (status.is_ok()) reports.emplace(std::move(opened).value());
  }
  CaseNames names;
  // A row that this process cannot print is what it tells, not what another one says of it.
  std::mutex mutex;
  Status unprinted;
  job->watch({.case_name = [&](std::uint32_t number) { return names.of(number); },
              .standings = [&] { return harness::standings_of(*domain); },
              .on_lost =
                  [&](const Status& lost) {
                    const bool tells = job->is_first_to_tell();
                    const std::lock_guard lock(mutex);
                    const Status& why = unprinted.is_ok() ? lost : unprinted;
                    const int code = tells ? complain(argv[0], why) : exit_code_of(why);
                    job->end_stopped();
                    static_cast<void>(harness::flush_output());
                    ::_exit(code);  // ranks that wait for the lost one cannot be joined
                  }});
  if (is_reporter && status.is_ok()) {
    status = reports->print_opening(settings.max_bytes < asked ? std::optional(settings.max_bytes) : std::nullopt);
  }
  Result<WalkResult> result = status;
  if (status.is_ok()) {
    harness::Exchange& exchange = mesh != nullptr ? *mesh : harness::shared_board();
    result = Ranks(program, settings, split, *job, *domain, exchange, names).run([&](const Report& report) {
      const Status added = reports->add(report);
      const std::lock_guard lock(mutex);
      unprinted = added;
      return added;
    });
  }
  if (!result.is_ok()) {
    if (reports) reports->give_up();
    // A process with a rank that was only told to stop leaves the word to the watch, which knows why.
    if (result.status().code() == Code::aborted) ::sleep(3);
    job->fail(result.status());
    return job->is_first_to_tell() ? complain(argv[0], result.status()) : exit_code_of(result.status());
  }
  int code = result.value().failed_checks > 0 ? exit_wrong : result.value().average() ? exit_ok : exit_environment;
  if (!has_gpu_memory(settings)) {
    result.value().memory.initial_bytes = static_cast<double>(domain_bytes(domain->shape()));
  }
  if (is_reporter) code = conclude(argv[0], *reports, result.value(), surroundings.least);
  job->finish();
  return code;
}

/// What was printed must have arrived, however slow its reader is.
int flushed(const char* program, int code) {
  const Status arrived = harness::flush_output();
  return arrived.is_ok() || code != exit_ok ? code : complain(program, arrived);
}

int main_of(int argc, char** argv) {
  const auto program = find_program(argv[0]);
  if (!program.is_ok()) return complain(argv[0], program.status());
  const auto world = world_from_environment();
  if (!world.is_ok()) return complain(argv[0], world.status());
  const bool is_first = world.value().process == 0;
  if (!world.value().unknown_starter.empty()) {
    harness::to_stderr(fmt::format("# {}\n", world.value().unknown_starter));
  }
  // One of all that were started alike says what is wrong.
  const auto refuse = [&](const Status& why) {
    let_the_first_speak(world.value());
    return is_first ? complain(argv[0], why) : exit_code_of(why);
  };
  auto settings = parse_flags(argc, argv);
  if (!settings.is_ok()) return refuse(settings.status());
  if (settings.value().wants_help || settings.value().wants_version) {
    if (!is_first) return exit_ok;
    harness::Console console;
    console.print(settings.value().wants_help ? help_text(program.value()) : version() + "\n");
    return console.failure().is_ok() ? exit_ok : complain(argv[0], console.failure());
  }
  const auto surroundings = complete(settings.value(), program.value(), world.value());
  if (!surroundings.is_ok()) return refuse(surroundings.status());
  const auto code = run(program.value(), std::move(settings).value(), world.value(), surroundings.value(), argc, argv);
  return code.is_ok() ? code.value() : complain(argv[0], code.status());
}

}  // namespace
}  // namespace tutti::perf

int main(int argc, char** argv) {
  tutti::harness::prepare_streams();
  if (const tutti::Status room = tutti::harness::ensure_stacks(); !room.is_ok())
    return tutti::perf::complain(argv[0], room);
  std::signal(SIGPIPE, SIG_IGN);  // a reader that goes away is an error of the write, which the other ranks are told
  try {
    return tutti::perf::flushed(argv[0], tutti::perf::main_of(argc, argv));
  } catch (const std::bad_alloc&) {
    return tutti::perf::complain(argv[0], tutti::error(tutti::Code::resource, "out of memory"));
  }
}
