// SPDX-License-Identifier: Apache-2.0
#include "impl/embed/world.h"

#include <unistd.h>

#include "impl/embed/parts.h"
#include "impl/embed/progress.h"
#include "impl/transports/failure.h"
#include "impl/transports/link.h"

namespace tutti::embed {

// What a lost connection tells is a rank and its host.
Status World::Parts::with_process(const Status& status) const {
  if (status.code() != Code::aborted || domain->hosts() == nullptr) return status;
  Domain& seen = domain->seen_by(rank);
  const Network* const network = seen.network();
  int failed = network == nullptr ? -1 : network->failed_rank();
  if (failed < 0) failed = failed_rank_of(seen).value_or(-1);
  if (failed < 0 || failed >= ranks || status.message().find("pid ") != std::string::npos) return status;
  return error(Code::aborted, "{} (rank {} has pid {})", status.message(), failed,
               processes[static_cast<std::size_t>(failed)].pid);
}

World::World(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

World::~World() {
  if (::getpid() != parts_->owner) {
    // A forked child: the memory, the seat in it and the connections are the parent's.
    (void)parts_->communicator.release();
    (void)parts_->domain.release();
    (void)parts_.release();
    return;
  }
  leave();
}

int World::rank() const { return parts_->rank; }
int World::ranks() const { return parts_->ranks; }
const Hosts* World::hosts() const { return parts_->domain->hosts(); }
pid_t World::pid_of(int rank) const { return parts_->peers->pid_of(rank); }
std::optional<std::string> World::fate_of(int rank) const {
  const Progress::Lock lock(Progress::here());
  const auto now = std::chrono::steady_clock::now();
  parts_->peers->look(now);
  if (!parts_->peers->lost_by(rank, now)) return std::nullopt;
  return parts_->peers->fate_of(rank);
}
bool World::has_arenas() const { return parts_->has_arenas; }
std::chrono::nanoseconds World::timeout() const { return parts_->timeout; }

Status World::check_usable() const {
  if (::getpid() != parts_->owner) {
    return error(Code::invalid_argument, "this process (pid {}) is a child of rank {} (pid {}): it is no rank itself",
                 ::getpid(), parts_->rank, parts_->owner);
  }
  if (parts_->communicator != nullptr) return {};
  return error(Code::invalid_argument, "rank {} has left this group: it makes no more calls there", parts_->rank);
}

Result<std::shared_ptr<Operation>> World::post(Next next, OperationOptions options) {
  Progress& progress = Progress::here();
  const auto operation = std::make_shared<Operation>(shared_from_this(), std::move(next), std::move(options));
  bool is_over = false;
  {
    const Progress::Lock lock(progress);
    TUTTI_RETURN_IF_ERROR(check_usable());
    if (operation->options_.needs == OperationOptions::kAllRanks) operation->turn_ = parts_->turns++;
    TUTTI_RETURN_IF_ERROR(operation->post_next());
    is_over = operation->look();
    if (!is_over) progress.add(operation);
  }
  if (is_over) {
    operation->conclude();
  } else {
    progress.tell_helper();
  }
  return operation;
}

Result<std::shared_ptr<Operation>> World::post(const Call& call, OperationOptions options) {
  return post(
      [call](Communicator& communicator, std::vector<Work>& works) -> Result<bool> {
        TUTTI_ASSIGN_OR_RETURN(
            const Work work, communicator.post(placed_where_it_lies(call, communicator.rank(), communicator.ranks())));
        works.push_back(work);
        return true;
      },
      std::move(options));
}

Result<std::shared_ptr<Operation>> World::post_send(const void* buffer, Count count, Dtype dtype, int peer, int tag,
                                                    OperationOptions options) {
  options.needs = peer;
  return post(
      [=](Communicator& communicator, std::vector<Work>& works) -> Result<bool> {
        TUTTI_ASSIGN_OR_RETURN(const Work work, communicator.post_send(buffer, count, dtype, peer, tag));
        works.push_back(work);
        return true;
      },
      std::move(options));
}

Result<std::shared_ptr<Operation>> World::post_recv(void* buffer, Count count, Dtype dtype, int peer, int tag,
                                                    OperationOptions options) {
  options.needs = peer;
  return post(
      [=](Communicator& communicator, std::vector<Work>& works) -> Result<bool> {
        TUTTI_ASSIGN_OR_RETURN(const Work work, communicator.post_recv(buffer, count, dtype, peer, tag));
        works.push_back(work);
        return true;
      },
      std::move(options));
}

Result<std::shared_ptr<Operation>> World::post_recv_from_any(void* buffer, Count count, Dtype dtype, int tag, int* from,
                                                             OperationOptions options) {
  options.needs = OperationOptions::kAnyRank;
  return post(
      [=](Communicator& communicator, std::vector<Work>& works) -> Result<bool> {
        for (int peer = 0; peer < communicator.ranks(); ++peer) {
          TUTTI_ASSIGN_OR_RETURN(const auto message, communicator.probe(peer, tag));
          if (!message) continue;
          TUTTI_ASSIGN_OR_RETURN(const Work work, communicator.post_recv(buffer, count, dtype, peer, tag));
          works.push_back(work);
          *from = peer;
          return true;
        }
        return false;
      },
      std::move(options));
}

Result<void*> World::alloc_shared(std::size_t bytes) {
  const Progress::Lock lock(Progress::here());
  TUTTI_RETURN_IF_ERROR(check_usable());
  return parts_->communicator->alloc_shared(bytes);
}

void World::free_shared(void* pointer) {
  const Progress::Lock lock(Progress::here());
  if (check_usable().is_ok()) parts_->communicator->free_shared(pointer);
}

void World::abort(std::string_view reason) {
  Progress& progress = Progress::here();
  Progress::Operations ended;
  {
    const Progress::Lock lock(progress);
    if (!check_usable().is_ok()) return;
    (void)parts_->communicator->abort(parts_->rank, reason);
    ended = progress.take_all_of(*this, error(Code::aborted, "rank {} failed: {}", parts_->rank, reason));
  }
  for (const auto& each : ended) each->conclude();
}

void World::leave() {
  Progress& progress = Progress::here();
  Progress::Operations ended;
  {
    const Progress::Lock lock(progress);
    if (!check_usable().is_ok()) return;
    ended = progress.take_all_of(*this, error(Code::aborted, "rank {} has left the group", parts_->rank));
    // A receive that nobody will send to is no reason to end the others.
    for (const auto& each : ended) {
      for (const Work& work : each->works_) (void)parts_->communicator->cancel(work);
    }
    parts_->communicator.reset();
  }
  for (const auto& each : ended) each->conclude();
}

}  // namespace tutti::embed
