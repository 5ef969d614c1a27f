// SPDX-License-Identifier: Apache-2.0
// A call on its way, as torch sees it: a Work that is waited for, or whose future is.
#pragma once

#include <ATen/core/ivalue.h>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "impl/bindings/torch/call_times.h"
#include "impl/bindings/torch/record.h"
#include "impl/bindings/torch/tensors.h"
#include "impl/bindings/torch/torch.h"
#include "impl/embed/operation.h"

namespace tutti::bindings {

class GroupWork final : public c10d::Work {
 public:
  /// `call`: the name in messages, and in torch's profiler.
  GroupWork(int rank, c10d::OpType type, const std::string& call, const Tensors& inputs);

  [[nodiscard]] const std::string& call() const { return call_; }
  [[nodiscard]] bool is_done() const { return is_done_.load(std::memory_order_acquire); }

  // Until it is posted:

  TensorsOfCall tensors;
  Tensors outputs;  // what the future holds
  /// Makes outputs of what has come, when it has gone well.
  std::function<void()> at_success;
  int from = -1;                     // the rank whose message came
  Recorder* recorder = nullptr;      // that has noted the call
  std::shared_ptr<CallTimes> times;  // that times it; null: none does
  std::uint64_t number = 0;          // there

  /// What World::post calls in the end.
  void conclude(const Status& status);
  /// Requires: it is posted.
  void follow(std::shared_ptr<embed::Operation> operation) { operation_ = std::move(operation); }

  // c10d::Work. A wait without a timeout lasts until the operation's own deadline. One with a timeout throws when that
  // has passed, and the operation goes on.

  bool isCompleted() override;
  bool isSuccess() const override;
  int sourceRank() const override { return from; }
  Tensors result() override { return outputs; }
  void synchronize() override {}
  bool wait(milliseconds timeout) override;
  void abort() override {}
  /// Somebody waits for the future, and nobody here: the helper thread moves the operation from now on.
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

 private:
  const std::string call_;
  std::shared_ptr<embed::Operation> operation_;
  std::atomic<bool> is_done_{false};
  std::mutex future_mutex_;  // of future_, and of is_done_ becoming true
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

using WorkPointer = c10::intrusive_ptr<GroupWork>;

}  // namespace tutti::bindings
