// SPDX-License-Identifier: Apache-2.0
// What the double of NCCL keeps of its communicators, and what all its functions need: errors, groups of calls, and
// what is put on streams.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/backends/nccl/library.h"
#include "suites/backends/doubles/collectives.h"
#include "suites/backends/doubles/settings.h"

#define TUTTI_EXPORTED extern "C" __attribute__((visibility("default")))

namespace tutti::cuda {
#define TUTTI_IMPORTED(result, name, parameters) extern "C" result name parameters;
TUTTI_CUDA_FUNCTIONS(TUTTI_IMPORTED)
#undef TUTTI_IMPORTED
}  // namespace tutti::cuda

namespace tutti::backend_nccl {

#define TUTTI_DECLARED(result, name, parameters) TUTTI_EXPORTED result name parameters;
TUTTI_NCCL_FUNCTIONS(TUTTI_DECLARED)
TUTTI_NCCL_LATER_FUNCTIONS(TUTTI_DECLARED)
#undef TUTTI_DECLARED

using doubles::Kind;
using doubles::Operation;
using doubles::Seat;

inline constexpr Answer kCudaError = 1, kInvalidArgument = 4, kInvalidUsage = 5, kRemoteError = 6;

inline int version() { return doubles::number_of("TUTTI_DOUBLE_NCCL", 22809); }
inline bool blocks() { return doubles::number_of("NCCL_COMM_BLOCKING", 1) != 0; }

/// What ncclGetLastError says of this thread.
std::string& last_error();
inline Answer fail(Answer answer, const std::string& text) {
  last_error() = text;
  return answer;
}

/// What a communicator is at when it does not block: done when it returns true.
using Task = std::function<bool()>;

struct Communicator {
  std::shared_ptr<Seat> seat = std::make_shared<Seat>();
  std::list<Task> tasks;
  Answer error = kSuccess;
  std::string why;  ///< of the error
  int splits = 0;
  std::vector<std::pair<tutti::Dtype, Factor>> ops;  ///< of premul_sum, from the sixth op on
  std::set<void*> registered;
  int live_ops = 0;

  /// Goes on with what it is at.
  Answer advance() {
    while (error == kSuccess && !tasks.empty()) {
      if (!tasks.front()()) return kInProgress;
      tasks.pop_front();
    }
    if (error != kSuccess) last_error() = why;
    if (error == kSuccess && seat->has_lost_a_rank) return fail(kRemoteError, seat->loss);
    return error;
  }
};

/// All communicators of the process.
struct Registry {
  std::recursive_mutex mutex;
  std::map<Comm, std::shared_ptr<Communicator>> all;
  std::set<void*> symmetric;  ///< memory of ncclMemAlloc

  static Registry& get() {
    static auto& one = *new Registry();  // a thread that waits for a lost rank may outlive main
    return one;
  }
  std::shared_ptr<Communicator> find(Comm comm) {
    const std::lock_guard lock(mutex);
    const auto found = all.find(comm);
    return found == all.end() ? nullptr : found->second;
  }
  Comm add(const std::shared_ptr<Communicator>& made) {
    const std::lock_guard lock(mutex);
    return all.emplace(made.get(), made).first->first;
  }
  std::shared_ptr<Communicator> remove(Comm comm) {
    const std::lock_guard lock(mutex);
    const auto found = all.find(comm);
    return found == all.end() ? nullptr : all.extract(found).mapped();
  }
};

/// A communicator's `advance`, one thread at a time.
Answer advance(Communicator& communicator);
/// The same until it is done.
Answer finish(Communicator& communicator);

struct Call {
  std::shared_ptr<Communicator> communicator;
  Operation what;
  Stream stream;
};

struct OpenGroup {
  int depth = 0;
  std::vector<Call> calls;
  std::vector<std::shared_ptr<Communicator>> joining;
  std::vector<Comm*> parts;  ///< of communicators that are split: known when those have settled
  Answer error = kSuccess;
};
/// This thread's.
OpenGroup& open_group();

/// Puts calls on the stream. Where communicators do not block, they are there some questions later.
Answer launch(const std::shared_ptr<Communicator>& communicator, Stream stream, std::vector<Operation> calls);

}  // namespace tutti::backend_nccl
