// SPDX-License-Identifier: Apache-2.0
// What the communicators of a group of thread blocks share: its memory on the devices, and the calls that are posted,
// launched and complete.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "impl/communicator/blocks.h"
#include "impl/communicator/left_memory.h"
#include "impl/communicator/plan_cache.h"
#include "impl/communicator/roll_call.h"
#include "impl/transports/journal.h"

namespace tutti {

class BlockJoining;
struct BlockWord;
using BlockRollCall = RollCall<BlockWord>;

/// Numbers of queues, used again.
class QueueNumbers {
 public:
  [[nodiscard]] int take() {
    if (free_.empty()) return next_++;
    const int number = free_.back();
    free_.pop_back();
    return number;
  }
  void give_back(int number) { free_.push_back(number); }

 private:
  int next_ = 0;
  std::vector<int> free_;
};

class BlockWorld {
 public:
  struct Common {
    std::vector<Device*> devices;  ///< null: one of another process, as all but one are then
    TeamShape blocks;
    CommunicatorOptions options;
    Hooks hooks;
    /// Held while the devices of a call are launched one by one: all have the launches of all worlds in one order.
    std::shared_ptr<std::mutex> order = std::make_shared<std::mutex>();
    /// Of the devices that ranks of several processes have: each world has one, for between two there is no order.
    std::shared_ptr<QueueNumbers> queues = std::make_shared<QueueNumbers>();
    /// What other processes may still write to.
    std::shared_ptr<LeftMemory> left = std::make_shared<LeftMemory>();
  };
  /// `device_of`: by rank, its index among the common devices. The domain says names, and has the journals; groups own
  /// theirs. Errors: those of create_as_blocks.
  [[nodiscard]] static Result<std::shared_ptr<BlockWorld>> make(std::shared_ptr<Domain> domain, const Common& common,
                                                                const std::vector<int>& device_of);
  ~BlockWorld();
  BlockWorld(const BlockWorld&) = delete;
  BlockWorld& operator=(const BlockWorld&) = delete;

  /// What a process has on its device, for the others of a world of several: plain data.
  struct Part {
    DeviceOffer offer;
    std::array<char, 64> place{};  ///< where the device is
    std::array<char, 64> device{};
  };
  /// Requires: a rank is one of another process.
  [[nodiscard]] Result<Part> part() const;
  /// Before anything is posted; all parts, by rank. Errors: unavailable where two ranks are on one device, the same on
  /// all ranks, or for what the device cannot address.
  Status open(std::span<const Part> parts);

  [[nodiscard]] Domain& domain() const { return *domain_; }
  [[nodiscard]] const Common& common() const { return common_; }
  [[nodiscard]] int ranks() const { return ranks_; }
  [[nodiscard]] bool needs_cores() const { return here().device->needs_cores(); }
  /// Whether other processes have ranks of it. Then this one has one, a call is launched when it is posted, and there
  /// are no sends and receives.
  [[nodiscard]] bool is_shared() const { return ranks_here_.size() < static_cast<std::size_t>(ranks_); }
  /// Blocks of a buffer that are longer are read and written where they lie: each device addresses the buffers of all.
  /// Shorter ones may go by packets. Other processes reach the slabs alone.
  [[nodiscard]] std::int64_t most_staged_bytes() const {
    return is_shared() ? std::numeric_limits<std::int64_t>::max() : common_.blocks.packet_bytes;
  }

  struct Graph;
  /// A rank's call. `entry` outlives the world's last launch of it.
  struct Posted {
    BoundEntry* entry = nullptr;
    std::shared_ptr<Graph> graph = nullptr;  ///< in its place: calls that were captured, and are made again
    const std::byte* input = nullptr;
    std::byte* output = nullptr;
    Factor factor{};
  };
  /// Its number among the rank's calls, from 0. Errors: mismatch where the ranks' calls differ; those of the device.
  [[nodiscard]] Result<std::uint64_t> post(int rank, const Posted& call);
  /// Between the two the rank's calls are recorded, and not carried out. Errors: invalid_argument: it captures already,
  /// or nothing was posted; mismatch where the ranks' calls differ; those of the device.
  Status begin_capture(int rank);
  [[nodiscard]] Result<std::shared_ptr<Graph>> end_capture(int rank);
  /// The rank will not post it again.
  void forget(int rank, std::shared_ptr<Graph> graph);
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
  /// In which the rank of this process has met the others; the next thing that is told there is of a group.
  void set_roll_call(std::unique_ptr<BlockRollCall> call);

  [[nodiscard]] std::string position(int rank, std::uint64_t call);
  [[nodiscard]] std::string position(const Message& message, std::uint64_t number);
  [[nodiscard]] std::string report();
  /// Where a wait has lasted too long: what the device is at ends, or fails and says what it waits for.
  void end_launches();
  /// The error of a wait that has lasted too long, after end_launches.
  [[nodiscard]] Status give_up(int rank, const std::string& position);
  /// A rank goes away; what it has posted and is not complete fails on all.
  void leave(int rank);
  [[nodiscard]] Status failed();
  /// A rank cannot go on; that is the failure of all, unless there was one.
  Status stop(Status status);
  /// Communicator::abort, by rank `teller` of this process.
  void abort(int teller, int rank, std::string_view reason);

 private:
  /// What the world has on a device.
  struct Place {
    Device* device = nullptr;          // null: one of another process, of which there is nothing more than `base`
    int index = 0;                     // of the device among the common ones
    std::vector<int> ranks;            // that lie there
    std::byte* base = nullptr;         // the board, then the slabs, as addressed from here
    OpenedMemory opened;               // the same, where it is of another process
    const int* ranks_there = nullptr;  // the same, as the device addresses them
    DeviceMemory memory;               // the board, the slabs, and the lists of the device's world
    DeviceMemory words;                // that the host looks at while ranks run
    std::vector<DeviceMemory> spare;   // of calls that are complete: to free memory of a GPU waits for all that it does
    DeviceWorld world;                 // as the device addresses it
  };
  /// What ranks on several devices do together: a launch on each.
  struct Launched {
    struct Part {
      Place* place = nullptr;
      Device::Ticket ticket = 0;
      DeviceMemory memory;  // calls, and what else the launch reads
    };
    std::uint64_t number = 0;  // as DeviceFailure::launch has it; of a graph that of its first launch
    std::uint64_t count = 1;   // of launches on each device
    bool is_transfer = false;
    std::uint64_t turn = 0;   // its place among all calls and transfers; of a graph that of its first launch
    std::vector<Part> parts;  // empty: not launched
  };
  /// A part of it that is still to be made.
  struct Prepared {
    Launched::Part part;
    DeviceLaunch launch;
  };
  /// A call of all ranks.
  struct Round {
    explicit Round(int ranks) : posted(static_cast<std::size_t>(ranks)) {}
    std::vector<Posted> posted;    // [rank]
    int count = 0;                 // of ranks of this process that have posted
    std::uint64_t first = 0;       // number of its first operation
    std::uint64_t operations = 0;  // how many they are
    bool by_packets = false;
    Launched launched;
  };

 public:
  /// What all ranks have captured. Numbers of operations count from 0.
  struct Graph {
    struct Part {
      Place* place = nullptr;
      std::vector<DeviceMemory> memory;  // that its launches read
      std::unique_ptr<DeviceGraph> recorded;
    };
    std::deque<Round> rounds;
    /// [launch]: its first round. Calls of one segment and one kernel that follow each other share a launch.
    std::vector<std::size_t> launches;
    std::uint64_t operations = 0;
    int ended = 0;  // ranks that have captured all
    std::vector<Part> parts;
  };

 private:
  /// A send and its receive that are launched.
  struct Transfer {
    Message send, receive;
    Launched launched;
  };
  struct Pair {
    std::deque<Message> sends, receives;    // that have no partner
    std::array<std::uint64_t, 2> posted{};  // [is_send]
    std::deque<Transfer> under_way;         // that are not known to be complete
    std::uint64_t complete = 0;
  };
  struct Forming {
    std::vector<Wish> wishes;  // [rank]
    int count = 0;
    std::vector<Membership> memberships;    // [rank], once all have wished
    std::unique_ptr<BlockJoining> joining;  // of ranks of several processes
    Status status;
  };

  BlockWorld(std::shared_ptr<Domain> domain, const Common& common);
  Status allocate(const std::vector<int>& device_of);
  [[nodiscard]] DeviceWorld world_on(const Place& place) const;
  Status write_lists(Place& place);
  /// A place of this process: the first.
  [[nodiscard]] const Place& here() const { return places_[static_cast<std::size_t>(place_of_[first_here()])]; }
  [[nodiscard]] std::size_t first_here() const { return static_cast<std::size_t>(ranks_here_.front()); }
  /// What the first rank of this process has posted.
  [[nodiscard]] const Posted& first_of(const Round& round) const { return round.posted[first_here()]; }
  /// Errors: aborted where a rank of another process has failed.
  Status check_others();
  /// Of the other processes, that a rank of this one has failed.
  void tell_others();
  [[nodiscard]] Place& place_of(int rank) {
    return places_[static_cast<std::size_t>(place_of_[static_cast<std::size_t>(rank)])];
  }
  [[nodiscard]] Round& round(std::uint64_t call) { return rounds_[call - first_round_]; }
  /// The rank's next call; launches it where all others have posted theirs.
  [[nodiscard]] Result<std::uint64_t> enqueue(int rank, const Posted& call, std::uint64_t operations);
  void capture(int rank, const Posted& call);
  /// Errors: unavailable where a process does not know the calls of all ranks.
  [[nodiscard]] Status check_captures() const;
  [[nodiscard]] Status check_not_captured(int rank, const char* what) const;
  Status conclude(Graph& graph);
  /// As what the ranks' calls are told: "all_reduce one_shot of 4 float, sum".
  [[nodiscard]] static std::string text_of(const Posted& call, std::uint64_t first);
  Status launch(Round& round);
  Status launch(Graph& graph, Launched& launched);
  Status launch_pair(Pair& pair);
  /// The parts of a launch, all of them before another world's. `launched` has what was launched even where one fails.
  Status launch_all(std::vector<Prepared> parts, Launched& launched);
  /// A launch on a place, without its work.
  [[nodiscard]] DeviceLaunch launch_on(const Place& place, Dtype dtype, Op op) const;
  [[nodiscard]] static Result<std::shared_ptr<const void>> place_plans(Device& device, BoundEntry& entry);
  /// 0 where processes do not know each other's plans.
  [[nodiscard]] std::uint64_t most_packet_bytes() const;
  /// Whether the plans of all ranks have one form, and no instrument is in the way. Requires: all have posted calls.
  [[nodiscard]] bool goes_by_packets(const Round& round) const;
  /// One launch of the ranks that lie on a place: the calls of `rounds`, one after the other.
  [[nodiscard]] Result<Prepared> prepare(Place& place, std::span<const Round* const> rounds);
  /// Whether `next`, the call after `round`, may be in the same launch.
  [[nodiscard]] static bool share_a_launch(const Round& round, const Round& next);
  /// Ends of a message that lie on one place: both, or one. What a rank sends to itself goes to `to_itself`.
  [[nodiscard]] Result<Prepared> prepare(const std::vector<const Message*>& ends, std::byte* to_itself);
  /// For later calls.
  void keep_memory(Launched& launched);
  /// Takes note of what the devices have completed. Errors: those of has_ended.
  Status progress();
  /// Whether it is complete on all devices. Errors: why ranks have stopped, in it or in another launch; why a device
  /// has failed; those of both are everybody's from then on.
  [[nodiscard]] Result<bool> has_ended(const Launched& launched);
  /// An error that a device has, which is named where there are several.
  [[nodiscard]] Status told_of(const Place& place, const Status& status) const;
  Status fail_in(const Round& round, const DeviceFailure& failure);
  Status fail_in(const Transfer& transfer, const DeviceFailure& failure);
  /// Of a rank that waits in the device: what is told of all others follows.
  Status fail_late(int rank, const Standing& standing, const DeviceFailure& failure, const CallNote* note);
  /// Whether a rank has told it in that launch.
  [[nodiscard]] static bool is_of(const DeviceFailure& failure, const Launched& launched);
  /// Whether it had ended when the launch of the failure began. Errors: the failure, where that is not known.
  [[nodiscard]] Result<bool> has_ended_before(const Launched& launched, const DeviceFailure& failure);
  /// Which one the launch was that it was told in, of all calls and transfers; 0: of none that is under way.
  [[nodiscard]] std::uint64_t turn_of(const DeviceFailure& failure) const;
  /// What ranks have told, on the device whose launch is the oldest; null: nothing.
  [[nodiscard]] const DeviceFailure* first_failure() const;
  /// Whether ranks have failed: those of all launches then stop at their next wait.
  [[nodiscard]] bool have_stopped() const;
  void tell_devices(DeviceStop what);
  /// The first failure is everybody's; later ones are forgotten. When it returns, nothing on the devices reads or
  /// writes what callers own.
  Status fail(Status status);
  Status fail_unless_ok(Status status) { return status.is_ok() ? status : fail(std::move(status)); }
  [[nodiscard]] bool has_launches() const;
  void wait_for_launches();
  void note(int rank, const BoundEntry& entry, std::uint64_t first);
  Status conclude(Forming& forming);
  /// Of ranks of several processes, which go on when they are asked.
  [[nodiscard]] Result<std::uint64_t> begin_joining(int rank, const Wish& wish);
  [[nodiscard]] Result<bool> go_on_joining(Forming& forming);
  std::shared_ptr<Domain> domain_;
  Common common_;
  int ranks_;
  std::mutex mutex_;
  std::vector<Place> places_;                  // those with ranks
  std::vector<int> ranks_here_;                // in this process
  bool is_open_ = false;                       // others may write to what this process has
  int queue_ = 0;                              // of the devices
  std::vector<int> place_of_;                  // [rank]
  std::uint64_t launches_ = 0;                 // of calls, on each device
  std::uint64_t transfers_ = 0;                // that were launched
  std::uint64_t turns_ = 0;                    // of both
  std::deque<Round> rounds_;                   // from the oldest that is not complete on
  std::uint64_t first_round_ = 0;              // number of its call
  std::vector<std::uint64_t> posted_;          // [rank]: calls
  std::vector<std::uint64_t> started_;         // [rank]: operations of these calls
  std::map<std::pair<int, int>, Pair> pairs_;  // by sender and receiver
  /// What a rank captures, and has captured.
  struct Captures {
    std::shared_ptr<Graph> under_way;
    std::size_t calls = 0;    // of that
    std::uint64_t begun = 0;  // that one included
    int kept = 0;             // graphs that it may post again
  };
  std::vector<Captures> captures_;             // [rank]
  std::deque<std::shared_ptr<Graph>> graphs_;  // that not all ranks have ended
  std::uint64_t first_graph_ = 0;              // number of the front
  std::vector<std::uint64_t> formed_;          // [rank]: formations
  std::deque<Forming> formings_;               // all of them: groups are few
  std::unique_ptr<BlockRollCall> roll_call_;   // of ranks of several processes, in which they form groups
  Status failed_;
};

}  // namespace tutti
