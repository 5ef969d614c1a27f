// SPDX-License-Identifier: Apache-2.0
#include "impl/bindings/torch/work.h"

#include <algorithm>

#include "impl/bindings/torch/failure.h"
#include "impl/bindings/torch/waiting.h"

namespace tutti::bindings {

GroupWork::GroupWork(int rank, c10d::OpType type, const std::string& call, const Tensors& inputs)
    : c10d::Work(rank, type, call.c_str(), inputs), call_(call) {}

// By any thread, without a lock, for Python code may run here that wants Python's own.
void GroupWork::conclude(const Status& status) {
  if (recorder != nullptr) recorder->end_call();
  if (times != nullptr && status.is_ok()) times->end(number);
  std::exception_ptr failure;
  try {
    check(call_, status);
    tensors.copy_back();
    if (at_success) at_success();
  } catch (...) {
    failure = std::current_exception();
  }
  if (status.is_ok()) {
    tensors.release();
  } else {
    tensors.release_after_failure();
  }
  at_success = nullptr;
  finish(failure);
  c10::intrusive_ptr<c10::ivalue::Future> future;
  {
    const std::lock_guard lock(future_mutex_);
    is_done_.store(true, std::memory_order_release);
    future = future_;
  }
  if (!future) return;
  if (failure) {
    future->setError(failure);
  } else {
    future->markCompleted(c10::IValue(outputs));
  }
}

bool GroupWork::isCompleted() {
  if (!is_done_.load(std::memory_order_acquire)) operation_->test();
  return is_done_.load(std::memory_order_acquire);
}

bool GroupWork::isSuccess() const { return is_done_.load(std::memory_order_acquire) && exception() == nullptr; }

bool GroupWork::wait(milliseconds timeout) {
  using Clock = std::chrono::steady_clock;
  const bool is_limited = timeout > kNoTimeout;
  const auto deadline = Clock::now() + timeout;
  while (!is_done_.load(std::memory_order_acquire)) {
    std::chrono::nanoseconds piece = kBetweenSignals;
    if (is_limited) {
      const auto left = deadline - Clock::now();
      if (left <= left.zero()) refuse(call_, "not done after {} ms; it goes on", timeout.count());
      piece = std::min<std::chrono::nanoseconds>(piece, left);
    }
    if (!operation_->wait_for(piece)) check_signals();
  }
  if (const std::exception_ptr failure = exception()) std::rethrow_exception(failure);
  return true;
}

c10::intrusive_ptr<c10::ivalue::Future> GroupWork::getFuture() {
  {
    const std::lock_guard lock(future_mutex_);
    if (future_) return future_;
    future_ = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
    if (!is_done_.load(std::memory_order_acquire)) {
      // conclude completes it.
    } else if (const std::exception_ptr failure = exception()) {
      future_->setError(failure);
    } else {
      future_->markCompleted(c10::IValue(outputs));
    }
  }
  if (!is_done_.load(std::memory_order_acquire)) operation_->attend();
  return future_;
}

}  // namespace tutti::bindings
