// SPDX-License-Identifier: Apache-2.0
#include "harness/backends/tutti/group.h"

#include <optional>
#include <vector>

#include "harness/verify/inputs.h"
#include "impl/execute/reach.h"

namespace tutti::harness::backends {
namespace {

class PendingWork final : public Pending {
 public:
  explicit PendingWork(const Work& work) : work_(work) {}
  [[nodiscard]] Result<bool> test() override { return work_.test(); }
  Status wait(std::chrono::nanoseconds timeout) override { return work_.wait(timeout); }
  [[nodiscard]] std::string position() const override { return work_.position(); }
  [[nodiscard]] std::string report() const override { return work_.report(); }

 private:
  Work work_;
};

Result<std::unique_ptr<Pending>> pending(const Result<Work>& work) {
  if (!work.is_ok()) return work.status();
  return std::unique_ptr<Pending>(new PendingWork(work.value()));
}

class TuttiFormation final : public Formation {
 public:
  TuttiFormation(std::unique_ptr<GroupFormation> formation, std::shared_ptr<Schedules> schedules)
      : formation_(std::move(formation)), schedules_(std::move(schedules)) {}
  [[nodiscard]] Result<bool> test() override { return formation_->test(); }
  [[nodiscard]] std::unique_ptr<Group> take() override {
    auto communicator = formation_->take();
    return communicator == nullptr ? nullptr : std::make_unique<TuttiGroup>(std::move(communicator), schedules_);
  }

 private:
  std::unique_ptr<GroupFormation> formation_;
  std::shared_ptr<Schedules> schedules_;
};

}  // namespace

Allocator TuttiGroup::memory(Buffers buffers) {
  if (buffers == Buffers::private_) return plain_memory();
  Communicator& communicator = *communicator_;
  return {.allocate = [&communicator](std::size_t bytes) { return communicator.alloc_shared(bytes); },
          .release = [&communicator](void* pointer) { communicator.free_shared(pointer); }};
}

const Schedule* TuttiGroup::schedule_for(const GroupCall& call) {
  Problem problem = call.what.problem;
  if (call.algorithm == 0 && problem.pairing == Pairing()) return nullptr;
  const auto all = algorithms_of(problem.collective);
  problem.collective = base_of(problem.collective);
  problem.ranks_per_host = communicator_->ranks_per_host();
  problem.ranks_per_cache = communicator_->ranks_per_cache();
  const Hosts* const hosts = communicator_->hosts();
  std::vector<const Algorithm*> algorithms(all.begin(), all.end());
  std::erase_if(algorithms, [&](const Algorithm* one) {
    return hosts != nullptr && !check_reach(schedule_of(*one, problem), false, *hosts).is_ok();
  });
  const Algorithm* const algorithm = algorithms[call.algorithm % algorithms.size()];
  auto& schedule =
      (*schedules_)[{algorithm, problem.ranks, problem.ranks_per_host, problem.root, problem.pairing.window}];
  if (schedule == nullptr) schedule = std::make_unique<Schedule>(schedule_of(*algorithm, problem));
  return schedule.get();
}

Result<std::unique_ptr<Pending>> TuttiGroup::post(const GroupCall& call) {
  const Operation& what = call.what;
  const Factor factor = factor_element(what.dtype, rank());
  std::optional<const BlockTable> blocks;
  if (what.blocks != nullptr) blocks.emplace(what.blocks->table(rank(), size_of(what.dtype)));
  return pending(communicator_->post({.collective = what.problem.collective,
                                      .dtype = what.dtype,
                                      .op = what.op,
                                      .root = what.problem.root,
                                      .count = what.count,
                                      .input = call.input,
                                      .output = call.output,
                                      .factor = factor.data(),
                                      .is_in_place = call.is_in_place,
                                      .buffers = call.buffers,
                                      .schedule = schedule_for(call),
                                      .blocks = blocks ? &*blocks : nullptr}));
}

Result<std::unique_ptr<Pending>> TuttiGroup::post_send(const Message<const void*>& message) {
  return pending(communicator_->post_send(message.buffer, message.count, message.dtype, message.peer));
}

Result<std::unique_ptr<Pending>> TuttiGroup::post_recv(const Message<void*>& message) {
  return pending(communicator_->post_recv(message.buffer, message.count, message.dtype, message.peer));
}

Result<std::unique_ptr<Formation>> TuttiGroup::post_split(int colour, int key) {
  TUTTI_ASSIGN_OR_RETURN(auto formation, communicator_->post_split(colour, key));
  return std::unique_ptr<Formation>(new TuttiFormation(std::move(formation), schedules_));
}

Result<std::unique_ptr<Formation>> TuttiGroup::post_new_group(std::span<const int> ranks) {
  TUTTI_ASSIGN_OR_RETURN(auto formation, communicator_->post_new_group(ranks));
  return std::unique_ptr<Formation>(new TuttiFormation(std::move(formation), schedules_));
}

Status TuttiGroup::free() {
  communicator_.reset();
  return {};
}

}  // namespace tutti::harness::backends
