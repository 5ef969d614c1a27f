// SPDX-License-Identifier: Apache-2.0
#include "harness/backends/reference.h"

namespace tutti::harness {
namespace {

/// The blocks of a divided buffer as the library takes them.
struct Arrays {
  std::vector<std::int64_t> counts, displacements;

  void add(const Place& place) {
    counts.push_back(place.count);
    displacements.push_back(place.first);
  }
};

/// What a call points to, kept alive for the library.
struct CallParts {
  CallParts(const Case& one, int rank)
      : collective(to_string(one.collective)), dtype(to_string(one.dtype)), op(to_string(one.op)), count(one.count) {
    if (!has_counts(one.collective)) return;
    const CellBlocks blocks = blocks_of(one);
    const bool has_own = divides_input(one.collective) && divides_output(one.collective);
    const int whose = is_rooted(one.collective) ? one.root : rank;
    for (int block = 0; block < one.ranks; ++block) {
      if (divides_input(one.collective)) send.add(blocks.input(whose, block));
      if (divides_output(one.collective)) receive.add(blocks.output(whose, block));
    }
    count = has_own ? 0 : blocks.own_count(rank);
  }
  std::string collective, dtype, op;
  Count count;
  Arrays send, receive;
};

const std::int64_t* array_of(const std::vector<std::int64_t>& values) {
  return values.empty() ? nullptr : values.data();
}

TuttiBackendCall call_for(const Case& one, const CallParts& parts, const RankBuffers& buffers) {
  return {.collective = parts.collective.c_str(),
          .dtype = parts.dtype.c_str(),
          .op = parts.op.c_str(),
          .root = one.root,
          .in_place = one.is_in_place ? 1 : 0,
          .count = parts.count,
          .element_bytes = size_of(one.dtype),
          .send = buffers.input,
          .recv = buffers.output,
          .blocks = has_counts(one.collective) ? one.ranks : 0,
          .send_counts = array_of(parts.send.counts),
          .send_displacements = array_of(parts.send.displacements),
          .recv_counts = array_of(parts.receive.counts),
          .recv_displacements = array_of(parts.receive.displacements)};
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
  rank_ = rank;
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
  const CallParts parts(one, rank_);
  return library_.supports(call_for(one, parts, {}));
}

Result<std::unique_ptr<Prepared>> ReferenceBackend::prepare(const Case& one, std::span<const RankBuffers> buffers) {
  const CallParts parts(one, rank_);
  TUTTI_ASSIGN_OR_RETURN(const LoadedBackend::Handle handle, library_.prepare(call_for(one, parts, buffers.front())));
  return std::unique_ptr<Prepared>(new BlockingCall(library_, handle));
}

}  // namespace tutti::harness
