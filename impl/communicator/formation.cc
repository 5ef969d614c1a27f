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
  if (members_.empty()) return exchange(record_of({}));
  const auto rank = static_cast<int>(std::ranges::find(members_, parent_.rank()) - members_.begin());
  place_ = place_of_group(parent_.domain_, members_, rank);
  if (place_.near.front() != rank) return exchange(record_of({}));
  auto memory = parent_.domain_.make_group_memory(domain_bytes(place_.memory_shape()));
  Record record = record_of(memory.status());
  if (memory.is_ok()) {
    memory_ = std::move(memory).value();
    record.offer = memory_->offer();
  }
  return exchange(record);
}

Status Formation::take_memory() {
  TUTTI_RETURN_IF_ERROR(first_failure());
  if (members_.empty()) return exchange(record_of({}));
  const Status made = make_domain();
  Record record = record_of(made);
  if (made.is_ok() && domain_->network() != nullptr) {
    const std::string& address = domain_->network()->address();
    TUTTI_ASSERT(address.size() < record.address.size(), "an address of {} bytes", address.size());
    address.copy(record.address.data(), address.size());
  }
  return exchange(record);
}

Status Formation::make_domain() {
  if (memory_ == nullptr) {
    const GroupMemory::Offer offer = record_of_member(place_.near.front()).offer;
    TUTTI_ASSIGN_OR_RETURN(memory_, parent_.domain_.take_group_memory(offer, domain_bytes(place_.memory_shape())));
  }
  TUTTI_ASSIGN_OR_RETURN(domain_, make_group(parent_.domain_.world(), place_, memory_));
  return {};
}

Status Formation::conclude() {
  TUTTI_RETURN_IF_ERROR(first_failure());
  if (members_.empty()) return {};
  memory_->withdraw();
  CommunicatorOptions options = parent_.options_;
  options.ranks_per_cache = 0;  // members may be any ranks
  if (domain_->network() != nullptr) {
    std::vector<std::string> addresses;
    for (int rank = 0; rank < place_.shape.ranks; ++rank) {
      addresses.emplace_back(record_of_member(rank).address.data());
    }
    domain_->network()->set_addresses(std::move(addresses));
  } else if (parent_.network_ != nullptr) {
    options.cores = std::max(1, options.cores / parent_.domain_.hosts()->count());  // those of its own host
  }
  Hooks hooks = parent_.hooks_;
  const auto peer = std::ranges::find(members_, hooks.slow.peer);
  hooks.slow.peer = peer == members_.end() ? -1 : static_cast<int>(peer - members_.begin());
  group_ = std::make_unique<Engine>(
      std::move(domain_), place_.rank,
      Engine::Common{.options = options, .hooks = std::move(hooks), .company = parent_.company_});
  return {};
}

Result<std::unique_ptr<GroupFormation>> Engine::post_split(int colour, int key) {
  auto formation = std::make_unique<Formation>(*this, Formation::Wish{.colour = colour, .key = key});
  TUTTI_RETURN_IF_ERROR(formation->begin());
  return std::unique_ptr<GroupFormation>(std::move(formation));
}

Result<std::unique_ptr<GroupFormation>> Engine::post_new_group(std::span<const int> ranks) {
  TUTTI_RETURN_IF_ERROR(check_group(ranks, ranks_));
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
