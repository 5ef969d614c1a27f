// SPDX-License-Identifier: Apache-2.0
// What the communicators of a group of thread blocks share: its memory on the device, and the calls that are posted,
// launched and complete.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "impl/communicator/blocks.h"
#include "impl/communicator/plan_cache.h"
#include "impl/transports/journal.h"

namespace tutti {

class BlockWorld {
 public:
  struct Common {
    Device& device;
    TeamShape blocks;
    CommunicatorOptions options;
    Hooks hooks;
  };
  /// The domain says names, and has the journals; groups own theirs. Errors: those of create_as_blocks.
  [[nodiscard]] static Result<std::shared_ptr<BlockWorld>> make(std::shared_ptr<Domain> domain, const Common& common);
  ~BlockWorld();
  BlockWorld(const BlockWorld&) = delete;
  BlockWorld& operator=(const BlockWorld&) = delete;

  [[nodiscard]] Domain& domain() const { return *domain_; }
  [[nodiscard]] const Common& common() const { return common_; }
  [[nodiscard]] int ranks() const { return ranks_; }

  /// A rank's call. `entry` outlives the world's last launch of it.
  struct Posted {
    BoundEntry* entry = nullptr;
    const std::byte* input = nullptr;
    std::byte* output = nullptr;
    Factor factor{};
  };
  /// Its number among the rank's calls, from 0. Errors: mismatch where the ranks' calls differ; those of the device.
  [[nodiscard]] Result<std::uint64_t> post(int rank, const Posted& call);
  /// A send or a receive; its number among those of the rank to or from the peer, from 0.
  struct Message {
    int rank = 0;
    int peer = 0;
    bool is_send = false;
    std::byte* buffer = nullptr;  ///< of a send: not written
    std::int64_t bytes = 0;
    Dtype dtype = Dtype::f32;
  };
  [[nodiscard]] Result<std::uint64_t> post(const Message& message);

  /// Errors: the first failure of any rank, for all.
  [[nodiscard]] Result<bool> is_complete(int rank, std::uint64_t call);
  [[nodiscard]] Result<bool> is_complete(const Message& message, std::uint64_t number);
  /// Whether nothing that the rank has posted is under way.
  [[nodiscard]] bool is_idle(int rank);

  /// What a rank brings to the forming of groups, and what becomes of it.
  struct Wish {
    int colour = 0;
    int key = 0;
    std::uint64_t list = 0;  ///< hash of the list of new_group; 0 for a split
  };
  struct Membership {
    std::shared_ptr<BlockWorld> world;  ///< null: in none
    int rank = 0;
  };
  /// The rank's formation; its number among the rank's.
  [[nodiscard]] Result<std::uint64_t> form(int rank, const Wish& wish);
  /// Once all ranks have said what they wish: this rank's group.
  [[nodiscard]] Result<bool> is_formed(int rank, std::uint64_t formation);
  [[nodiscard]] Membership membership(int rank, std::uint64_t formation);

  [[nodiscard]] std::string position(int rank, std::uint64_t call);
  [[nodiscard]] std::string report();
  /// The error of a wait that has lasted too long.
  [[nodiscard]] Status give_up(int rank, const std::string& position);
  /// A rank goes away; what it has posted and is not complete fails on all.
  void leave(int rank);
  [[nodiscard]] Status failed();

 private:
  /// A call of all ranks.
  struct Round {
    std::vector<Posted> posted;  // [rank]
    int count = 0;               // of ranks that have posted
    std::uint64_t first = 0;     // number of its first operation
    Device::Ticket ticket = 0;   // 0: not launched
    DeviceMemory calls;          // [rank]
  };
  struct Pair {
    std::deque<Message> sends, receives;            // that have no partner
    std::array<std::uint64_t, 2> posted{};          // [is_send]
    std::uint64_t launched = 0;                     // pairs of both
    std::deque<Device::Ticket> tickets;             // of the launched ones that are not known to be complete
    std::deque<DeviceMemory> memory;                // of theirs
    std::uint64_t complete = 0;
  };
  struct Forming {
    std::vector<Wish> wishes;                // [rank]
    std::vector<bool> has_wished;            // [rank]
    int count = 0;
    std::vector<Membership> memberships;     // [rank], once all have wished
    Status status;
  };

  BlockWorld(std::shared_ptr<Domain> domain, const Common& common);
  Status allocate();
  [[nodiscard]] Round& round(std::uint64_t call) { return rounds_[call - first_round_]; }
  Status launch(Round& round);
  Status launch_pair(Pair& pair);
  [[nodiscard]] Result<std::shared_ptr<const void>> place_plans(BoundEntry& entry);
  /// Takes note of what the device has completed.
  Status progress();
  /// Why the ranks of a launch have stopped; ok: they have not.
  [[nodiscard]] Status failure_of_device(std::uint64_t first);
  Status fail(Status status);
  void note(int rank, const BoundEntry& entry, std::uint64_t first);
  Status conclude(Forming& forming);
  [[nodiscard]] DeviceWork work(const DeviceCall* calls, int parties) const;

  std::shared_ptr<Domain> domain_;
  Common common_;
  int ranks_;
  std::mutex mutex_;
  DeviceWorld device_world_;
  DeviceMemory slabs_, slab_list_, words_;
  std::deque<Round> rounds_;           // from the oldest that is not complete on
  std::uint64_t first_round_ = 0;      // number of its call
  std::vector<std::uint64_t> posted_;  // [rank]: calls
  std::vector<std::uint64_t> started_;  // [rank]: operations of these calls
  std::map<std::pair<int, int>, Pair> pairs_;  // by sender and receiver
  std::vector<std::uint64_t> formed_;          // [rank]: formations
  std::deque<Forming> formings_;               // all of them: groups are few
  Status failed_;
};

}  // namespace tutti
