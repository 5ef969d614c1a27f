// SPDX-License-Identifier: Apache-2.0
// The world of NCCL: this process's ranks, the groups that they are in, and every wait for the other ranks.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "harness/backends/backend.h"
#include "harness/backends/nccl/library.h"

namespace tutti::backend_nccl {

/// A communicator, as one rank of this process has it.
struct Group {
  Comm comm = nullptr;  ///< null once it was given back
  int rank = 0;
  int ranks = 1;
  int local = 0;            ///< which of this process's ranks
  int device = 0;           ///< its GPU
  int of_this_process = 1;  ///< ranks of the group for which one thread calls
  void* handle = nullptr;   ///< of backend.h, that all of this process's ranks in it have; null: the world
  void* spare = nullptr;    ///< kSpareBytes of the GPU's memory, all 0: for calls that have no data
};
inline constexpr std::size_t kSpareBytes = 16;

/// What is asked until it is done: cudaStreamQuery of a stream, or cudaEventQuery of an event.
struct Question {
  cuda::Error (*ask)(void*) = nullptr;
  void* of = nullptr;
};

/// The current GPU of this thread, while it lives.
class OnDevice {
 public:
  OnDevice(const cuda::Runtime& cuda, int device);
  ~OnDevice() { cuda_.cudaSetDevice(before_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  const cuda::Runtime& cuda_;
  int before_ = 0;
};

/// Functions that return text return what was wrong, or nothing. All waits end with the patience of
/// $TUTTI_NCCL_TIMEOUT, in seconds.
class World {
 public:
  /// Joins the world. Collective. After an error it may only be closed.
  [[nodiscard]] std::string open(const TuttiBackendGroup& world, const TuttiBackendJoin& join);
  /// Leaves it, as far as it was joined. Collective.
  [[nodiscard]] std::string close();

  [[nodiscard]] const cuda::Runtime& cuda() const { return *cuda_; }
  [[nodiscard]] const Nccl& nccl() const { return *nccl_; }
  /// Of all ranks' GPUs the least, as 90 for 9.0.
  [[nodiscard]] int capability() const { return capability_; }

  /// That of a handle of backend.h.
  [[nodiscard]] const std::shared_ptr<Group>& group(void* handle, int local) const;
  /// For all ranks of this process; `made` is that of the first, and null where the colour is below 0. Collective.
  [[nodiscard]] std::string split(void* parent, int colour, int key, std::shared_ptr<Group>& made);
  [[nodiscard]] std::string free(void* handle);

  /// Between them, what is posted is not on its stream yet.
  [[nodiscard]] std::string begin_group();
  [[nodiscard]] std::string end_group();
  [[nodiscard]] bool is_in_group() const { return is_in_group_; }

  /// Waits while NCCL says that a communicator is busy with the last call, as it may with NCCL_COMM_BLOCKING=0.
  [[nodiscard]] Answer settle(Comm comm, Answer answer) const;
  /// What NCCL found in the communicators of a rank of this process.
  [[nodiscard]] std::string error_of(int local) const;
  [[nodiscard]] std::string error_of(const Group& group) const;
  /// Ends what is in flight on the communicators of a rank of this process.
  [[nodiscard]] std::string abort(int local);

  /// Asks until it is done.
  [[nodiscard]] std::string wait(const Question& question, const Group& group, const std::string& what) const;
  /// Whether it is done; an error where NCCL found one. It waits for nothing: whoever asks has a deadline.
  [[nodiscard]] std::string test(const Question& question, const Group& group, const std::string& what,
                                 bool& is_done) const;

 private:
  [[nodiscard]] std::string take_devices(const TuttiBackendGroup& world, const TuttiBackendJoin& join);
  [[nodiscard]] std::string exchange(const TuttiBackendGroup& world, const TuttiBackendJoin& join, UniqueId& id);
  [[nodiscard]] std::string connect(const UniqueId& id);
  [[nodiscard]] std::string destroy(Group& group);
  [[nodiscard]] std::string too_late(const Group& group, const std::string& what) const;

  std::shared_ptr<const cuda::Runtime> cuda_;
  std::shared_ptr<const Nccl> nccl_;
  std::chrono::nanoseconds patience_{};
  int capability_ = 0;
  bool is_in_group_ = false;
  std::vector<std::shared_ptr<Group>> of_world_;  ///< by rank of this process
  std::vector<std::shared_ptr<Group>> of_splits_;
};

}  // namespace tutti::backend_nccl
