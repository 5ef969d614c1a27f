// SPDX-License-Identifier: Apache-2.0
// Keys: "rank/<rank>" a Seating; "plan" the Plan, or "error <code> <text>"; "memory/<host>" "<pid> <descriptor>
// <token>".
#include "impl/embed/joining.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sched.h>
#include <sstream>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/ranges.h>

#include "impl/bootstrap/table_file.h"
#include "impl/communicator/selection_table.h"
#include "impl/embed/arena.h"
#include "impl/embed/hosts.h"
#include "impl/embed/parts.h"
#include "impl/embed/progress.h"
#include "impl/transports/build.h"
#include "impl/transports/hosts_domain.h"
#include "impl/transports/shared_memory.h"
#include "impl/transports/shm/domain.h"
#include "impl/types/names.h"

namespace tutti::embed {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kTokenBytes = 32;  // behind the domain, at the end of the memory
constexpr int kMostCores = 4096;
/// By how much the others wait longer for rank 0 than it waits for them: it names who is missing.
constexpr std::chrono::seconds kPatienceWithRank0(1);

double seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

/// "0-3,7", and back.
std::string ranges_of(const std::vector<bool>& cores) {
  std::string text;
  for (std::size_t first = 0; first < cores.size(); ++first) {
    if (!cores[first]) continue;
    std::size_t last = first;
    while (last + 1 < cores.size() && cores[last + 1]) ++last;
    text += fmt::format("{}{}-{}", text.empty() ? "" : ",", first, last);
    first = last;
  }
  return text.empty() ? "none" : text;
}
Result<std::vector<bool>> cores_from(const std::string& text) {
  std::vector<bool> cores;
  if (text == "none") return cores;
  std::istringstream stream(text);
  for (std::string range; std::getline(stream, range, ',');) {
    int first = -1, last = -1;
    if (std::sscanf(range.c_str(), "%d-%d", &first, &last) != 2 || first < 0 || last < first || last >= kMostCores) {
      return error(Code::mismatch, "'{}' is no list of cores", text);
    }
    cores.resize(std::max(cores.size(), static_cast<std::size_t>(last) + 1));
    for (int core = first; core <= last; ++core) cores[static_cast<std::size_t>(core)] = true;
  }
  return cores;
}

std::string first_line_of(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string target_of(const char* path) {
  std::array<char, 256> target{};
  const ssize_t length = ::readlink(path, target.data(), target.size());
  return std::string(target.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
}

std::vector<bool> cores_here() {
  std::vector<bool> cores;
  std::array<unsigned long, kMostCores / (8 * sizeof(unsigned long))> mask{};
  const long bytes = ::syscall(SYS_sched_getaffinity, 0, sizeof mask, mask.data());
  for (int core = 0; core < 8 * bytes; ++core) {
    const auto bit = static_cast<std::size_t>(core);
    cores.push_back((mask[bit / 64] >> (bit % 64) & 1U) != 0);
  }
  return cores;
}

/// The words of a line that begins with `name`.
Result<std::vector<std::string>> line_of(const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream stream(line);
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    if (words.empty() || words.front() != name) continue;
    words.erase(words.begin());
    return words;
  }
  return error(Code::mismatch, "what another rank says has no line '{}': it is no rank of tutti, or of another version",
               name);
}

Result<std::vector<int>> numbers_of(const std::string& text, const std::string& name, std::size_t count) {
  TUTTI_ASSIGN_OR_RETURN(const auto words, line_of(text, name));
  std::vector<int> numbers;
  for (const std::string& word : words) {
    int number = -1, end = 0;
    if (std::sscanf(word.c_str(), "%d%n", &number, &end) != 1 || word.size() != static_cast<std::size_t>(end) ||
        number < 0) {
      return error(Code::mismatch, "'{}' is no number in the line '{}' of rank 0", word, name);
    }
    numbers.push_back(number);
  }
  if (numbers.size() == count) return numbers;
  return error(Code::mismatch, "the line '{}' of rank 0 has {} numbers of {}", name, numbers.size(), count);
}

Result<ProcessId> process_from(const std::string& text) {
  int pid = 0, end = 0;
  unsigned long long start = 0;
  if (std::sscanf(text.c_str(), "%d:%llu%n", &pid, &start, &end) != 2 || static_cast<std::size_t>(end) != text.size() ||
      pid < 0) {
    return error(Code::mismatch, "'{}' is no process", text);
  }
  return ProcessId{.pid = pid, .start = start};
}

std::string text_of(const ProcessId& process) { return fmt::format("{}:{}", process.pid, process.start); }

}  // namespace

std::string to_text(const Seating& seating) {
  return fmt::format("build {}\nhost {}\nprocess {}\ncores {}\narena {}\ntable {}\n", seating.build, seating.host,
                     text_of(seating.process), ranges_of(seating.cores), seating.arena, seating.table);
}

Result<Seating> seating_from(const std::string& text) {
  Seating seating;
  TUTTI_ASSIGN_OR_RETURN(const auto build, line_of(text, "build"));
  TUTTI_ASSIGN_OR_RETURN(const auto host, line_of(text, "host"));
  TUTTI_ASSIGN_OR_RETURN(const auto process, line_of(text, "process"));
  TUTTI_ASSIGN_OR_RETURN(const auto cores, line_of(text, "cores"));
  TUTTI_ASSIGN_OR_RETURN(const auto arena, line_of(text, "arena"));
  TUTTI_ASSIGN_OR_RETURN(const auto table, line_of(text, "table"));
  seating.build = fmt::format("{}", fmt::join(build, " "));
  seating.host = fmt::format("{}", fmt::join(host, " "));
  seating.table = fmt::format("{}", fmt::join(table, " "));
  if (process.size() != 1 || cores.size() != 1) return error(Code::mismatch, "what another rank says is cut");
  TUTTI_ASSIGN_OR_RETURN(seating.process, process_from(process.front()));
  TUTTI_ASSIGN_OR_RETURN(seating.cores, cores_from(cores.front()));
  if (!arena.empty()) seating.arena = arena.front();
  return seating;
}

std::string to_text(const Plan& plan) {
  std::vector<std::string> processes;
  for (const ProcessId& each : plan.processes) processes.push_back(text_of(each));
  return fmt::format("plan\nhost_of {}\nprocesses {}\ncores {}\naddress {}\nkey {}\narenas {}\n",
                     fmt::join(plan.host_of, " "), fmt::join(processes, " "), fmt::join(plan.cores, " "), plan.address,
                     plan.key, fmt::join(plan.arenas, " "));
}

Result<Plan> plan_from(const std::string& text, int ranks) {
  if (text.starts_with("error ")) {
    int code = 0, end = 0;
    if (std::sscanf(text.c_str(), "error %d %n", &code, &end) != 1 || code <= 0 ||
        code > static_cast<int>(Code::refuted)) {
      return error(Code::aborted, "rank 0 has failed while the ranks met");
    }
    return Status(static_cast<Code>(code), text.substr(static_cast<std::size_t>(end)));
  }
  Plan plan;
  const auto count = static_cast<std::size_t>(ranks);
  TUTTI_ASSIGN_OR_RETURN(plan.host_of, numbers_of(text, "host_of", count));
  for (std::size_t rank = 0; rank < count; ++rank) {
    const int before = rank == 0 ? 0 : plan.host_of[rank - 1];
    const int host = plan.host_of[rank];
    const bool may_follow = host == before || (rank > 0 && host == before + 1);
    if (!may_follow)
      return error(Code::mismatch, "rank 0 says that rank {} is on host {}, after {}", rank, host, before);
  }
  TUTTI_ASSIGN_OR_RETURN(const auto processes, line_of(text, "processes"));
  if (processes.size() != count)
    return error(Code::mismatch, "rank 0 lists {} processes of {}", processes.size(), ranks);
  for (const std::string& each : processes) {
    TUTTI_ASSIGN_OR_RETURN(const ProcessId process, process_from(each));
    plan.processes.push_back(process);
  }
  TUTTI_ASSIGN_OR_RETURN(plan.cores, numbers_of(text, "cores", static_cast<std::size_t>(plan.hosts())));
  TUTTI_ASSIGN_OR_RETURN(const auto address, line_of(text, "address"));
  TUTTI_ASSIGN_OR_RETURN(const auto key, line_of(text, "key"));
  if (!address.empty()) plan.address = address.front();
  if (!key.empty()) plan.key = key.front();
  TUTTI_ASSIGN_OR_RETURN(plan.arenas, line_of(text, "arenas"));
  if (!plan.arenas.empty() && (plan.arenas.size() != count || plan.hosts() > 1)) {
    return error(Code::mismatch, "rank 0 lists {} memories of {} ranks on {} hosts", plan.arenas.size(), ranks,
                 plan.hosts());
  }
  return plan;
}

Seating seating_here() {
  // Whoever has another user, another kernel, or other names for processes and sockets shares no memory.
  return {.build = kTransportBuild,
          .host = fmt::format("{} {} {} {}", first_line_of("/proc/sys/kernel/random/boot_id"),
                              target_of("/proc/self/ns/net"), target_of("/proc/self/ns/pid"), ::geteuid()),
          .process = this_process(),
          .cores = cores_here()};
}

Result<Plan> plan_of(const std::vector<Seating>& all) {
  Plan plan;
  std::vector<std::string> hosts;
  std::vector<std::vector<bool>> cores;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const Seating& one = all[rank];
    if (one.build != all.front().build) {
      return error(Code::mismatch, "rank {} has another build of tutti than rank 0: {}, and {}", rank, one.build,
                   all.front().build);
    }
    if (one.table != all.front().table) {
      return error(Code::mismatch,
                   "rank {} has the selection table {}, and rank 0 has {}: give all ranks the same (TUTTI_TABLE)", rank,
                   shown(one.table), shown(all.front().table));
    }
    const auto known = std::ranges::find(hosts, one.host);
    const auto host = static_cast<std::size_t>(known - hosts.begin());
    if (known == hosts.end()) {
      hosts.push_back(one.host);
      cores.emplace_back();
    } else if (host + 1 != hosts.size()) {
      return error(Code::unavailable,
                   "rank {} is on the host of rank {}, and ranks between them on others: ranks must be numbered host "
                   "by host",
                   rank, std::ranges::find(plan.host_of, static_cast<int>(host)) - plan.host_of.begin());
    }
    plan.host_of.push_back(static_cast<int>(host));
    plan.processes.push_back(one.process);
    std::vector<bool>& together = cores[host];
    together.resize(std::max(together.size(), one.cores.size()));
    for (std::size_t core = 0; core < one.cores.size(); ++core) together[core] = together[core] || one.cores[core];
  }
  const bool has_arenas = hosts.size() == 1 && std::ranges::none_of(all, &std::string::empty, &Seating::arena);
  for (const Seating& one : all) {
    if (has_arenas) plan.arenas.push_back(one.arena);
  }
  for (const auto& together : cores) {
    plan.cores.push_back(std::max(1, static_cast<int>(std::ranges::count(together, true))));
  }
  return plan;
}

/// One rank's way into its world.
class Joining {
 public:
  Joining(const Exchange& exchange, int rank, int ranks, const WorldOptions& options)
      : exchange_(exchange), rank_(rank), ranks_(ranks), options_(options), end_(Clock::now() + options.timeout) {}

  Result<std::shared_ptr<World>> run() {
    TUTTI_RETURN_IF_ERROR(make_plan());
    auto parts = std::make_unique<World::Parts>();
    TUTTI_ASSIGN_OR_RETURN(parts->domain, open_domain(*parts));
    TUTTI_RETURN_IF_ERROR(fill(*parts));
    const std::shared_ptr<World> world(new World(std::move(parts)));
    // When all have come here, all have the memory: its maker may let go of the descriptor.
    TUTTI_ASSIGN_OR_RETURN(const auto met, world->post({.collective = Collective::barrier}, {.timeout = left()}));
    TUTTI_RETURN_IF_ERROR(met->wait());
    world->parts_->memory.close();
    return world;
  }

 private:
  [[nodiscard]] std::chrono::nanoseconds left() const {
    return std::max<std::chrono::nanoseconds>(end_ - Clock::now(), std::chrono::milliseconds(1));
  }
  [[nodiscard]] int host() const { return plan_.host_of[static_cast<std::size_t>(rank_)]; }
  [[nodiscard]] bool is_on_this_host(int rank) const { return plan_.host_of[static_cast<std::size_t>(rank)] == host(); }

  Status make_plan() {
    Seating seating = seating_here();
    const Status has_table = read_table();
    seating.table = has_table.is_ok() ? SelectionTable::of(table_.get()).id() : "that it cannot read";
    if (options_.arena != nullptr) seating.arena = options_.arena->offer();
    TUTTI_RETURN_IF_ERROR(exchange_.set(fmt::format("rank/{}", rank_), to_text(seating)));
    if (!has_table.is_ok() && rank_ != 0) return has_table;
    if (rank_ == 0) {
      Status status = has_table.is_ok() ? plan_as_first() : has_table;
      if (status.is_ok()) return exchange_.set("plan", to_text(plan_));
      // The others learn at once what they would wait for in vain.
      (void)exchange_.set("plan", fmt::format("error {} {}", static_cast<int>(status.code()), status.message()));
      return status;
    }
    const auto said = exchange_.get("plan", left() + kPatienceWithRank0);
    if (!said.is_ok() && said.status().code() == Code::timeout) {
      return error(Code::timeout, "rank 0 of {} has not said within {} s how the ranks go together: {}", ranks_,
                   seconds(options_.timeout), said.status().message());
    }
    TUTTI_RETURN_IF_ERROR(said.status());
    TUTTI_ASSIGN_OR_RETURN(plan_, plan_from(said.value(), ranks_));
    return {};
  }

  /// The table that TUTTI_TABLE names. Errors: invalid_argument.
  Status read_table() {
    TUTTI_ASSIGN_OR_RETURN(auto file, table_file_here(kMostInTable));
    if (!file) return {};
    auto table = SelectionTable::parse(shown(file->name), std::move(file->text));
    if (!table.is_ok()) return error(table.status().code(), "TUTTI_TABLE: {}", table.status().message());
    table_ = std::make_shared<const SelectionTable>(std::move(table).value());
    return {};
  }

  Status plan_as_first() {
    std::vector<Seating> all;
    std::vector<int> missing;
    for (int rank = 0; rank < ranks_; ++rank) {
      const auto said = exchange_.get(fmt::format("rank/{}", rank), left());
      if (!said.is_ok() && said.status().code() == Code::timeout) {
        missing.push_back(rank);
        continue;
      }
      TUTTI_RETURN_IF_ERROR(said.status());
      TUTTI_ASSIGN_OR_RETURN(Seating seating, seating_from(said.value()));
      all.push_back(std::move(seating));
    }
    if (!missing.empty()) {
      return error(Code::timeout, "{} {} of {} did not come within {} s", missing.size() == 1 ? "rank" : "ranks",
                   fmt::join(missing, ", "), ranks_, seconds(options_.timeout));
    }
    TUTTI_ASSIGN_OR_RETURN(plan_, plan_of(all));
    if (plan_.hosts() == 1) return {};
    if (options_.between_hosts == nullptr) {
      return error(Code::unavailable,
                   "ranks are on {} hosts (rank {} is not on that of rank 0), or are of different users or containers: "
                   "this library is for one host",
                   plan_.hosts(), std::ranges::find(plan_.host_of, 1) - plan_.host_of.begin());
    }
    TUTTI_ASSIGN_OR_RETURN(reception_, options_.between_hosts->receive(options_.interface));
    plan_.address = reception_.address;
    plan_.key = reception_.key;
    return {};
  }

  [[nodiscard]] DomainShape shape() const {
    if (!plan_.arenas.empty()) return default_shape(ranks_, 0);
    if (plan_.hosts() == 1) return default_shape(ranks_, options_.heap_bytes);
    DomainShape shape = options_.between_hosts->transport().shape(ranks_, plan_.hosts(), options_.heap_bytes);
    for (int host = 0; host < plan_.hosts(); ++host) {
      shape.ranks_on.push_back(static_cast<int>(std::ranges::count(plan_.host_of, host)));
    }
    return shape;
  }

  /// The memory of all ranks as it is mapped here.
  Result<std::vector<MappedPart>> map_arenas(World::Parts& parts) const {
    std::vector<MappedPart> heaps;
    const Arena& own = *options_.arena;
    for (std::size_t rank = 0; rank < plan_.arenas.size(); ++rank) {
      if (plan_.arenas[rank] == own.offer()) {
        heaps.push_back({.begin = own.begin(), .bytes = own.bytes()});
        continue;
      }
      TUTTI_ASSIGN_OR_RETURN(auto arena, PeerArena::of(plan_.processes[rank], plan_.arenas[rank]));
      heaps.push_back({.begin = arena->begin(), .bytes = arena->bytes()});
      parts.arenas.push_back(std::move(arena));
    }
    parts.has_arenas = true;
    return heaps;
  }

  Result<std::unique_ptr<Domain>> open_domain(World::Parts& parts) {
    if (plan_.hosts() > 1 && options_.between_hosts == nullptr) {
      return error(Code::unavailable, "ranks are on {} hosts: this library is for one host", plan_.hosts());
    }
    const DomainShape shape = this->shape();
    const DomainShape here =
        plan_.hosts() == 1 ? shape : host_shape(shape, static_cast<int>(std::ranges::count(plan_.host_of, host())));
    bytes_ = domain_bytes(here);
    TUTTI_RETURN_IF_ERROR(get_memory(bytes_, control_bytes(here)));
    if (!plan_.arenas.empty() && options_.arena != nullptr) {
      TUTTI_ASSIGN_OR_RETURN(auto heaps, map_arenas(parts));
      return shm::open_domain_with_heaps(shape, memory_.get(), std::move(heaps));
    }
    if (plan_.hosts() == 1) return shm::open_domain(shape, memory_.get());
    TUTTI_ASSIGN_OR_RETURN(const std::string interface,
                           rank_ == 0 ? Result<std::string>(reception_.interface)
                                      : options_.between_hosts->address_here(options_.interface, plan_.address));
    const Across across{.host = host(),
                        .interface = interface,
                        .address = plan_.address,
                        .listener = reception_.listener.get(),
                        .key = plan_.key};
    return options_.between_hosts->transport().open(
        shape, {.memory = memory_.get(), .rank = rank_, .timeout = left(), .across = &across});
  }

  /// The memory of this host's ranks: made here, or by the first of them. The first `at_once` bytes are allocated, the
  /// others when calls need them.
  Status get_memory(std::size_t bytes, std::size_t at_once) {
    const std::string key = fmt::format("memory/{}", host());
    const std::size_t at_token = (bytes + kTokenBytes - 1) / kTokenBytes * kTokenBytes;
    if (std::ranges::find(plan_.host_of, host()) - plan_.host_of.begin() == rank_) {
      const auto made = make_memory(at_token, at_once);
      return exchange_.set(key, made.is_ok() ? made.value() : fmt::format("error {}", made.status().message())).is_ok()
                 ? made.status()
                 : error(Code::io, "the exchange takes no word of where the memory is");
    }
    TUTTI_ASSIGN_OR_RETURN(const std::string said, exchange_.get(key, left()));
    if (said.starts_with("error ")) return Status(Code::aborted, said.substr(6));
    return take_memory(said, at_token);
  }

  Result<std::string> make_memory(std::size_t at_token, std::size_t at_once) {
    TUTTI_ASSIGN_OR_RETURN(const int memory, create_growing_memory("tutti-world", at_token + kTokenBytes, at_once));
    memory_ = Descriptor(memory);
    std::array<unsigned char, kTokenBytes> token{};
    if (::getrandom(token.data(), token.size(), 0) != static_cast<ssize_t>(token.size()) ||
        ::pwrite(memory, token.data(), token.size(), static_cast<off_t>(at_token)) !=
            static_cast<ssize_t>(token.size())) {
      return error(Code::io, "cannot mark the shared memory: {}", std::strerror(errno));
    }
    return fmt::format("{} {} {:02x}", ::getpid(), memory, fmt::join(token, ""));
  }

  Status take_memory(const std::string& said, std::size_t at_token) {
    int pid = 0, number = 0;
    std::array<char, 2 * kTokenBytes + 1> expected{};
    static_assert(kTokenBytes == 32);
    if (std::sscanf(said.c_str(), "%d %d %64s", &pid, &number, expected.data()) != 3) {
      return error(Code::mismatch, "'{}' does not say where the memory is", said);
    }
    const std::string path = fmt::format("/proc/{}/fd/{}", pid, number);
    memory_ = Descriptor(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!memory_.is_open()) {
      return error(Code::io, "cannot open the memory that the first rank of this host has made, {}: {}", path,
                   std::strerror(errno));
    }
    std::array<unsigned char, kTokenBytes> token{};
    struct stat status {};
    const bool is_it = ::fstat(memory_.get(), &status) == 0 && status.st_uid == ::geteuid() &&
                       static_cast<std::size_t>(status.st_size) == at_token + kTokenBytes &&
                       ::pread(memory_.get(), token.data(), token.size(), static_cast<off_t>(at_token)) ==
                           static_cast<ssize_t>(token.size()) &&
                       fmt::format("{:02x}", fmt::join(token, "")) == expected.data();
    if (is_it) return {};
    return error(Code::mismatch, "{} is not the memory of this world: its first rank has gone, or is another one",
                 path);
  }

  Status fill(World::Parts& parts) {
    parts.rank = rank_;
    parts.ranks = ranks_;
    parts.owner = ::getpid();
    parts.timeout = options_.timeout;
    parts.cores = plan_.cores[static_cast<std::size_t>(host())];
    parts.ranks_here = static_cast<int>(std::ranges::count(plan_.host_of, host()));
    parts.memory = std::move(memory_);
    Domain& seen = parts.domain->seen_by(rank_);
    parts.doorbell = &seen.doorbell();
    // A forked child has none of it. The abort line is where the memory begins.
    ::madvise(&seen.abort_line(), bytes_, MADV_DONTFORK);
    parts.descriptor = seen.network() == nullptr ? -1 : seen.network()->descriptor();
    std::vector<ProcessId> here = parts.processes = plan_.processes;
    for (int rank = 0; rank < ranks_; ++rank) {
      if (!is_on_this_host(rank)) here[static_cast<std::size_t>(rank)] = {};
    }
    parts.peers.emplace(rank_, std::move(here), seen);
    const long l3 = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
    int cores = 0;
    for (const int each : plan_.cores) cores += each;
    // Nobody waits in the communicator: the waits are those of Progress, and for these all ranks are to ring.
    TUTTI_ASSIGN_OR_RETURN(parts.communicator,
                           Communicator::create(*parts.domain, rank_,
                                                {.waiting = Waiting::yield,
                                                 .cores = cores,
                                                 .timeout = options_.timeout,
                                                 .cache_bytes = l3 > 0 ? l3 : ::sysconf(_SC_LEVEL2_CACHE_SIZE),
                                                 .table = table_}));
    return {};
  }

  const Exchange& exchange_;
  int rank_, ranks_;
  const WorldOptions& options_;
  Clock::time_point end_;
  Plan plan_;
  std::shared_ptr<const SelectionTable> table_;
  BetweenHosts::Reception reception_;
  Descriptor memory_;
  std::size_t bytes_ = 0;  // of the domain in it
};

Result<std::shared_ptr<World>> World::join(const Exchange& exchange, int rank, int ranks, const WorldOptions& options) {
  if (ranks < 1) return error(Code::invalid_argument, "{} ranks: there must be 1 at least", ranks);
  if (rank < 0 || rank >= ranks) {
    return error(Code::invalid_argument, "rank {} is out of range: it must be between 0 and {}", rank, ranks - 1);
  }
  return Joining(exchange, rank, ranks, options).run();
}

}  // namespace tutti::embed
