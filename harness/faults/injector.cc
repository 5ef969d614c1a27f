// SPDX-License-Identifier: Apache-2.0
#include "harness/faults/injector.h"

#include <algorithm>
#include <cstring>

#include "harness/faults/stand_ins.h"
#include "harness/measure/variant.h"
#include "impl/communicator/plan_cache.h"

namespace tutti::harness::faults {
namespace {

constexpr char kMark = '~';  ///< between an algorithm's name and the number of a broken case
/// How long after completion the rest of a late write comes.
constexpr std::int64_t kLateNs = 20'000;

std::optional<Schedule> own_schedule(const Case& one, const Problem& problem) {
  const std::size_t mark = one.algorithm.find(kMark);
  if (mark == std::string::npos) return std::nullopt;
  const auto algorithm = find_algorithm(one.collective, one.algorithm.substr(0, mark));
  if (!algorithm.is_ok()) return std::nullopt;
  return schedule_of(*algorithm.value(), problem);
}

std::vector<std::byte> bytes_of(Count elements, Dtype dtype) {
  return std::vector<std::byte>(static_cast<std::size_t>(elements) * size_of(dtype));
}

/// The input of the operation before, of one rank.
Interception previous_data() {
  return {.before =
              [is_first = true](StandIn& one) mutable {
                if (!one.input.empty() && std::exchange(is_first, false))
                  std::ranges::copy(one.user_input, one.input.begin());
              },
          .after =
              [](StandIn& one) {
                if (!one.input.empty()) std::ranges::copy(one.user_input, one.input.begin());
              }};
}

/// Half of the output when the operation is complete, all of it later.
Interception late_write() {
  const auto copy = [](StandIn& one, std::size_t bytes) {
    if (!one.output.empty()) std::copy_n(one.output.begin(), bytes, one.user_output.begin());
  };
  return {.before =
              [](StandIn& one) {
                if (!one.output.empty()) std::ranges::copy(one.user_output, one.output.begin());
              },
          .after = [copy](StandIn& one) { copy(one, one.output.size() / 2); },
          .much_later = [copy](StandIn& one) { copy(one, one.output.size()); },
          .delay_ns = kLateNs};
}

/// The rank that takes itself for the root gives what its input would be if it were, and has a root's output.
Interception wrong_root(InputSpec spec, std::shared_ptr<const std::uint64_t> salt) {
  return {.before =
              [spec, salt](StandIn& one) {
                InputSpec now = spec;
                now.salt = *salt;
                fill_input(one.input, now);
                fill_poison(one.output, *salt);
              },
          .after =
              [](StandIn& one) {
                const std::size_t bytes = std::min(one.output.size(), one.user_output.size());
                std::copy_n(one.output.begin(), bytes, one.user_output.begin());
              }};
}

}  // namespace

AfterBind PlanBreaker::hook(std::shared_ptr<PlanBreaker> breaker) {
  return [breaker = std::move(breaker)](int rank, const Call&, BoundEntry& bound) {
    if (breaker->armed_ && break_plan(*breaker->armed_, rank, bound)) ++breaker->broken_;
  };
}

Injector::Injector(OwnBackend& own, std::vector<int> ranks, std::shared_ptr<PlanBreaker> breaker)
    : own_(own), ranks_(std::move(ranks)), breaker_(std::move(breaker)) {
  own_.set_substitute(own_schedule);
}

Result<std::unique_ptr<Prepared>> Injector::prepare(const Case& one, std::span<const RankBuffers> buffers) {
  Case broken = one;
  broken.algorithm += fmt::format("{}{}", kMark, prepared_++);
  const Operation operation = operation_of(one, injection_.input_seed);
  if (is_plan_fault(injection_.fault)) {
    breaker_->arm({.fault = injection_.fault,
                   .rank = injection_.rank,
                   .operation = operation,
                   .seed = injection_.seed,
                   .is_in_place = one.is_in_place});
    auto calls = own_.prepare(broken, buffers);
    is_injected_ = breaker_->disarm() > 0;
    return calls;
  }
  if (injection_.fault == Fault::off_by_one_count) {
    broken.count += injection_.by;
    if (operation.blocks) broken.counts = lengths_off_by(one.problem(), *operation.blocks, injection_.by);
    is_injected_ = true;
    return own_.prepare(broken, buffers);
  }
  return prepare_stand_ins(broken, operation, buffers);
}

Result<std::unique_ptr<Prepared>> Injector::prepare_stand_ins(Case& broken, const Operation& operation,
                                                              std::span<const RankBuffers> buffers) {
  const bool takes_root = injection_.fault == Fault::wrong_root;
  if (takes_root) broken.root = injection_.rank;
  const Operation believed = operation_of(broken, injection_.input_seed);  // by all ranks
  is_injected_ = false;
  std::vector<StandIn> stand_ins;
  std::vector<RankBuffers> theirs;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const int rank = ranks_[i];
    const Count spare = output_blocks(operation.problem, rank) == 0 ? operation.count : operation.output_elements(rank);
    StandIn one{.user_input = {static_cast<const std::byte*>(buffers[i].input),
                               bytes_of(operation.input_elements(rank), operation.dtype).size()},
                .user_output = {static_cast<std::byte*>(buffers[i].output), bytes_of(spare, operation.dtype).size()},
                .input = {},
                .output = {}};
    if (rank == injection_.rank) {
      const bool is_late = injection_.fault == Fault::late_write;
      if (!is_late) one.input = bytes_of(believed.input_elements(rank), operation.dtype);
      if (is_late || takes_root) one.output = bytes_of(believed.output_elements(rank), operation.dtype);
      is_injected_ = !one.input.empty() || !one.output.empty();
    }
    theirs.push_back(one.buffers());
    stand_ins.push_back(std::move(one));
  }
  TUTTI_ASSIGN_OR_RETURN(auto calls, own_.prepare(broken, theirs));
  Interception what = takes_root                              ? wrong_root(input_of(operation, injection_.rank), salt_)
                      : injection_.fault == Fault::late_write ? late_write()
                                                              : previous_data();
  return intercept(std::move(calls), std::move(stand_ins), std::move(what));
}

}  // namespace tutti::harness::faults
