// SPDX-License-Identifier: Apache-2.0
// The tensors of one call: kept alive, and at addresses that tutti can use, until it is done.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "impl/bindings/torch/torch.h"
#include "impl/communicator/communicator.h"
#include "impl/embed/arena.h"

namespace tutti::bindings {

/// Throws, with what to write instead, unless the tensor is dense and on the CPU.
void check_dense(std::string_view call, const Tensor& tensor);
/// The one tensor of a list that c10d has for other backends' sake. Throws where there is another number, or it is not
/// dense.
[[nodiscard]] const Tensor& only(std::string_view call, const Tensors& tensors);

/// A contiguous tensor is used where it lies. Of another one there is a contiguous copy, from which outputs are copied
/// back in the end. Outputs are added before inputs, for an input that overlaps an output is copied, too.
class TensorsOfCall {
 public:
  /// What is named from now on is to lie in that memory, so a tensor that does not is copied, too. Null: anywhere.
  void lie_in(const embed::Arena* arena) {
    arena_ = arena;
    are_shared_ = are_shared_ || arena != nullptr;
  }
  /// Where a tensor's elements are to be written. Throws where two of its elements are one in memory.
  [[nodiscard]] void* output(const Tensor& tensor) { return write(tensor, false); }
  /// The same where they are read before.
  [[nodiscard]] void* in_place(const Tensor& tensor) { return write(tensor, true); }
  /// Where they are to be read. `may_lie_at`: the address at which the input may be a part of an output.
  [[nodiscard]] const void* input(const Tensor& tensor, const void* may_lie_at = nullptr);
  /// Lives as long as the others.
  void keep(const Tensor& tensor) { kept_.push_back(tensor); }

  /// To the outputs of which there are copies.
  void copy_back();
  /// Lets go of all.
  void release();
  /// The same after a call that has failed: a peer that does not know yet may write into shared ones, so they stay.
  void release_after_failure();

 private:
  struct Range {
    const char* begin = nullptr;
    const char* end = nullptr;
  };
  void* write(const Tensor& tensor, bool is_read);
  [[nodiscard]] bool overlaps_an_output(const Range& range) const;
  [[nodiscard]] bool lies_well(const void* address, std::size_t bytes) const {
    return arena_ == nullptr || bytes == 0 || arena_->holds(address, bytes);
  }
  [[nodiscard]] bool lies_well(const Range& range) const {
    return lies_well(range.begin, static_cast<std::size_t>(range.end - range.begin));
  }
  /// Throws unless it lies well.
  [[nodiscard]] void* checked(const Tensor& copy) const;

  const embed::Arena* arena_ = nullptr;
  bool are_shared_ = false;  // some of them
  Tensors kept_;
  std::vector<Range> outputs_;
  std::vector<std::pair<Tensor, Tensor>> copies_;  // the output, its copy
};

}  // namespace tutti::bindings
