// SPDX-License-Identifier: Apache-2.0
#include "harness/backends/tutti/backend.h"

#include <nlohmann/json.hpp>

#include "harness/verify/inputs.h"
#include "impl/reduce/kernels.h"
#include "impl/transports/hosts.h"

namespace tutti::harness::backends {
namespace {

Call call_for(const Case& one, const RankBuffers& buffers, const Schedule* schedule) {
  return {.collective = one.collective,
          .dtype = one.dtype,
          .op = one.op,
          .root = one.root,
          .count = one.count,
          .input = buffers.input,
          .output = buffers.output,
          .is_in_place = one.is_in_place,
          .buffers = one.buffers,
          .schedule = schedule};
}

/// A rank's place in a case.
struct Seat {
  Communicator* communicator;
  Call call;
  Factor factor;                             ///< of premul_sum
  std::unique_ptr<const BlockTable> blocks;  ///< those of the call
  std::optional<Work> work;                  ///< what was posted last
};

class GraphOfSeat final : public verify::Graph {
 public:
  GraphOfSeat(Seat& seat, std::unique_ptr<CapturedCalls> calls) : seat_(seat), calls_(std::move(calls)) {}
  Status launch() override {
    TUTTI_ASSIGN_OR_RETURN(seat_.work, seat_.communicator->post_captured(*calls_));
    return {};
  }

 private:
  Seat& seat_;
  std::unique_ptr<CapturedCalls> calls_;
};

class PreparedCalls final : public Prepared {
 public:
  /// `has_graphs`: the communicators have them.
  PreparedCalls(std::vector<Seat> seats, bool has_graphs) : seats_(std::move(seats)), has_graphs_(has_graphs) {}

  Status post(std::size_t index) override {
    Seat& seat = seats_[index];
    seat.call.factor = seat.factor.data();
    TUTTI_ASSIGN_OR_RETURN(seat.work, seat.communicator->post(seat.call));
    return {};
  }
  Result<bool> test(std::size_t index) override { return seats_[index].work->test(); }
  [[nodiscard]] bool has_graphs() const override { return has_graphs_; }
  Status begin_capture(std::size_t index) override { return seats_[index].communicator->begin_capture(); }
  Result<std::unique_ptr<verify::Graph>> end_capture(std::size_t index) override {
    TUTTI_ASSIGN_OR_RETURN(auto calls, seats_[index].communicator->end_capture());
    return std::unique_ptr<verify::Graph>(std::make_unique<GraphOfSeat>(seats_[index], std::move(calls)));
  }
  [[nodiscard]] std::string position(std::size_t index) const override {
    const auto& work = seats_[index].work;
    return work ? work->position() : "not posted";
  }
  [[nodiscard]] std::string report() const override { return seats_.front().communicator->report(); }

 private:
  std::vector<Seat> seats_;
  bool has_graphs_;
};

}  // namespace

Result<std::unique_ptr<OwnBackend>> OwnBackend::create(Domain& domain, const std::vector<int>& ranks,
                                                       const CommunicatorOptions& options, const Hooks& hooks) {
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (const int rank : ranks) {
    TUTTI_ASSIGN_OR_RETURN(auto communicator, create_with_hooks(domain, rank, options, hooks));
    communicators.push_back(std::move(communicator));
  }
  return over(domain, std::move(communicators));
}

std::unique_ptr<OwnBackend> OwnBackend::over(Domain& domain, std::vector<std::unique_ptr<Communicator>> communicators) {
  return std::unique_ptr<OwnBackend>(new OwnBackend(domain, std::move(communicators)));
}

Result<std::unique_ptr<OwnBackend>> OwnBackend::in_group(int colour, int key) {
  TUTTI_ASSERT(communicators_.size() == 1, "{} ranks are to enter one group", communicators_.size());
  std::vector<std::unique_ptr<Communicator>> communicators;
  TUTTI_ASSIGN_OR_RETURN(communicators.emplace_back(), communicators_.front()->split(colour, key));
  std::unique_ptr<OwnBackend> group = over(domain_, std::move(communicators));
  group->memory_kind_ = memory_kind_;
  group->has_shared_ = has_shared_;
  return group;
}

std::string OwnBackend::describe() const {
  return nlohmann::json{{"library", "tutti"}, {"transport", domain_.transport()}, {"kernels", kernel_isa()}}.dump();
}

Status OwnBackend::supports(const Case& one) const {
  const bool has_shared = has_shared_ && memory_kind_ == MemoryKind::host;
  if (!has_shared && one.buffers == Buffers::shared && has_data(one.collective)) {
    return error(
        Code::unavailable,
        "shared buffers lie in the memory of the host, which ranks on a GPU cannot address: --buffers private");
  }
  if (one.algorithm == "auto" || substitute_) return {};
  const auto algorithm = find_tuned(one.collective, one.algorithm);
  if (!algorithm.is_ok()) return error(Code::unavailable, "{}", algorithm.status().message());
  const bool is_named = algorithm.value().tuning.stores == Stores::single_copy;
  if (!is_named || communicators_.front()->may_copy_once(call_for(one, {}, nullptr))) return {};
  return error(Code::unavailable,
               "{}: one copy is for private buffers of ranks of one host that may read each other's memory, not for "
               "premul_sum and v forms; without it: {}",
               one.algorithm, algorithm.value().algorithm->name);
}

std::string OwnBackend::algorithm_of(const Case& one) const {
  if (one.algorithm != "auto") return one.algorithm;
  return std::string(communicators_.front()->choose(call_for(one, {}, nullptr)).name);
}

Allocator OwnBackend::allocator(const Case& one, std::size_t index) {
  if (one.buffers == Buffers::private_) return plain_memory();
  Communicator& communicator = *communicators_[index];
  return {.allocate = [&communicator](std::size_t bytes) { return communicator.alloc_shared(bytes); },
          .release = [&communicator](void* pointer) { communicator.free_shared(pointer); }};
}

Result<const Schedule*> OwnBackend::schedule_for(const Case& one) {
  // A call says of a window and a pair nothing but what its schedule says.
  const bool is_usual = one.pairing == Pairing();
  if (one.algorithm == "auto" && !substitute_ && is_usual) return static_cast<const Schedule*>(nullptr);
  const Pairing& pairing = one.pairing;
  auto& schedule = schedules_[{one.collective, one.root, one.algorithm == "auto" ? algorithm_of(one) : one.algorithm,
                               pairing.window, pairing.first, pairing.second}];
  if (schedule != nullptr) return static_cast<const Schedule*>(schedule.get());
  Problem problem = one.problem();
  problem.collective = base_of(problem.collective);
  problem.ranks_per_host = communicators_.front()->ranks_per_host();
  problem.ranks_per_cache = communicators_.front()->ranks_per_cache();
  std::optional<Schedule> made = substitute_ ? substitute_(one, problem) : std::nullopt;
  if (!made) {
    TUTTI_ASSIGN_OR_RETURN(const TunedAlgorithm algorithm, find_tuned(one.collective, algorithm_of(one)));
    made = schedule_of(algorithm, problem);
  }
  schedule = std::make_unique<Schedule>(std::move(*made));
  return static_cast<const Schedule*>(schedule.get());
}

Result<std::unique_ptr<Prepared>> OwnBackend::prepare(const Case& one, std::span<const RankBuffers> buffers) {
  TUTTI_ASSIGN_OR_RETURN(const Schedule* schedule, schedule_for(one));
  std::vector<Seat> seats;
  for (std::size_t i = 0; i < communicators_.size(); ++i) {
    if (buffers[i].memory != memory_kind_ && has_data(one.collective)) {
      return error(Code::unavailable, "{} runs on buffers in the memory of {}, and on no other", name_,
                   memory_kind_ == MemoryKind::host ? "the host" : "its GPU");
    }
    const int rank = communicators_[i]->rank();
    Seat seat{.communicator = communicators_[i].get(),
              .call = call_for(one, buffers[i], schedule),
              .factor = factor_element(one.dtype, rank)};
    if (has_counts(one.collective)) {
      seat.blocks = std::make_unique<const BlockTable>(blocks_of(one).table(rank, size_of(one.dtype)));
      seat.call.blocks = seat.blocks.get();
    }
    seats.push_back(std::move(seat));
    TUTTI_RETURN_IF_ERROR(communicators_[i]->prepare(seats.back().call));
  }
  return std::unique_ptr<Prepared>(new PreparedCalls(std::move(seats), communicators_.front()->has_graphs()));
}

}  // namespace tutti::harness::backends
