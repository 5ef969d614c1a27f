// SPDX-License-Identifier: Apache-2.0
// Messages between two ranks, and what stands between startCoalescing and endCoalescing.
#include "impl/bindings/torch/elements.h"
#include "impl/bindings/torch/process_group.h"
#include "impl/bindings/torch/start.h"

namespace tutti::bindings {
namespace {

void check_peer(const GroupWork& work, int peer, int size) {
  if (peer < 0 || peer >= size) refuse(work.call(), "rank {} of a group of {} ranks", peer, size);
}

}  // namespace

ProcessGroup::Pointer ProcessGroup::send(Tensors& tensors, int to, int tag) {
  const WorkPointer work = begin_message(c10d::OpType::SEND, "send", tensors);
  const Tensor& tensor = only(work->call(), tensors);
  check_peer(*work, to, size_);
  const Elements elements = elements_of(work->call(), tensor.scalar_type());
  const void* const buffer = work->tensors.input(tensor);
  return start(work, {.needs = to}, [&](embed::OperationOptions options) {
    return world_->post_send(buffer, tensor.numel() * elements.factor, elements.dtype, to, tag, std::move(options));
  });
}

ProcessGroup::Pointer ProcessGroup::recv(Tensors& tensors, int from, int tag) {
  const WorkPointer work = begin_message(c10d::OpType::RECV, "recv", tensors);
  const Tensor& tensor = only(work->call(), tensors);
  check_peer(*work, from, size_);
  const Elements elements = elements_of(work->call(), tensor.scalar_type());
  void* const buffer = work->tensors.output(tensor);
  work->outputs = tensors;
  work->from = from;
  return start(work, {.needs = from}, [&](embed::OperationOptions options) {
    return world_->post_recv(buffer, tensor.numel() * elements.factor, elements.dtype, from, tag, std::move(options));
  });
}

ProcessGroup::Pointer ProcessGroup::recvAnysource(Tensors& tensors, int tag) {
  const WorkPointer work = begin_message(c10d::OpType::RECVANYSOURCE, "recvAnySource", tensors);
  const Tensor& tensor = only(work->call(), tensors);
  const Elements elements = elements_of(work->call(), tensor.scalar_type());
  void* const buffer = work->tensors.output(tensor);
  work->outputs = tensors;
  return start(work, {.needs = embed::OperationOptions::kAnyRank}, [&](embed::OperationOptions options) {
    return world_->post_recv_from_any(buffer, tensor.numel() * elements.factor, elements.dtype, tag, &work->from,
                                      std::move(options));
  });
}

void ProcessGroup::startCoalescing() {
#if TORCH_VERSION_MAJOR >= 2
  is_coalescing_ = true;
  coalesced_.clear();
#endif
}

#if TORCH_VERSION_MAJOR >= 2
ProcessGroup::Pointer ProcessGroup::endCoalescing() {
  is_coalescing_ = false;
  const WorkPointer work = begin_message(c10d::OpType::COALESCED, "coalesced", {});
  auto next = [parts = std::move(coalesced_)](Communicator&, std::vector<tutti::Work>&) -> Result<bool> {
    for (const Pointer& part : parts) {
      if (!static_cast<const GroupWork&>(*part).is_done()) return false;
    }
    return true;
  };
  return start(work, {}, [&](embed::OperationOptions options) {
    return world_->post(embed::Next(std::move(next)), std::move(options));
  });
}
#endif

}  // namespace tutti::bindings
