// SPDX-License-Identifier: Apache-2.0
#include "harness/backends/reference.h"

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

  /// As what `one.buffers` says or, on a GPU, for the rank alone: a symmetric window has to lie in the library's memory.
  Status register_buffers(const Case& one, const RankBuffers& buffers, int rank) {
    const Buffers kind = buffers.memory == MemoryKind::cuda ? Buffers::private_ : one.buffers;
    const Operation what = operation_of(one);
    const std::size_t inputs = bytes_of(what.input_elements(rank), one);
    const std::size_t outputs = bytes_of(what.output_elements(rank), one);
    if (!one.is_in_place || inputs > outputs) TUTTI_RETURN_IF_ERROR(add(buffers.input, inputs, kind));
    return one.is_in_place && inputs > outputs ? Status() : add(buffers.output, outputs, kind);
  }

  const LoadedBackend::Handle handle;
  const int local;

 private:
  Status add(const void* memory, std::size_t bytes, Buffers kind) {
    if (bytes == 0) return {};
    TUTTI_ASSIGN_OR_RETURN(const LoadedBackend::Handle one,
                           library_.register_buffer(local, {static_cast<const std::byte*>(memory), bytes}, kind));
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
  TUTTI_ASSIGN_OR_RETURN(LoadedBackend library, LoadedBackend::load(name, directories));
  return over(std::move(library));
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

Status ReferenceBackend::close() { return std::exchange(is_open_, false) ? library_->close() : Status(); }

ReferenceBackend::~ReferenceBackend() {
  if (!is_open_) return;
  for (int local = 0; local < local_ranks_; ++local) static_cast<void>(library_->abort(local).is_ok());
}

std::unique_ptr<Group> ReferenceBackend::world(GroupMemory memory) const {
  return std::make_unique<ReferenceGroup>(
      *library_, TuttiBackendGroup{.ranks = ranks_, .rank = rank_, .handle = nullptr}, std::move(memory));
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
  if (is_asynchronous) TUTTI_RETURN_IF_ERROR(library_->supports(made.call));
  made.call.send = buffers.input;
  made.call.recv = buffers.output;
  TUTTI_ASSIGN_OR_RETURN(const LoadedBackend::Handle handle, library_->prepare(made.call));
  auto call = std::make_unique<CallOfRank>(*library_, handle, buffers.local);
  const bool is_registered = one.buffers == Buffers::shared && library_->can_register();
  if (is_registered) TUTTI_RETURN_IF_ERROR(call->register_buffers(one, buffers, rank));
  return call;
}

Result<std::unique_ptr<Prepared>> ReferenceBackend::prepare(const Case& one, std::span<const RankBuffers> buffers) {
  if (buffers.size() > 1) return prepare_asynchronous(one, buffers);  // one rank's blocking call waits for the others'
  TUTTI_ASSIGN_OR_RETURN(auto call, prepare_one(one, buffers.front(), false));
  return std::unique_ptr<Prepared>(new BlockingCall(*library_, std::move(call)));
}

Result<std::unique_ptr<Prepared>> ReferenceBackend::prepare_asynchronous(const Case& one,
                                                                         std::span<const RankBuffers> buffers) {
  std::vector<std::unique_ptr<CallOfRank>> calls;
  for (const RankBuffers& of_rank : buffers) {
    TUTTI_ASSIGN_OR_RETURN(auto call, prepare_one(one, of_rank, true));
    calls.push_back(std::move(call));
  }
  const bool is_in_order = !buffers.empty() && buffers.front().stream != nullptr;
  return std::unique_ptr<Prepared>(new NonblockingCalls(*library_, std::move(calls), is_in_order));
}

}  // namespace tutti::harness::backends
