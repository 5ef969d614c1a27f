// SPDX-License-Identifier: Apache-2.0
#include "impl/communicator/formation.h"

#include <algorithm>
#include <cstring>

#include "impl/communicator/requests.h"
#include "impl/transports/group_domain.h"

namespace tutti {

Formation::~Formation() {
  parent_.is_forming_ = false;
  // The exchange would go on in memory that is gone.
  if (work_ && parent_.failed_.is_ok()) {
    (void)parent_.fail(error(Code::aborted, "{} gave up forming a group", parent_.domain_.name_of(parent_.rank())));
  }
}

Status Formation::begin() { return exchange({.wish = wish_}); }

Status Formation::exchange(const Record& record) {
  static_assert(std::is_trivially_copyable_v<Record>);
  mine_ = record;
  all_.resize(static_cast<std::size_t>(parent_.ranks()));
  parent_.is_forming_ = false;
  const Result<Work> posted = parent_.post({.collective = Collective::all_gather,
                                            .dtype = Dtype::u8,
                                            .count = sizeof(Record),
                                            .input = &mine_,
                                            .output = all_.data()});
  parent_.last_ = {};  // so that the caller's next one is looked at
  parent_.is_forming_ = true;
  TUTTI_RETURN_IF_ERROR(posted.status());
  work_ = posted.value();
  return {};
}

Status Formation::go_on() {
  work_.reset();
  failed_ = ++exchanges_ == 1 ? make_memory() : exchanges_ == 2 ? take_memory() : conclude();
  if (!work_) parent_.is_forming_ = false;
  return failed_;
}

Result<bool> Formation::test() {
  TUTTI_RETURN_IF_ERROR(failed_);
  while (work_) {
    TUTTI_ASSIGN_OR_RETURN(const bool is_done, work_->test());
    if (!is_done) return false;
    TUTTI_RETURN_IF_ERROR(go_on());
  }
  return true;
}

Status Formation::wait(std::chrono::nanoseconds timeout) {
  TUTTI_RETURN_IF_ERROR(failed_);
  const Clock::time_point deadline = Clock::now() + timeout;
  while (work_) {
    TUTTI_RETURN_IF_ERROR(work_->wait(deadline - Clock::now()));
    TUTTI_RETURN_IF_ERROR(go_on());
  }
  return {};
}

void Formation::find_members() {
  for (int rank = 0; rank < parent_.ranks(); ++rank) {
    if (wish_.colour >= 0 && all_[static_cast<std::size_t>(rank)].wish.colour == wish_.colour) members_.push_back(rank);
  }
  const auto key = [this](int rank) { return all_[static_cast<std::size_t>(rank)].wish.key; };
  std::ranges::stable_sort(members_, {}, key);
}

Formation::Record Formation::record_of(const Status& status) const {
  Record record{.wish = wish_, .code = status.code()};
  if (!status.is_ok()) {
    const std::string reason = fmt::format("{}: {}", parent_.domain_.name_of(parent_.rank()), status.message());
    std::strncpy(record.reason.data(), reason.c_str(), record.reason.size() - 1);
  }
  return record;
}

Status Formation::first_failure() const {
  for (const Record& record : all_) {
    if (record.code != Code::ok) return error(record.code, "no group: {}", record.reason.data());
  }
  return {};
}

Status Formation::make_memory() {
  for (int rank = 0; rank < parent_.ranks(); ++rank) {
    if (all_[static_cast<std::size_t>(rank)].wish.list == wish_.list) continue;
    return error(Code::mismatch, "{} and {} do not form the same group: the list of ranks must be the same on all",
                 parent_.domain_.name_of(parent_.rank()), parent_.domain_.name_of(rank));
  }
  find_members();
  if (members_.empty() || members_.front() != parent_.rank()) return exchange(record_of({}));
  const DomainShape shape = group_shape(parent_.domain_.shape(), static_cast<int>(members_.size()));
  auto memory = parent_.domain_.make_group_memory(domain_bytes(shape));
  Record record = record_of(memory.status());
  if (memory.is_ok()) {
    memory_ = std::move(memory).value();
    record.offer = memory_->offer();
  }
  return exchange(record);
}

Status Formation::take_memory() {
  Status status = first_failure();
  if (!status.is_ok()) return status;
  if (!members_.empty() && memory_ == nullptr) {
    const DomainShape shape = group_shape(parent_.domain_.shape(), static_cast<int>(members_.size()));
    const GroupMemory::Offer offer = all_[static_cast<std::size_t>(members_.front())].offer;
    auto memory = parent_.domain_.take_group_memory(offer, domain_bytes(shape));
    if (memory.is_ok()) memory_ = std::move(memory).value();
    status = memory.status();
  }
  return exchange(record_of(status));
}

Status Formation::conclude() {
  TUTTI_RETURN_IF_ERROR(first_failure());
  if (members_.empty()) return {};
  memory_->withdraw();
  std::vector<int> world_ranks;
  for (const int member : members_) world_ranks.push_back(parent_.world_rank(member));
  const auto rank = static_cast<int>(std::ranges::find(members_, parent_.rank()) - members_.begin());
  const DomainShape shape = group_shape(parent_.domain_.shape(), static_cast<int>(members_.size()));
  auto domain = std::make_unique<GroupDomain>(parent_.domain_.world(), std::move(world_ranks), shape, memory_);
  group_ = std::make_unique<Engine>(
      std::move(domain), rank,
      Engine::Common{.options = parent_.options_, .hooks = parent_.hooks_, .company = parent_.company_});
  return {};
}

Status Engine::check_groups() const {
  if (network_ == nullptr) return {};
  return error(Code::unavailable, "no group: {} shares no memory with some ranks, and groups have no links yet",
               domain_.name_of(rank_));
}

Result<std::unique_ptr<GroupFormation>> Engine::post_split(int colour, int key) {
  TUTTI_RETURN_IF_ERROR(check_groups());
  auto formation = std::make_unique<Formation>(*this, Formation::Wish{.colour = colour, .key = key});
  TUTTI_RETURN_IF_ERROR(formation->begin());
  return std::unique_ptr<GroupFormation>(std::move(formation));
}

Result<std::unique_ptr<GroupFormation>> Engine::post_new_group(std::span<const int> ranks) {
  TUTTI_RETURN_IF_ERROR(check_group(ranks, ranks_));
  TUTTI_RETURN_IF_ERROR(check_groups());
  const auto at = std::ranges::find(ranks, rank_);
  const bool is_member = at != ranks.end();
  auto formation =
      std::make_unique<Formation>(*this, Formation::Wish{.colour = is_member ? 0 : -1,
                                                         .key = is_member ? static_cast<int>(at - ranks.begin()) : 0,
                                                         .list = hash_of_group(ranks)});
  TUTTI_RETURN_IF_ERROR(formation->begin());
  return std::unique_ptr<GroupFormation>(std::move(formation));
}

}  // namespace tutti
