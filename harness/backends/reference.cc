// SPDX-License-Identifier: Apache-2.0
#include "harness/backends/reference.h"

namespace tutti::harness {
namespace {

/// The names that a call carries, kept alive for the library.
struct CallText {
  explicit CallText(const Case& one)
      : collective(to_string(one.collective)), dtype(to_string(one.dtype)), op(to_string(one.op)) {}
  std::string collective, dtype, op;
};

TuttiBackendCall call_for(const Case& one, const CallText& text, const RankBuffers& buffers) {
  return {.collective = text.collective.c_str(),
          .dtype = text.dtype.c_str(),
          .op = text.op.c_str(),
          .root = one.root,
          .in_place = one.is_in_place ? 1 : 0,
          .count = one.count,
          .element_bytes = size_of(one.dtype),
          .send = buffers.input,
          .recv = buffers.output};
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

}  // namespace

Result<std::unique_ptr<ReferenceBackend>> ReferenceBackend::create(const std::string& name,
                                                                   std::span<const std::string> directories) {
  TUTTI_ASSIGN_OR_RETURN(LoadedBackend library, LoadedBackend::load(name, directories));
  return std::unique_ptr<ReferenceBackend>(new ReferenceBackend(std::move(library)));
}

Status ReferenceBackend::open(int ranks, int rank) {
  TUTTI_RETURN_IF_ERROR(library_.open({.ranks = ranks, .rank = rank}));
  is_open_ = true;
  return {};
}

Status ReferenceBackend::close() { return is_open_ ? library_.close() : Status(); }

std::string ReferenceBackend::describe() const {
  const auto text = library_.describe();
  return text.is_ok() ? text.value() : "{}";
}

Status ReferenceBackend::supports(const Case& one) const {
  if (!is_open_) {
    return error(Code::unavailable, "{} runs with ranks as processes, not as {}", name_, to_string(one.ranks_as));
  }
  const CallText text(one);
  return library_.supports(call_for(one, text, {}));
}

Result<std::unique_ptr<Prepared>> ReferenceBackend::prepare(const Case& one, std::span<const RankBuffers> buffers) {
  const CallText text(one);
  TUTTI_ASSIGN_OR_RETURN(const LoadedBackend::Handle handle, library_.prepare(call_for(one, text, buffers.front())));
  return std::unique_ptr<Prepared>(new BlockingCall(library_, handle));
}

}  // namespace tutti::harness
