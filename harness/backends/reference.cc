// SPDX-License-Identifier: Apache-2.0
#include "harness/backends/reference.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "harness/backends/reference_call.h"

namespace tutti::harness::backends {
namespace {

Operation operation_of(const Case& one) {
  Operation what{.problem = one.problem(), .dtype = one.dtype, .op = one.op, .count = one.count};
  if (has_counts(one.collective)) what.blocks = std::make_shared<const CellBlocks>(blocks_of(one));
  return what;
}

std::size_t bytes_of(Count elements, const Case& one) {
  return static_cast<std::size_t>(elements) * size_of(one.dtype);
}

/// Of a buffer of the case, on all ranks: the largest one, its guards, and what aligning takes.
std::size_t window_bytes(const Case& one) {
  constexpr std::size_t kPage = 4096, kPagesAround = 6;
  const std::size_t largest = std::max(static_cast<std::size_t>(one.bytes), bytes_of(one.count, one));
  return (largest + kPage - 1) / kPage * kPage + kPagesAround * kPage;
}

}  // namespace

/// The prepared call of one rank, and the buffers that the library was told of for it.
class ReferenceBackend::CallOfRank {
 public:
  CallOfRank(const LoadedBackend& library, LoadedBackend::Handle made, int local_rank)
      : handle(made), local(local_rank), library_(library) {}
  ~CallOfRank() {
    library_.release(handle);
    // What cannot be forgotten is forgotten with the world.
    for (const LoadedBackend::Handle one : registered_) static_cast<void>(library_.forget_buffer(local, one).is_ok());
  }
  CallOfRank(const CallOfRank&) = delete;
  CallOfRank& operator=(const CallOfRank&) = delete;

  /// As what `one.buffers` says or, on a GPU, for the rank alone.
  Status register_buffers(void* group, const Case& one, const RankBuffers& buffers, int rank) {
    const Buffers kind = buffers.memory == MemoryKind::cuda ? Buffers::private_ : one.buffers;
    const Operation what = operation_of(one);
    const std::span input(static_cast<const std::byte*>(buffers.input), bytes_of(what.input_elements(rank), one));
    const std::span output(static_cast<const std::byte*>(buffers.output), bytes_of(what.output_elements(rank), one));
    const bool is_larger = input.size() > output.size();
    if (!one.is_in_place || is_larger) TUTTI_RETURN_IF_ERROR(add(group, input, kind));
    return one.is_in_place && is_larger ? Status() : add(group, output, kind);
  }
  /// The memory around them, as symmetric windows, of which all ranks have as many of the same size.
  Status register_windows(void* group, const Case& one, const RankBuffers& buffers) {
    for (const std::span<const std::byte> around : {buffers.around_input, buffers.around_output}) {
      if (around.empty()) continue;
      const std::size_t bytes = window_bytes(one);
      TUTTI_ASSERT(around.size() <= bytes, "a buffer of {} bytes in a window of {}", around.size(), bytes);
      TUTTI_RETURN_IF_ERROR(add(group, {around.data(), bytes}, Buffers::shared));
    }
    return {};
  }

  const LoadedBackend::Handle handle;
  const int local;

 private:
  Status add(void* group, std::span<const std::byte> memory, Buffers kind) {
    if (memory.empty()) return {};
    TUTTI_ASSIGN_OR_RETURN(const LoadedBackend::Handle one, library_.register_buffer(group, local, memory, kind));
    registered_.push_back(one);
    return {};
  }

  const LoadedBackend& library_;
  std::vector<LoadedBackend::Handle> registered_;
};

/// The library's blocking call, as its users make it: it is complete when `post` returns.
class ReferenceBackend::BlockingCall final : public Prepared {
 public:
  BlockingCall(const LoadedBackend& library, std::unique_ptr<CallOfRank> call)
      : library_(library), call_(std::move(call)), handle_(call_->handle) {}

  Status post(std::size_t /*index*/) override { return library_.run(handle_); }
  Result<bool> test(std::size_t /*index*/) override { return true; }
  Status settle() override { return library_.poll_error(call_->local); }

 private:
  const LoadedBackend& library_;
  std::unique_ptr<CallOfRank> call_;
  LoadedBackend::Handle handle_;
};

/// The library's nonblocking call, of each rank of the process.
class ReferenceBackend::NonblockingCalls final : public Prepared {
 public:
  /// `is_in_order`: the calls are posted on streams.
  NonblockingCalls(const LoadedBackend& library, std::vector<std::unique_ptr<CallOfRank>> calls, bool is_in_order)
      : library_(library), calls_(std::move(calls)), is_in_order_(is_in_order) {}

  [[nodiscard]] bool is_in_order() const override { return is_in_order_; }

  [[nodiscard]] bool is_posted_together() const override { return calls_.size() > 1; }
  Status begin_posts() override { return library_.begin_group(); }
  Status end_posts() override { return library_.end_group(); }
  Status post(std::size_t index) override { return library_.post(calls_[index]->handle); }
  Result<bool> test(std::size_t index) override { return library_.test(calls_[index]->handle); }
  Status settle() override {
    for (const auto& call : calls_) TUTTI_RETURN_IF_ERROR(library_.poll_error(call->local));
    return {};
  }

 private:
  const LoadedBackend& library_;
  std::vector<std::unique_ptr<CallOfRank>> calls_;
  bool is_in_order_;
};

Result<std::unique_ptr<ReferenceBackend>> ReferenceBackend::create(const std::string& name,
                                                                   std::span<const std::string> directories) {
  TUTTI_ASSIGN_OR_RETURN(LoadedBackend library, LoadedBackend::load(std::string(backend_of(name)), directories));
  std::unique_ptr<ReferenceBackend> reference = over(std::move(library));
  reference->name_ = name;
  return reference;
}

std::unique_ptr<ReferenceBackend> ReferenceBackend::over(LoadedBackend library) {
  return std::unique_ptr<ReferenceBackend>(new ReferenceBackend(std::move(library)));
}

std::unique_ptr<ReferenceBackend> ReferenceBackend::skipped(std::string name) {
  return std::unique_ptr<ReferenceBackend>(new ReferenceBackend(std::move(name)));
}

Status ReferenceBackend::open(int ranks, int rank, const TuttiBackendJoin& join) {
  TUTTI_RETURN_IF_ERROR(library_->open({.ranks = ranks, .rank = rank}, join));
  is_open_ = true;
  rank_ = rank;
  ranks_ = ranks;
  local_ranks_ = join.local_ranks;
  return {};
}

Status ReferenceBackend::enter_group(int colour, int key) {
  TUTTI_ASSIGN_OR_RETURN(group_, library_->split(nullptr, colour, key));
  rank_ = group_.rank;
  ranks_ = group_.ranks;
  return {};
}

Result<void*> ReferenceBackend::allocate(const Case& one, int local, std::size_t bytes) const {
  return library_->allocate(local, std::max(bytes, window_bytes(one)));
}

Status ReferenceBackend::close() {
  if (!std::exchange(is_open_, false)) return {};
  const Status freed = group_.handle == nullptr ? Status() : library_->free_group(group_);
  group_ = {};
  const Status closed = library_->close();
  return freed.is_ok() ? closed : freed;
}

ReferenceBackend::~ReferenceBackend() {
  if (!is_open_) return;
  for (int local = 0; local < local_ranks_; ++local) static_cast<void>(library_->abort(local).is_ok());
}

std::unique_ptr<Group> ReferenceBackend::world(GroupMemory memory) const {
  return std::make_unique<ReferenceGroup>(
      *library_, TuttiBackendGroup{.ranks = ranks_, .rank = rank_, .handle = group_.handle}, std::move(memory));
}

std::string ReferenceBackend::describe() const {
  if (!library_) return "{}";
  const auto text = library_->describe();
  return text.is_ok() ? text.value() : "{}";
}

Status ReferenceBackend::supports(const Case& one) const {
  if (!is_open_) {
    return error(Code::unavailable, "{} runs with ranks as processes, not as {}", name_, to_string(one.ranks_as));
  }
  for (int local = 0; local < local_ranks_; ++local) {
    ReferenceCall asked(operation_of(one), rank_ + local, one.is_in_place);
    asked.call.memory = static_cast<std::int32_t>(memory_kind_);
    asked.call.group = group_.handle;
    TUTTI_RETURN_IF_ERROR(library_->supports(asked.call));
  }
  return {};
}

Result<std::unique_ptr<ReferenceBackend::CallOfRank>> ReferenceBackend::prepare_one(const Case& one,
                                                                                    const RankBuffers& buffers,
                                                                                    bool is_asynchronous) const {
  const int rank = rank_ + buffers.local;
  ReferenceCall made(operation_of(one), rank, one.is_in_place);
  made.call.asynchronous = is_asynchronous ? 1 : 0;
  made.call.memory = static_cast<std::int32_t>(buffers.memory);
  made.call.stream = buffers.stream;
  made.call.local = buffers.local;
  made.call.group = group_.handle;
  if (is_asynchronous) TUTTI_RETURN_IF_ERROR(library_->supports(made.call));
  made.call.send = buffers.input;
  made.call.recv = buffers.output;
  TUTTI_ASSIGN_OR_RETURN(const LoadedBackend::Handle handle, library_->prepare(made.call));
  return std::make_unique<CallOfRank>(*library_, handle, buffers.local);
}

Status ReferenceBackend::register_buffers(const Case& one, std::span<const RankBuffers> buffers,
                                          std::span<const std::unique_ptr<CallOfRank>> calls) const {
  if (one.buffers != Buffers::shared || !library_->can_register()) return {};
  // Windows are made by all ranks together. A group of calls says at its end what went wrong.
  if (has_windows_) TUTTI_RETURN_IF_ERROR(library_->begin_group());
  Status status;
  for (std::size_t i = 0; i < calls.size() && status.is_ok(); ++i) {
    CallOfRank& call = *calls[i];
    status = has_windows_ ? call.register_windows(group_.handle, one, buffers[i])
                          : call.register_buffers(group_.handle, one, buffers[i], rank_ + buffers[i].local);
  }
  const Status ended = has_windows_ ? library_->end_group() : Status();
  return status.is_ok() ? ended : status;
}

Result<std::unique_ptr<Prepared>> ReferenceBackend::prepare(const Case& one, std::span<const RankBuffers> buffers) {
  if (buffers.size() > 1) return prepare_asynchronous(one, buffers);  // one rank's blocking call waits for the others'
  TUTTI_ASSIGN_OR_RETURN(auto call, prepare_one(one, buffers.front(), false));
  TUTTI_RETURN_IF_ERROR(register_buffers(one, buffers, {&call, 1}));
  return std::unique_ptr<Prepared>(new BlockingCall(*library_, std::move(call)));
}

Result<std::unique_ptr<Prepared>> ReferenceBackend::prepare_asynchronous(const Case& one,
                                                                         std::span<const RankBuffers> buffers) {
  std::vector<std::unique_ptr<CallOfRank>> calls;
  for (const RankBuffers& of_rank : buffers) {
    TUTTI_ASSIGN_OR_RETURN(auto call, prepare_one(one, of_rank, true));
    calls.push_back(std::move(call));
  }
  TUTTI_RETURN_IF_ERROR(register_buffers(one, buffers, calls));
  const bool is_in_order = !buffers.empty() && buffers.front().stream != nullptr;
  return std::unique_ptr<Prepared>(new NonblockingCalls(*library_, std::move(calls), is_in_order));
}

}  // namespace tutti::harness::backends
