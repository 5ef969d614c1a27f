// SPDX-License-Identifier: Apache-2.0
// How a group is formed: three small all_gathers of the communicator that it is made of. Each rank says its colour and
// key. Then the first member of each group on each host makes its memory there and says where it is. Then each rank
// says whether it has it, and where members of other hosts reach it. So all ranks have their groups, or no rank has.
// README.md says what a group is.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "impl/communicator/engine.h"
#include "impl/transports/group_domain.h"

namespace tutti {

class Formation final : public GroupFormation {
 public:
  /// What every rank brings. `list` is a hash of the list of new_group, the same on all ranks; 0 for a split.
  struct Wish {
    int colour = 0;
    int key = 0;
    std::uint64_t list = 0;
  };
  Formation(Engine& parent, const Wish& wish) : parent_(parent), wish_(wish) {}
  ~Formation() override;
  Formation(const Formation&) = delete;
  Formation& operator=(const Formation&) = delete;

  /// Posts the first exchange.
  Status begin();
  [[nodiscard]] Result<bool> test() override;
  Status wait(std::chrono::nanoseconds timeout) override;
  [[nodiscard]] std::unique_ptr<Communicator> take() override { return std::move(group_); }

 private:
  /// What a rank tells the others in one of the exchanges.
  struct Record {
    Wish wish;
    GroupMemory::Offer offer;
    std::array<char, 64> address{};  ///< of its network; zero-terminated, empty where it has none
    Code code = Code::ok;            ///< why this rank cannot go on
    std::array<char, 256> reason{};
  };

  /// The exchange is complete: goes on to the next, where there is one.
  Status go_on();
  /// Posts the exchange of `record`.
  Status exchange(const Record& record);
  /// After the first, the second and the third exchange.
  Status make_memory();
  Status take_memory();
  Status conclude();
  void find_members();
  /// Errors: of making the group's domain.
  Status make_domain();
  [[nodiscard]] const Record& record_of_member(int rank) const {
    return all_[static_cast<std::size_t>(members_[static_cast<std::size_t>(rank)])];
  }
  [[nodiscard]] Record record_of(const Status& status) const;
  /// The first reason of any rank, the same on all.
  [[nodiscard]] Status first_failure() const;

  Engine& parent_;
  Wish wish_;
  int exchanges_ = 0;
  Record mine_;
  std::vector<Record> all_;  // [rank of the parent]
  std::optional<Work> work_;
  std::vector<int> members_;  // ranks of the parent, by rank in the group
  GroupPlace place_;          // where this rank is a member
  std::shared_ptr<GroupMemory> memory_;
  std::unique_ptr<Domain> domain_;
  std::unique_ptr<Communicator> group_;
  Status failed_;
};

}  // namespace tutti
