// SPDX-License-Identifier: Apache-2.0
// A system under test that does its work in some calls only: what verification must not let pass. It exchanges the
// blocks of all_to_all between the ranks of one runner, when the last of them posts.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "suites/unit/harness/measure/plain_backend.h"

namespace tutti::harness::measure {

/// Whether call `number` (from 0, over the life of the prepared case) does its work.
using Works = std::function<bool(int number)>;

class LazyBackend final : public PlainBackend {
 public:
  explicit LazyBackend(Works works) : PlainBackend("lazy"), works_(std::move(works)) {}

  /// Called at the start of every call, working or not.
  void set_on_call(std::function<void()> on_call) { on_call_ = std::move(on_call); }
  [[nodiscard]] int calls() const { return *calls_; }
  [[nodiscard]] const std::vector<const void*>& outputs() const { return outputs_; }  ///< of the first rank, by call
  [[nodiscard]] const std::vector<RankBuffers>& buffers() const { return buffers_; }  ///< prepared last

  [[nodiscard]] Result<std::unique_ptr<Prepared>> prepare(const Case& one,
                                                          std::span<const RankBuffers> buffers) override {
    buffers_.assign(buffers.begin(), buffers.end());
    return std::unique_ptr<Prepared>(new Exchange(*this, one, buffers_));
  }

 private:
  class Exchange final : public Prepared {
   public:
    Exchange(LazyBackend& backend, const Case& one, std::vector<RankBuffers> buffers)
        : backend_(backend),
          block_(static_cast<std::size_t>(one.count) * size_of(one.dtype)),
          buffers_(std::move(buffers)) {}
    Status post(std::size_t index) override {
      if (index + 1 < buffers_.size()) return {};
      if (backend_.on_call_) backend_.on_call_();
      backend_.outputs_.push_back(buffers_.front().output);
      if (backend_.works_((*backend_.calls_)++)) exchange();
      return {};
    }
    Result<bool> test(std::size_t /*index*/) override { return true; }

   private:
    void exchange() {
      std::vector<std::vector<std::byte>> inputs;  // copies, since input and output may be one buffer
      for (const RankBuffers& rank : buffers_) {
        const auto* from = static_cast<const std::byte*>(rank.input);
        inputs.emplace_back(from, from + block_ * buffers_.size());
      }
      for (std::size_t to = 0; to < buffers_.size(); ++to) {
        for (std::size_t from = 0; from < inputs.size(); ++from) {
          std::memcpy(static_cast<std::byte*>(buffers_[to].output) + from * block_, inputs[from].data() + to * block_,
                      block_);
        }
      }
    }
    LazyBackend& backend_;
    std::size_t block_;
    std::vector<RankBuffers> buffers_;
  };

  Works works_;
  std::function<void()> on_call_;
  std::vector<RankBuffers> buffers_;
  std::vector<const void*> outputs_;
  std::shared_ptr<int> calls_ = std::make_shared<int>(0);
};

}  // namespace tutti::harness::measure
