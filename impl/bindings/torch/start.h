// SPDX-License-Identifier: Apache-2.0
// How the calls of a process group are posted: for the files that define them.
#pragma once

#include <utility>

#include "impl/bindings/torch/failure.h"
#include "impl/bindings/torch/process_group.h"

namespace tutti::bindings {

/// A call that names no timeout has the world's, which is 0.
[[nodiscard]] inline std::chrono::nanoseconds own_timeout(milliseconds timeout) {
  return timeout == c10d::kUnsetTimeout ? milliseconds(0) : timeout;
}

template <class Post>
ProcessGroup::Pointer ProcessGroup::start(const WorkPointer& work, embed::OperationOptions options, const Post& post) {
  options.at_end = [held = work](const Status& status) mutable {
    const WorkPointer last = std::move(held);  // so that the operation and its Work do not keep each other alive
    last->conclude(status);
  };
  auto operation = post(std::move(options));
  check(work->call(), operation.status());
  work->follow(std::move(operation).value());
#if TORCH_VERSION_MAJOR >= 2
  if (is_coalescing_) coalesced_.push_back(work);
#endif
  return work;
}

}  // namespace tutti::bindings
