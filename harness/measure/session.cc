// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/session.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>
#include <unistd.h>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "harness/backends/reference.h"
#include "harness/backends/tutti/backend.h"
#include "harness/backends/tutti/group.h"
#include "harness/cases/lists.h"
#include "harness/doctor/disturbance.h"
#include "harness/faults/trial.h"
#include "harness/launch/allowed_cores.h"
#include "harness/launch/binding.h"
#include "harness/measure/cell.h"
#include "harness/measure/check.h"
#include "harness/measure/clock.h"
#include "harness/measure/host.h"
#include "harness/measure/limit.h"
#include "harness/measure/order.h"
#include "harness/report/json.h"
#include "harness/soak/soak.h"
#include "impl/communicator/diagnosis.h"
#include "impl/transports/local/domain.h"
#include "impl/transports/shm/domain.h"

namespace tutti::harness {
namespace {

constexpr std::chrono::nanoseconds kCellTime = std::chrono::seconds(3);  ///< without a budget
constexpr std::int64_t kTrialShare = 16;  ///< one part in so many of a cell's time is for the trial of its limit
constexpr std::chrono::nanoseconds kLeastCellTime = std::chrono::milliseconds(20);

/// The cores that a host may run on, as they are exchanged.
struct BoundTo {
  std::array<bool, 1024> cores{};

  [[nodiscard]] static BoundTo here() {
    BoundTo bound;
    for (const int core : allowed_cores()) {
      if (static_cast<std::size_t>(core) < bound.cores.size()) bound.cores[static_cast<std::size_t>(core)] = true;
    }
    return bound;
  }
  [[nodiscard]] std::vector<int> list() const {
    std::vector<int> numbers;
    for (std::size_t core = 0; core < cores.size(); ++core) {
      if (cores[core]) numbers.push_back(static_cast<int>(core));
    }
    return numbers;
  }
};

std::int64_t last_level_cache_bytes() {
  const long l3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return l3 > 0 ? l3 : std::max(0L, sysconf(_SC_LEVEL2_CACHE_SIZE));
}

/// Why a host cannot run a case, as it is exchanged.
struct Refusal {
  Code code = Code::ok;
  std::array<char, 1024> reason{};

  [[nodiscard]] static Refusal of(const Status& status) {
    Refusal refusal{.code = status.code()};
    std::strncpy(refusal.reason.data(), std::string(status.message()).c_str(), refusal.reason.size() - 1);
    return refusal;
  }
};

/// That of the first host that has one; the same on all hosts.
Result<Refusal> first_refusal(Host& host, const Refusal& mine) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<Refusal> all, host.exchange(mine));
  const auto first = std::find_if(all.begin(), all.end(), [](const Refusal& one) { return one.code != Code::ok; });
  return first == all.end() ? Refusal() : *first;
}

Row refused_row(const Case& one, const Refusal& refusal) {
  Row row = row_of(one);
  const bool is_missing = refusal.code == Code::unavailable || refusal.code == Code::resource;
  row.verdict = is_missing ? Verdict::skipped : refusal.code == Code::refuted ? Verdict::wrong : Verdict::error;
  row.reason = refusal.reason.data();
  return row;
}

CommunicatorOptions communicator_options(const SessionSpec& spec, const Host& host, int cores) {
  CommunicatorOptions options;
  // A host of several ranks has the others to turn to: what one of them waits for does not come while it spins.
  const bool has_company = host.ranks().size() > 1 || host.order() != nullptr;
  options.waiting = host.yields() || has_company ? Waiting::yield : Waiting::spin;
  options.cores = cores;
  options.timeout = host.timeout();
  options.cache_bytes = last_level_cache_bytes();
  options.prove_plans |= spec.mode == SessionSpec::Mode::check || spec.mode == SessionSpec::Mode::faults;
  options.pace = host.order();
  return options;
}

/// One host's walk through the session.
class Walk {
 public:
  /// What the walk works with; `cores`: see cores_together.
  struct Place {
    Host& host;
    Domain& domain;
    const Send& send;
    int cores;
  };
  Walk(const SessionSpec& spec, const Place& place)
      : spec_(spec), host_(place.host), domain_(place.domain), send_(place.send), cores_(place.cores) {}

  Status run() {
    TUTTI_RETURN_IF_ERROR(open_backends());
    if (spec_.mode == SessionSpec::Mode::measure && spec_.sync == Synchronisation::library) {
      TUTTI_RETURN_IF_ERROR(open_barriers());
    }
    if (spec_.mode == SessionSpec::Mode::measure) TUTTI_RETURN_IF_ERROR(report_facts());
    for (std::size_t i = 0; i < spec_.cells.size(); ++i) {
      host_.set_case(static_cast<std::uint32_t>(i));
      TUTTI_RETURN_IF_ERROR(report("begin", std::to_string(i)));
      if (spec_.mode == SessionSpec::Mode::faults) {
        TUTTI_RETURN_IF_ERROR(try_faults(spec_.cells[i].front()));
        continue;
      }
      TUTTI_ASSIGN_OR_RETURN(const std::vector<Row> rows, run_cell(i));
      std::string text;
      for (const Row& row : rows) text += row_to_json(row) + "\n";
      TUTTI_RETURN_IF_ERROR(report("cell", text));
    }
    for (const auto& reference : references_) TUTTI_RETURN_IF_ERROR(reference->close());
    return host_.order() == nullptr ? Status() : report_order(*host_.order());
  }

 private:
  Status report(std::string_view type, std::string_view text) {
    return host_.index() == 0 ? send_(type, text) : Status();
  }

  Status open_backends() {
    CommunicatorOptions options = communicator_options(spec_, host_, cores_);
    const auto breaker = std::make_shared<PlanBreaker>();
    if (spec_.mode == SessionSpec::Mode::faults) options.after_bind = PlanBreaker::hook(breaker);
    TUTTI_ASSIGN_OR_RETURN(own_, OwnBackend::create(domain_, host_.ranks(), options));
    backends_[own_->name()] = own_.get();
    if (spec_.has_limit) limit_.emplace(domain_, host_.ranks());
    if (spec_.slow_down) backends_[own_->name()] = &slowed_.emplace(*own_, *spec_.slow_down);
    if (spec_.mode == SessionSpec::Mode::faults) {
      injector_ = std::make_unique<Injector>(*own_, host_.ranks(), breaker);
    }
    for (const std::string& name : spec_.references) {
      TUTTI_ASSIGN_OR_RETURN(auto reference, ReferenceBackend::create(name, spec_.backend_directories));
      host_.announce(Activity::operation);
      if (spec_.ranks_as == RanksAs::processes)
        TUTTI_RETURN_IF_ERROR(reference->open(host_.job_ranks(), host_.index()));
      host_.settle();
      backends_[name] = reference.get();
      references_.push_back(std::move(reference));
    }
    return {};
  }

  /// A barrier on every backend that has one on all hosts.
  Status open_barriers() {
    for (const auto& [name, backend] : backends_) {
      Case one;
      one.backend = name;
      one.transport = domain_.transport();
      one.ranks = spec_.ranks;
      one.ranks_as = spec_.ranks_as;
      one.algorithm = name == kOwnBackend ? kAuto : kNone;
      one.algorithm = backend->algorithm_of(one);
      Result<Variant> barrier = make_barrier(*backend, one);
      TUTTI_ASSIGN_OR_RETURN(const Refusal refusal, first_refusal(host_, Refusal::of(barrier.status())));
      if (refusal.code == Code::ok) {
        barriers_.emplace(name, std::move(barrier).value());
      } else {
        no_barrier_[name] = refusal.reason.data();
      }
    }
    return {};
  }
  Result<Variant> make_barrier(Backend& backend, const Case& one) {
    TUTTI_RETURN_IF_ERROR(backend.supports(one));
    return Variant::create(host_, {.backend = backend, .memory = memory(), .instance = one});
  }
  /// Where samples start after a barrier of the system under test: errors where this one has none.
  [[nodiscard]] Status has_start(const std::string& backend) const {
    const auto why = no_barrier_.find(backend);
    if (why == no_barrier_.end()) return {};
    return error(Code::unavailable, "--sync library needs a barrier: {}", why->second);
  }
  /// That of a sample in which nothing is done; of several barriers the longest.
  Result<double> floor() {
    if (barriers_.empty()) return measure_floor(host_, {.how = spec_.sync});
    double longest = 0;
    for (auto& [name, barrier] : barriers_) {
      TUTTI_ASSIGN_OR_RETURN(const double one, measure_floor(host_, {.how = spec_.sync, .barrier = &barrier}));
      longest = std::max(longest, one);
    }
    return longest;
  }

  /// Where the order is drawn every case has ranks of its own, as if it ran alone: its id and the seed bring it back.
  Status open_afresh() {
    own_ = nullptr;
    TUTTI_ASSIGN_OR_RETURN(own_domain_, local::open_domain(domain_shape(spec_)));
    TUTTI_ASSIGN_OR_RETURN(own_,
                           OwnBackend::create(*own_domain_, host_.ranks(), communicator_options(spec_, host_, cores_)));
    backends_[own_->name()] = own_.get();
    return {};
  }

  Status report_order(const Order& order) {
    return report("facts", nlohmann::json{{"order", {{"steps", order.steps()}, {"trace", order.trace()}}}}.dump());
  }

  Status report_facts() {
    TUTTI_ASSIGN_OR_RETURN(floor_ns_, floor());
    TUTTI_ASSIGN_OR_RETURN(clock_, host_.agree(measure_clock()));
    TUTTI_ASSIGN_OR_RETURN(const std::vector<BoundTo> bound, host_.exchange(BoundTo::here()));
    nlohmann::json facts{{"floor_ns", floor_ns_},
                         {"clock_tick_ns", clock_.tick_ns},
                         {"clock_read_ns", clock_.read_ns},
                         {"in_time_ns", host_.in_time_ns()},
                         {"bound", nlohmann::json::array()},
                         {"backends", nlohmann::json::object()}};
    for (const BoundTo& host : bound) {
      const std::vector<int> list = host.list();
      facts["bound"].push_back(list);
      for (const int core : list) append_new(cores_of_ranks_, core);
    }
    for (const auto& [name, backend] : backends_) {
      facts["backends"][name] = nlohmann::json::parse(backend->describe(), nullptr, false);
    }
    return report("facts", facts.dump());
  }

  /// A case that some host cannot run is a row with the reason, on no host run, and the walk goes on.
  Result<std::vector<Row>> run_cell(std::size_t index) {
    if (host_.order() != nullptr) TUTTI_RETURN_IF_ERROR(open_afresh());
    std::vector<Row> refused;
    std::vector<Variant> variants;
    for (Case one : spec_.cells[index]) {
      one.algorithm = backends_.at(one.backend)->algorithm_of(one);
      Result<Variant> variant = make_ready(one, spec_.cells[index]);
      Refusal refusal = Refusal::of(variant.status());
      TUTTI_ASSIGN_OR_RETURN(refusal, first_refusal(host_, refusal));
      if (refusal.code == Code::ok) {
        variants.push_back(std::move(variant).value());
      } else {
        refused.push_back(refused_row(one, refusal));
      }
    }
    std::vector<Row> rows;
    if (!variants.empty()) {
      TUTTI_ASSIGN_OR_RETURN(rows, spec_.mode == SessionSpec::Mode::check ? check(variants) : measure(variants, index));
    }
    rows.insert(rows.end(), refused.begin(), refused.end());
    return rows;
  }

  /// The same kind for all backends of a cell.
  MemorySource memory() {
    return [this](const Case& which, std::size_t index) { return own_->allocator(which, index); };
  }

  Result<Variant> make_ready(const Case& one, const std::vector<Case>& cell) {
    Backend& backend = *backends_.at(one.backend);
    TUTTI_RETURN_IF_ERROR(fits_memory(cell, spec_.cache));
    TUTTI_RETURN_IF_ERROR(backend.supports(one));
    TUTTI_RETURN_IF_ERROR(has_start(one.backend));
    const Rotation rotation = rotation_of(one, spec_.cache);
    return Variant::create(host_, {.backend = backend,
                                   .memory = memory(),
                                   .instance = one,
                                   .seed = spec_.seed,
                                   .values = spec_.values,
                                   .misaligns = spec_.mode == SessionSpec::Mode::check,
                                   .is_asynchronous = spec_.overlap_calls > 0,
                                   .rotation = rotation,
                                   .filler = filler(rotation)});
  }

  /// Memory of this host's own that is there, not a page of zeros in many places. The same for all cases of a cell.
  std::span<const std::byte> filler(const Rotation& rotation) {
    const auto bytes = static_cast<std::size_t>(rotation.filler_bytes);
    if (filler_.size() < bytes) filler_.assign(bytes, std::byte{1});
    return filler_;
  }

  Status try_faults(const Case& one) {
    TUTTI_ASSIGN_OR_RETURN(const std::vector<Fault> faults, parse_faults(spec_.faults));
    Sight sight;
    if (!spec_.blind.empty()) {
      TUTTI_ASSIGN_OR_RETURN(sight, sight_without(spec_.blind));
    }
    const TrialPlace place{.host = host_, .own = *own_, .injector = *injector_, .sight = sight};
    for (const Fault fault : faults) {
      TUTTI_ASSIGN_OR_RETURN(const TrialResult result, try_fault(place, one, fault, spec_.seed));
      TUTTI_RETURN_IF_ERROR(report("fault", to_json(result)));
    }
    return {};
  }

  Result<std::vector<Row>> check(std::vector<Variant>& variants) {
    std::vector<Row> rows;
    for (Variant& variant : variants) {
      TUTTI_ASSIGN_OR_RETURN(Row row, check_case(host_, variant));
      rows.push_back(std::move(row));
    }
    return rows;
  }

  Result<std::vector<Row>> measure(std::vector<Variant>& variants, std::size_t index) {
    std::int64_t most_ns = kCellTime.count();
    if (spec_.end_ns != 0) {
      const auto cells = static_cast<std::int64_t>(spec_.cells.size() - index) + spec_.cells_after;
      most_ns = std::max(kLeastCellTime.count(), (spec_.end_ns - monotonic_ns()) / cells);
    }
    std::optional<Variant> limit;
    if (limit_) {
      TUTTI_ASSIGN_OR_RETURN(const std::int64_t begin_ns, host_.agree(monotonic_ns()));
      const Case& one = variants.front().instance();
      const Rotation rotation = rotation_of(one, spec_.cache);
      const Variant::Request like{.backend = *limit_,
                                  .memory = memory(),
                                  .instance = one,
                                  .seed = spec_.seed + index,
                                  .rotation = rotation,
                                  .filler = filler(rotation)};
      TUTTI_ASSIGN_OR_RETURN(limit, make_limit(host_, *limit_, like, begin_ns + most_ns / kTrialShare));
    }
    CellOptions options{.seed = spec_.seed + index,
                        .most_time = std::chrono::nanoseconds(limit ? most_ns - most_ns / kTrialShare : most_ns),
                        .floor_us = floor_ns_ * 1e-3,
                        .tick_us = clock_.tick_ns * 1e-3,
                        .checking = spec_.checking,
                        .cache = spec_.cache,
                        .sync = spec_.sync,
                        .barrier_of =
                            [this](const Case& one) {
                              const auto barrier = barriers_.find(one.backend);
                              return barrier == barriers_.end() ? nullptr : &barrier->second;
                            },
                        .skew = spec_.skew,
                        .overlap_calls = spec_.overlap_calls,
                        .has_limit = limit.has_value()};
    if (spec_.tells_samples) {
      options.on_samples = [this](const Case& one, std::span<const Sample> samples) {
        return report_samples(one, samples);
      };
    }
    if (limit) variants.push_back(std::move(*limit));
    return measure_watched(variants, options);
  }

  /// With what disturbed it, which only host 0 tells.
  Result<std::vector<Row>> measure_watched(std::vector<Variant>& variants, const CellOptions& options) {
    Watched watched{.before = count_here(), .ranks_share_cores = host_.yields()};
    const ThreadCounted before = count_this_thread();
    TUTTI_ASSIGN_OR_RETURN(std::vector<Row> rows, measure_cell(host_, variants, options));
    ThreadCounted mine = count_this_thread();
    mine.used_s -= before.used_s;
    mine.switches -= before.switches;
    TUTTI_ASSIGN_OR_RETURN(const std::vector<ThreadCounted> all, host_.exchange(mine));
    watched.after = count_here();
    for (const ThreadCounted& host : all) {
      watched.used_s += host.used_s;
      watched.most_switches = std::max(watched.most_switches, host.switches);
    }
    for (Row& row : rows) row.disturbed = disturbances_of(watched);
    return rows;
  }
  [[nodiscard]] CoresCounted count_here() const {
    return host_.index() == 0 ? count_cores(Tree("/"), cores_of_ranks_) : CoresCounted();
  }

  /// In parts, each of which a message can hold for any number of ranks.
  Status report_samples(const Case& one, std::span<const Sample> samples) {
    const std::string lines = samples_lines(case_id(one), spec_.launch, samples);
    constexpr std::size_t kPart = std::size_t{1} << 20U;
    for (std::size_t at = 0; at < lines.size(); at += kPart) {
      TUTTI_RETURN_IF_ERROR(report("samples", std::string_view(lines).substr(at, kPart)));
    }
    return {};
  }

  const SessionSpec& spec_;
  Host& host_;
  Domain& domain_;
  const Send& send_;
  int cores_;
  std::vector<int> cores_of_ranks_;  ///< of all hosts together
  double floor_ns_ = 0;
  ClockFacts clock_;
  std::unique_ptr<Domain> own_domain_;  // of own_, where that is not domain_
  std::unique_ptr<OwnBackend> own_;
  std::optional<LimitBackend> limit_;
  std::optional<SlowedBackend> slowed_;
  std::unique_ptr<Injector> injector_;  ///< of a session of faults
  std::vector<std::unique_ptr<ReferenceBackend>> references_;
  std::map<std::string, Backend*> backends_;
  std::vector<std::byte> filler_;                  ///< what rotating calls read
  std::map<std::string, Variant> barriers_;        ///< by backend; where samples start after them
  std::map<std::string, std::string> no_barrier_;  ///< those that have none, and why
};

int hosts_of(const SessionSpec& spec) { return spec.ranks_as == RanksAs::tasks ? 1 : spec.ranks; }

Status soak(const SessionSpec& spec, const Walk::Place& place) {
  Host& host = place.host;
  const auto own_world = [&](int rank) -> Result<std::unique_ptr<Group>> {
    TUTTI_ASSIGN_OR_RETURN(auto world,
                           Communicator::create(place.domain, rank, communicator_options(spec, host, place.cores)));
    return std::unique_ptr<Group>(new TuttiGroup(std::move(world), std::make_shared<Schedules>()));
  };
  SoakResult result;
  if (spec.references.empty()) {
    TUTTI_ASSIGN_OR_RETURN(result, run_soak(spec, {.host = host, .world = own_world}));
  } else {
    TUTTI_ASSIGN_OR_RETURN(const auto memory, own_world(host.index()));
    TUTTI_ASSIGN_OR_RETURN(const auto reference,
                           ReferenceBackend::create(spec.references.front(), spec.backend_directories));
    host.announce(Activity::operation);
    TUTTI_RETURN_IF_ERROR(reference->open(host.job_ranks(), host.index()));
    host.settle();
    const auto world = [&](int) {
      return Result(reference->world([&](Buffers kind) { return memory->memory(kind); }));
    };
    TUTTI_ASSIGN_OR_RETURN(result, run_soak(spec, {.host = host, .world = world}));
    TUTTI_RETURN_IF_ERROR(reference->close());
  }
  return host.index() == 0 ? place.send("soak", to_json(result)) : Status();
}

HostOptions host_options(const SessionSpec& spec, int host, bool is_crowded) {
  HostOptions options{
      .host = host, .hosts = hosts_of(spec), .job_ranks = spec.ranks, .ranks = {host}, .timeout = spec.timeout};
  if (spec.ranks_as == RanksAs::tasks) {
    options.ranks.resize(static_cast<std::size_t>(spec.ranks));
    std::iota(options.ranks.begin(), options.ranks.end(), 0);
  }
  options.yields = is_crowded;
  if (spec.ranks_as != RanksAs::processes) options.grace = {};
  return options;
}

}  // namespace

std::vector<std::string> standings_of(const SessionSpec& spec, int domain_fd) {
  if (domain_fd < 0 || spec.ranks_as != RanksAs::processes) return {};
  const auto domain = shm::open_domain(domain_shape(spec), domain_fd);
  if (!domain.is_ok()) return {};
  const std::vector<Progress> all = progress_of(*domain.value());
  if (std::ranges::none_of(all, &Progress::waits)) return {};  // it is not ours that hangs
  std::vector<std::string> standings;
  for (const Progress& one : all) standings.push_back("its communicator " + one.text);
  return standings;
}

Status run_session(const SessionSpec& spec, const SessionPlace& place) {
  TUTTI_ASSIGN_OR_RETURN(const auto masks, masks_for(spec.bind, hosts_of(spec), places_here()));
  const int together = cores_together(spec.ranks_as);  // before threads are pinned
  const DomainShape shape = domain_shape(spec);
  const bool is_process = spec.ranks_as == RanksAs::processes;
  TUTTI_ASSIGN_OR_RETURN(const std::unique_ptr<Domain> domain,
                         is_process ? shm::open_domain(shape, place.domain_fd) : local::open_domain(shape));

  const auto run_host = [&](int index) -> Status {
    const Status bound = bind_this_thread(masks[static_cast<std::size_t>(index)]);
    if (!bound.is_ok() && spec.bind) {  // where nobody asked for it, the thread stays where it may run
      place.board.abort_flag().store(1, std::memory_order_release);
      return bound;
    }
    std::optional<Order> order;
    if (spec.order_seed && spec.ranks_as == RanksAs::tasks) order.emplace(*spec.order_seed, spec.ranks);
    HostOptions options = host_options(spec, index, is_crowded(masks));
    options.order = order ? &*order : nullptr;
    Host host(place.board, options);
    const Walk::Place here{.host = host, .domain = *domain, .send = place.send, .cores = together};
    Status status = spec.mode == SessionSpec::Mode::soak ? soak(spec, here) : Walk(spec, here).run();
    if (!status.is_ok()) place.board.abort_flag().store(1, std::memory_order_release);
    return status;
  };
  if (spec.ranks_as != RanksAs::threads) return run_host(is_process ? place.rank : 0);

  std::mutex mutex;
  Status first;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < spec.ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const Status status = run_host(rank);
      const std::lock_guard lock(mutex);
      const bool explains_more = first.is_ok() || first.code() == Code::aborted;
      if (!status.is_ok() && explains_more) first = status;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return first;
}

}  // namespace tutti::harness
