// SPDX-License-Identifier: Apache-2.0
#include "harness/backends/reference.h"

#include "harness/backends/reference_call.h"

namespace tutti::harness::backends {
namespace {

Operation operation_of(const Case& one) {
  Operation what{.problem = one.problem(), .dtype = one.dtype, .op = one.op, .count = one.count};
  if (has_counts(one.collective)) what.blocks = std::make_shared<const CellBlocks>(blocks_of(one));
  return what;
}

/// The library's blocking call, as its users make it: it is complete when `post` returns.
class BlockingCall final : public Prepared {
 public:
  BlockingCall(const LoadedBackend& library, LoadedBackend::Handle handle) : library_(library), handle_(handle) {}
  ~BlockingCall() override { library_.release(handle_); }
  BlockingCall(const BlockingCall&) = delete;
  BlockingCall& operator=(const BlockingCall&) = delete;

  Status post(std::size_t /*index*/) override { return library_.run(handle_); }
  Result<bool> test(std::size_t /*index*/) override { return true; }

 private:
  const LoadedBackend& library_;
  LoadedBackend::Handle handle_;
};

/// The library's nonblocking call.
class NonblockingCall final : public Prepared {
 public:
  NonblockingCall(const LoadedBackend& library, LoadedBackend::Handle handle) : library_(library), handle_(handle) {}
  ~NonblockingCall() override { library_.release(handle_); }
  NonblockingCall(const NonblockingCall&) = delete;
  NonblockingCall& operator=(const NonblockingCall&) = delete;

  Status post(std::size_t /*index*/) override { return library_.post(handle_); }
  Result<bool> test(std::size_t /*index*/) override { return library_.test(handle_); }

 private:
  const LoadedBackend& library_;
  LoadedBackend::Handle handle_;
};

}  // namespace

Result<std::unique_ptr<ReferenceBackend>> ReferenceBackend::create(const std::string& name,
                                                                   std::span<const std::string> directories) {
  TUTTI_ASSIGN_OR_RETURN(LoadedBackend library, LoadedBackend::load(name, directories));
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
  return {};
}

Status ReferenceBackend::close() { return is_open_ ? library_->close() : Status(); }

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
  return library_->supports(ReferenceCall(operation_of(one), rank_, one.is_in_place).call);
}

Result<std::unique_ptr<Prepared>> ReferenceBackend::prepare(const Case& one, std::span<const RankBuffers> buffers) {
  ReferenceCall made(operation_of(one), rank_, one.is_in_place);
  made.call.send = buffers.front().input;
  made.call.recv = buffers.front().output;
  TUTTI_ASSIGN_OR_RETURN(const LoadedBackend::Handle handle, library_->prepare(made.call));
  return std::unique_ptr<Prepared>(new BlockingCall(*library_, handle));
}

Result<std::unique_ptr<Prepared>> ReferenceBackend::prepare_asynchronous(const Case& one,
                                                                         std::span<const RankBuffers> buffers) {
  ReferenceCall made(operation_of(one), rank_, one.is_in_place);
  made.call.asynchronous = 1;
  TUTTI_RETURN_IF_ERROR(library_->supports(made.call));
  made.call.send = buffers.front().input;
  made.call.recv = buffers.front().output;
  TUTTI_ASSIGN_OR_RETURN(const LoadedBackend::Handle handle, library_->prepare(made.call));
  return std::unique_ptr<Prepared>(new NonblockingCall(*library_, handle));
}

}  // namespace tutti::harness::backends
