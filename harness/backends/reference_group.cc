// SPDX-License-Identifier: Apache-2.0
#include "harness/backends/reference_group.h"

#include <algorithm>
#include <string>

#include "harness/backends/reference_call.h"

namespace tutti::harness::backends {
namespace {

class PendingHandle final : public Pending {
 public:
  PendingHandle(const LoadedBackend& library, LoadedBackend::Handle handle) : library_(library), handle_(handle) {}
  // One that is not complete stays with the library: the job has failed, and nothing more is asked of it.

  [[nodiscard]] Result<bool> test() override {
    if (handle_ == nullptr) return true;
    TUTTI_ASSIGN_OR_RETURN(const bool is_complete, library_.test(handle_));
    if (is_complete) release();
    return is_complete;
  }
  Status wait(std::chrono::nanoseconds /*timeout*/) override {
    if (handle_ == nullptr) return {};
    TUTTI_RETURN_IF_ERROR(library_.wait(handle_));
    release();
    return {};
  }
  [[nodiscard]] std::string position() const override { return "in flight in the library"; }

 private:
  void release() {
    library_.release(handle_);
    handle_ = nullptr;
  }

  const LoadedBackend& library_;
  LoadedBackend::Handle handle_;
};

class ReferenceFormation final : public Formation {
 public:
  explicit ReferenceFormation(std::unique_ptr<Group> group) : group_(std::move(group)) {}
  [[nodiscard]] Result<bool> test() override { return true; }
  [[nodiscard]] std::unique_ptr<Group> take() override { return std::move(group_); }

 private:
  std::unique_ptr<Group> group_;
};

}  // namespace

Status ReferenceGroup::supports(const GroupCall& call) const {
  // Of a v form each rank has blocks of its own: unless all of them fit, no rank may post.
  for (int each = 0; each < ranks(); ++each) {
    ReferenceCall asked(call.what, each, call.is_in_place);
    asked.call.group = group_.handle;
    asked.call.asynchronous = 1;
    TUTTI_RETURN_IF_ERROR(library_.supports(asked.call));
  }
  return {};
}

Result<std::unique_ptr<Pending>> ReferenceGroup::post(const GroupCall& call) {
  ReferenceCall made(call.what, rank(), call.is_in_place);
  made.call.send = call.input;
  made.call.recv = call.output;
  return start(made.call);
}

Result<std::unique_ptr<Pending>> ReferenceGroup::start(TuttiBackendCall call) {
  const Memory& memory = *memory_(Buffers::private_).kind;
  call.group = group_.handle;
  call.asynchronous = 1;
  call.memory = static_cast<std::int32_t>(memory.kind());
  call.stream = memory.stream();
  TUTTI_ASSIGN_OR_RETURN(const LoadedBackend::Handle handle, library_.prepare(call));
  TUTTI_RETURN_IF_ERROR(library_.post(handle));
  return std::unique_ptr<Pending>(new PendingHandle(library_, handle));
}

Result<std::unique_ptr<Pending>> ReferenceGroup::post_send(const Message<const void*>& message) {
  const std::string dtype(to_string(message.dtype));
  return start({.collective = "send",
                .dtype = dtype.c_str(),
                .op = "none",
                .root = message.peer,
                .count = message.count,
                .element_bytes = size_of(message.dtype),
                .send = message.buffer});
}

Result<std::unique_ptr<Pending>> ReferenceGroup::post_recv(const Message<void*>& message) {
  const std::string dtype(to_string(message.dtype));
  return start({.collective = "recv",
                .dtype = dtype.c_str(),
                .op = "none",
                .root = message.peer,
                .count = message.count,
                .element_bytes = size_of(message.dtype),
                .recv = message.buffer});
}

Result<std::unique_ptr<Formation>> ReferenceGroup::post_split(int colour, int key) {
  TUTTI_ASSIGN_OR_RETURN(const TuttiBackendGroup made, library_.split(group_.handle, colour, key));
  std::unique_ptr<Group> group;
  if (made.ranks > 0) group = std::make_unique<ReferenceGroup>(library_, made, memory_);
  return std::unique_ptr<Formation>(new ReferenceFormation(std::move(group)));
}

Result<std::unique_ptr<Formation>> ReferenceGroup::post_new_group(std::span<const int> ranks) {
  const auto mine = std::ranges::find(ranks, rank());
  return post_split(mine == ranks.end() ? -1 : 0, static_cast<int>(mine - ranks.begin()));
}

Status ReferenceGroup::free() { return group_.handle == nullptr ? Status() : library_.free_group(group_); }

}  // namespace tutti::harness::backends
