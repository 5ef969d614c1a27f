// SPDX-License-Identifier: Apache-2.0
#include "suites/perf/walk.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <numeric>
#include <ranges>
#include <unistd.h>

#include "harness/cases/lists.h"
#include "harness/cases/topology.h"
#include "harness/machine/clock.h"
#include "harness/machine/gpu.h"
#include "harness/machine/process_age.h"
#include "harness/measure/memory.h"
#include "harness/measure/precision.h"
#include "harness/measure/rows.h"
#include "harness/measure/stream.h"
#include "harness/measure/variant.h"
#include "harness/verify/inputs.h"
#include "impl/bootstrap/table_file.h"
#include "impl/collective/alike.h"
#include "impl/communicator/selection_table.h"
#include "impl/types/names.h"
#include "suites/perf/average.h"
#include "suites/perf/blocks.h"
#include "suites/perf/gpu.h"

namespace tutti::perf {
namespace {

using harness::Blocking;
using harness::Case;
using harness::StreamResult;
using harness::Variant;

constexpr double kApartUs = 0.5;  ///< ranks whose arrivals differ by less came together

Blocking blocking_of(const Settings& settings) {
  if (settings.blocking == 1) return Blocking::barrier_timed;
  if (settings.blocking == 2) return Blocking::each_end;
  return settings.blocking == 3 ? Blocking::barrier_untimed : Blocking::none;
}

constexpr std::size_t kMostInTableId = 200;

class Walk {
 public:
  Walk(const Program& program, const Settings& settings, const WalkPlace& place, const OnRow& on_row)
      : program_(program), settings_(settings), place_(place), on_row_(on_row) {}

  Result<WalkResult> run() {
    if (settings_.backend != kNccl) TUTTI_RETURN_IF_ERROR(read_table());
    TUTTI_RETURN_IF_ERROR(settings_.backend == kNccl ? open_nccl() : settings_.device ? open_blocks() : open_backend());
    TUTTI_ASSIGN_OR_RETURN(const std::vector<double> ages_s,
                           place_.runner.exchange(harness::process_age_s().value_or(0)));
    result_.ready_s = std::ranges::max(ages_s);
    // Free memory of GPUs may differ from process to process.
    TUTTI_ASSIGN_OR_RETURN(const std::vector<std::int64_t> most, place_.runner.exchange(max_bytes_));
    max_bytes_ = *std::ranges::min_element(most);
    if (max_bytes_ < settings_.min_bytes) {
      return error(Code::resource, "sizes from {} are skipped, which are all: a process has room for {} at most",
                   settings_.min_bytes, max_bytes_);
    }
    const bool has_any = has_rows(program_, place_.split);
    for (int cycle = 0; has_any && (settings_.cycles == 0 || cycle < settings_.cycles); ++cycle) {
      for (const Dtype dtype : settings_.dtypes) {
        for (const Op op : ops()) {
          if (!op_exists(op, dtype)) continue;
          for (const int root : roots()) TUTTI_RETURN_IF_ERROR(sweep(dtype, op, root));
        }
      }
    }
    if (has_gpu_memory(settings_)) TUTTI_RETURN_IF_ERROR(add_memory_of_gpus());
    if (nccl_ != nullptr) TUTTI_RETURN_IF_ERROR(nccl_->close());
    return result_;
  }

 private:
  /// Of the group.
  [[nodiscard]] int ranks() const { return place_.share.ranks; }
  [[nodiscard]] std::vector<Op> ops() const {
    const bool has_ops = is_reducing(program_.collective) || program_.repeats_for_ops;
    return has_ops ? settings_.ops : std::vector{Op::none};
  }
  [[nodiscard]] std::vector<int> roots() const {
    if (!is_rooted(program_.collective)) return {0};
    if (settings_.root >= 0) return {settings_.root};
    // Those that every group has: the groups take the same steps.
    std::vector<int> all(static_cast<std::size_t>(place_.split.sizes().front()));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

  /// The table that TUTTI_TABLE names: the same in all processes. Errors: invalid_argument; mismatch.
  Status read_table() {
    TUTTI_ASSIGN_OR_RETURN(auto file, table_file_here(kMostInTable));
    if (file) {
      auto table = SelectionTable::parse(shown(file->name), std::move(file->text));
      if (!table.is_ok()) return error(table.status().code(), "TUTTI_TABLE: {}", table.status().message());
      table_ = std::make_shared<const SelectionTable>(std::move(table).value());
    }
    std::array<char, kMostInTableId> own{};
    table_id().copy(own.data(), own.size() - 1);
    TUTTI_ASSIGN_OR_RETURN(const auto all, place_.runner.exchange(own));
    const auto other = std::ranges::find_if(all, [&](const auto& one) { return one != all.front(); });
    if (other == all.end()) return {};
    return error(Code::mismatch,
                 "rank {} has the selection table {}, and rank 0 has {}: give all ranks the same "
                 "(TUTTI_TABLE)",
                 other - all.begin(), shown(other->data()), shown(all.front().data()));
  }
  [[nodiscard]] std::string table_id() const { return SelectionTable::of(table_.get()).id(); }

  Status open_backend() {
    CommunicatorOptions options;
    options.waiting = place_.runner.yields() ? Waiting::yield : Waiting::spin;
    const auto groups = static_cast<int>(place_.split.sizes().size());
    options.cores = std::max(1, static_cast<int>(place_.cores.size()) / groups);
    options.timeout = place_.runner.timeout();
    options.cache_bytes = std::max(sysconf(_SC_LEVEL3_CACHE_SIZE), sysconf(_SC_LEVEL2_CACHE_SIZE));
    options.table = table_;
    TUTTI_ASSIGN_OR_RETURN(world_, Communicator::create(place_.domain, place_.runner.index(), options));
    std::vector<std::unique_ptr<Communicator>> communicators(1);
    if (place_.split.has_groups()) {
      place_.runner.announce(harness::Activity::operation);
      TUTTI_ASSIGN_OR_RETURN(communicators.front(), world_->split(place_.share.group, place_.runner.index()));
      place_.runner.settle();
    } else {
      communicators.front() = std::move(world_);
    }
    backend_ = harness::OwnBackend::over(place_.domain, std::move(communicators));
    return {};
  }

  Status open_blocks() {
    TUTTI_ASSIGN_OR_RETURN(blocks_, BlockRanks::open(place_.runner, place_.domain, settings_, table_));
    return {};
  }

  Status open_nccl() {
    TUTTI_ASSIGN_OR_RETURN(nccl_, NcclRanks::open(place_.runner, {.devices = place_.devices,
                                                                  .first_rank = place_.first_rank,
                                                                  .registration = settings_.registration,
                                                                  .has_groups = place_.split.has_groups()}));
    return {};
  }

  [[nodiscard]] harness::Backend& backend() {
    if (nccl_ != nullptr) return nccl_->backend();
    return blocks_ != nullptr ? blocks_->backend() : *backend_;
  }
  [[nodiscard]] harness::MemorySource memory() {
    if (nccl_ != nullptr) return nccl_->memory();
    if (blocks_ != nullptr) return blocks_->memory();
    return [this](const Case& which, std::size_t rank) { return backend_->allocator(which, rank); };
  }
  [[nodiscard]] Case case_of(Dtype dtype, Op op, int root, const Size& size, bool is_in_place) {
    Case one;
    one.collective = program_.collective;
    one.transport = place_.domain.transport();
    one.dtype = dtype;
    one.op = is_reducing(program_.collective) ? op : Op::none;
    one.ranks = ranks();
    one.ranks_as = blocks_ != nullptr     ? harness::RanksAs::blocks
                   : place_.has_processes ? harness::RanksAs::processes
                                          : harness::RanksAs::threads;
    one.root = root;
    one.bytes = size.bytes;
    one.count = size.count;
    one.is_in_place = is_in_place;
    if (has_counts(one.collective)) {
      one.counts = settings_.traffic.counts(dtype, size.bytes, is_in_place);
      set_bytes(one, size.bytes);
    }
    one.cadence = harness::Cadence::streaming;
    one.algorithm = std::string(program_.algorithm);
    one.backend = settings_.backend;
    if (nccl_ != nullptr && settings_.registration > 0) one.buffers = Buffers::shared;
    one.algorithm = backend().algorithm_of(one);
    return one;
  }

  /// Ready on all ranks, or an error on all.
  Result<Variant> make(const Case& one) {
    TUTTI_RETURN_IF_ERROR(backend().supports(one));
    if (place_.names != nullptr) place_.names->add(case_id(one));
    place_.runner.set_case(++cases_);
    // Registering may be collective, and then is the library's to wait for.
    const bool registers = settings_.registration > 0;
    if (registers) place_.runner.announce(harness::Activity::operation);
    auto variant = Variant::create(place_.runner,
                                   {.backend = backend(),
                                    .memory = memory(),
                                    .instance = one,
                                    .misalignment = static_cast<std::size_t>(settings_.unaligned) * size_of(one.dtype),
                                    .is_asynchronous = nccl_ != nullptr});
    if (registers) place_.runner.settle();
    TUTTI_ASSIGN_OR_RETURN(const harness::Reason why_not, place_.runner.first_reason(variant.status()));
    if (!variant.is_ok() || !why_not.is_any()) return variant;
    return error(why_not.code, "another rank cannot run {}: {}", case_id(one), why_not.text());
  }

  /// All sizes, after the untimed operations of every doubling.
  Status sweep(Dtype dtype, Op op, int root) {
    if (settings_.min_bytes > max_bytes_) return {};  // there is no memory for the first one
    for (std::int64_t bytes = settings_.min_bytes; settings_.warm_up > 0; bytes *= 2) {
      TUTTI_ASSIGN_OR_RETURN(Variant variant,
                             make(case_of(dtype, op, root, size_for(program_, bytes, dtype, ranks()), false)));
      variant.refill(0);
      const bool is_first = result_.first_call_us == 0;
      if (is_first) TUTTI_RETURN_IF_ERROR(time_first_call(variant));
      TUTTI_RETURN_IF_ERROR(harness::warm_up(place_.runner, variant, settings_.warm_up - (is_first ? 1 : 0)));
      if (bytes == 0 || bytes > max_bytes_ / 2) break;
    }
    for (std::int64_t bytes = settings_.min_bytes; bytes <= max_bytes_; bytes = settings_.next_size(bytes)) {
      TUTTI_RETURN_IF_ERROR(measure_row(dtype, op, root, size_for(program_, bytes, dtype, ranks())));
      if (settings_.min_bytes == max_bytes_) break;
    }
    return {};
  }

  /// The first operation of all, which sets up what a library puts off.
  Status time_first_call(Variant& variant) {
    const std::int64_t begin_ns = harness::monotonic_ns();
    TUTTI_RETURN_IF_ERROR(harness::warm_up(place_.runner, variant, 1));
    const std::int64_t mine_ns = harness::monotonic_ns() - begin_ns;
    TUTTI_ASSIGN_OR_RETURN(const std::vector<std::int64_t> all_ns, place_.runner.exchange(mine_ns));
    result_.first_call_us = static_cast<double>(std::ranges::max(all_ns)) * 1e-3;
    return {};
  }

  Status measure_row(Dtype dtype, Op op, int root, const Size& size) {
    Report report;
    report.row = {.size = size,
                  .dtype = to_string(dtype),
                  .op = program_.is_hypercube ? ""
                        : op == Op::none      ? "none"
                                              : op_name(op),
                  .root = is_rooted(program_.collective) ? root : -1};
    for (const bool is_in_place : {false, true}) {
      const Case one = case_of(dtype, op, root, size, is_in_place);
      if (!is_in_place) report.row.size.bytes = one.bytes;
      if (is_in_place && nccl_ != nullptr && !has_in_place(program_.collective)) continue;
      TUTTI_ASSIGN_OR_RETURN(Measurement measured, measure(one, size, report));
      (is_in_place ? report.row.in : report.row.out) = std::move(measured);
    }
    if (has_counts(program_.collective)) {
      report.comments = settings_.traffic.summary(size.bytes, report.row.out.time_us);
      if (settings_.traffic.has_matrix()) report.row.size.count = 0;
    }
    return place_.runner.index() == 0 ? on_row_(report) : Status();
  }

  Result<Measurement> measure(const Case& one, const Size& size, Report& report) {
    TUTTI_ASSIGN_OR_RETURN(Variant variant, make(one));
    const bool has_records = !settings_.csv.empty() || !settings_.json.empty();
    // NCCL takes a group of operations; CPU ranks have them one after the other.
    const int grouped = nccl_ != nullptr ? settings_.aggregated : 1;
    const harness::StreamOptions options{.operations = settings_.iterations * (settings_.aggregated / grouped),
                                         .grouped = grouped,
                                         .launches = settings_.launches,
                                         .blocking = blocking_of(settings_),
                                         .times_each = settings_.times_each || has_records,
                                         .tells_runners = tells_processes() || tells_ranks(),
                                         .checks = settings_.checks,
                                         .salt = salt_};
    TUTTI_ASSIGN_OR_RETURN(const StreamResult result, harness::measure_stream(place_.runner, variant, options));
    salt_ = result.last_salt + 1;
    const auto buffers = static_cast<double>(variant.buffer_bytes_here());
    const auto ranks_here = static_cast<double>(place_.runner.ranks().size());
    const double of_gpu = buffers / ranks_here * settings_.ranks_per_gpu;
    double& most = result_.memory.buffer_bytes;
    most = std::max(most, has_gpu_memory(settings_) ? of_gpu
                          : blocks_ != nullptr      ? buffers
                                                    : buffers * place_.runner.job_ranks());
    const double time_us = reported_us(result, settings_.average);
    Measurement measured;
    measured.time_us = settings_.reports_cputime ? result.rank0_posted_us : time_us;
    const Size moved{.count = size.count, .bytes = one.bytes};
    measured.bandwidths = bandwidths_of(program_, moved, one.dtype, one.problem(), time_us);
    if (settings_.checks > 0) measured.wrong = result.wrong;
    const auto skipped = std::min<std::ptrdiff_t>(settings_.skipped, std::ssize(result.each_us));
    measured.each_us.assign(result.each_us.begin() + skipped, result.each_us.end());
    if (tells_processes()) add_processes(result.each_us_of_runners, skipped, measured);
    if (tells_ranks()) {
      const double apart_us = std::max(kApartUs, static_cast<double>(place_.runner.in_time_ns()) * 1e-3);
      result_.ranks.add_stream(result.each_us_of_runners, apart_us, ranks_are_alike(one.collective));
    }
    result_.failed_checks += result.failed_checks;
    result_.bus_sum += measured.bandwidths.bus;
    ++result_.placements;
    harness::Row row = harness::streamed_row(variant, result, options);
    if (nccl_ != nullptr) row.gpu = harness::gpu_model(place_.devices.front());
    if (settings_.registration == kWindows) row.registered = "windows";
    if (blocks_ != nullptr) add_blocks(row, one);
    if (nccl_ == nullptr && program_.algorithm == harness::kAuto) row.table = table_id();
    if (has_records && settings_.checks > 0) TUTTI_RETURN_IF_ERROR(add_precision(variant, measured, row));
    if (row.wrong.value_or(0) > 0) report.diagnoses.push_back(fmt::format("{}: {}", row.case_id, row.reason));
    report.records.push_back(std::move(row));
    return measured;
  }

  /// What a row says of ranks that are thread blocks.
  void add_blocks(harness::Row& row, const Case& one) const {
    harness::set_conditions_of_ranks(row, blocks_->conditions());
    const bool is_chosen = program_.algorithm == harness::kAuto;
    const auto cores = static_cast<int>(place_.cores.size());
    if (is_chosen && harness::is_chosen_by_formula(one, blocks_->topology(), cores)) {
      harness::add_mark(row, harness::kFromFormula);
    }
  }

  /// The most of any GPU, in each respect.
  Status add_memory_of_gpus() {
    MemoryUse& memory = result_.memory;
    if (nccl_ != nullptr) nccl_->add_memory(memory);
    if (blocks_ != nullptr) blocks_->add_memory(memory);
    struct Bytes {
      double initial, buffers, collective;
    };
    TUTTI_ASSIGN_OR_RETURN(
        const std::vector<Bytes> all,
        place_.runner.exchange(Bytes{memory.initial_bytes, memory.buffer_bytes, memory.collective_bytes}));
    for (const Bytes& one : all) {
      memory.initial_bytes = std::max(memory.initial_bytes, one.initial);
      memory.buffer_bytes = std::max(memory.buffer_bytes, one.buffers);
      memory.collective_bytes = std::max(memory.collective_bytes, one.collective);
    }
    return {};
  }

  [[nodiscard]] bool tells_processes() const {
    return settings_.times_each && !settings_.compatible_json.empty() && place_.has_processes;
  }

  /// Ranks that begin each operation as soon as their last one has ended show which of them is late.
  [[nodiscard]] bool tells_ranks() const {
    const bool are_cores = nccl_ == nullptr && blocks_ == nullptr;
    return are_cores && blocking_of(settings_) == harness::Blocking::none && place_.split.sizes().size() == 1 &&
           place_.runner.count() > 1 && place_.runner.count() == place_.runner.job_ranks();
  }

  /// Of each operation the longest on any rank of the process.
  void add_processes(const std::vector<std::vector<double>>& of_ranks, std::ptrdiff_t skipped, Measurement& measured) {
    const auto ranks_here = static_cast<std::size_t>(settings_.has_one_host() ? 1 : settings_.ranks_here());
    for (std::size_t first = 0; first < of_ranks.size(); first += ranks_here) {
      std::vector<double> longest(of_ranks[first].begin() + skipped, of_ranks[first].end());
      for (std::size_t rank = first + 1; rank < first + ranks_here; ++rank) {
        std::ranges::transform(longest, of_ranks[rank] | std::views::drop(skipped), longest.begin(),
                               [](double one, double other) { return std::max(one, other); });
      }
      measured.each_us_of_processes.push_back(std::move(longest));
    }
  }

  /// How exact and how reproducible a sum is; what is beyond its bound counts as wrong in the table too.
  Status add_precision(Variant& variant, Measurement& measured, harness::Row& row) {
    if (!harness::has_precision(variant.instance())) return {};
    TUTTI_ASSIGN_OR_RETURN(const harness::Precision precision, harness::measure_precision(place_.runner, variant));
    harness::set_precision(row, precision);
    if (precision.damage.wrong == 0) return {};
    *measured.wrong += precision.damage.wrong;
    ++result_.failed_checks;
    return {};
  }

  const Program& program_;
  const Settings& settings_;
  const WalkPlace& place_;
  const OnRow& on_row_;
  std::unique_ptr<Communicator> world_;  ///< where the backend's is a group of it
  std::unique_ptr<harness::OwnBackend> backend_;
  std::unique_ptr<BlockRanks> blocks_;           ///< in its place where ranks are thread blocks
  std::unique_ptr<NcclRanks> nccl_;              ///< or where NCCL is measured
  std::shared_ptr<const SelectionTable> table_;  ///< null: that which is built in
  WalkResult result_;
  std::int64_t max_bytes_ = settings_.max_bytes;
  std::uint64_t salt_ = 1;
  std::uint32_t cases_ = 0;  ///< so far
};

/// Bytes of all ranks' buffers at -e.
double bytes_of_all(const Program& program, const Settings& settings, int ranks) {
  double needs = 0;
  for (const bool is_in_place : {false, true}) {
    Case one;
    one.collective = program.collective;
    one.dtype = Dtype::i8;
    one.ranks = ranks;
    one.ranks_as = harness::RanksAs::threads;
    one.is_in_place = is_in_place;
    set_bytes(one, settings.max_bytes);
    needs = std::max(needs, harness::memory_need({one}).sum());
  }
  return needs;
}

}  // namespace

std::optional<double> WalkResult::average() const {
  return placements == 0 ? std::nullopt : std::optional(bus_sum / static_cast<double>(placements));
}

Result<WalkResult> walk(const Program& program, const Settings& settings, const WalkPlace& place, const OnRow& on_row) {
  return Walk(program, settings, place, on_row).run();
}

bool has_rows(const Program& program, const Split& split) {
  const auto is_power_of_two = [](int ranks) { return std::has_single_bit(static_cast<unsigned>(ranks)); };
  return !program.is_hypercube || std::ranges::all_of(split.sizes(), is_power_of_two);
}

std::vector<std::string> notes_on_passes(const Program& program, const Settings& settings, int ranks) {
  std::vector<std::string> notes;
  if (!is_reducing(program.collective) || settings.checks == 0) return notes;
  for (const Dtype dtype : settings.dtypes) {
    const auto takes_passes = [&](Op op) { return harness::passes_of(dtype, op, ranks) > 1; };
    const auto op = std::ranges::find_if(settings.ops, takes_passes);
    if (op == settings.ops.end()) continue;
    notes.push_back(fmt::format("Validation of {} sums: {} passes of {} ranks, {} cannot be added exactly",
                                to_string(dtype), harness::passes_of(dtype, *op, ranks),
                                harness::contributors_of(dtype, *op, ranks), ranks));
  }
  return notes;
}

double bytes_of_a_rank(const Program& program, const Settings& settings, int ranks) {
  return bytes_of_all(program, settings, ranks) / ranks;
}

std::int64_t most_bytes_that_fit(const Program& program, const Settings& settings, int ranks,
                                 const harness::MemoryLeft& left) {
  const double needs = bytes_of_all(program, settings, ranks);
  const double share = harness::usable(left) / needs;
  if (needs < harness::kLeastNeedChecked || share >= 1) return settings.max_bytes;
  return static_cast<std::int64_t>(std::max(0.0, share) * static_cast<double>(settings.max_bytes));
}

}  // namespace tutti::perf
