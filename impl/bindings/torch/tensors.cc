// SPDX-License-Identifier: Apache-2.0
#include "impl/bindings/torch/tensors.h"

#include <ATen/MemoryOverlap.h>
#include <algorithm>
#include <c10/core/InferenceMode.h>

#include "impl/bindings/torch/failure.h"

namespace tutti::bindings {
namespace {

// Whether the bytes are the elements, one after the other.
bool is_plain(const Tensor& tensor) { return tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg(); }

std::size_t bytes_of(const Tensor& tensor) {
  return static_cast<std::size_t>(tensor.numel()) * static_cast<std::size_t>(tensor.element_size());
}

Tensor plain_copy(const Tensor& tensor) {
  return tensor.detach().resolve_conj().resolve_neg().clone(at::MemoryFormat::Contiguous);
}

}  // namespace

void check_dense(std::string_view call, const Tensor& tensor) {
  if (!tensor.defined()) refuse(call, "an undefined tensor");
  if (!tensor.device().is_cpu()) {
    refuse(
        call,
        "a tensor on {}: this backend moves tensors of the CPU; pass tensor.cpu() and copy the result back, or make a "
        "group with the backend nccl for it",
        tensor.device().str());
  }
  if (tensor.layout() != at::kStrided) {
    refuse(call, "a tensor of layout {}, where only dense ones are taken: pass tensor.to_dense()",
           c10::str(tensor.layout()));
  }
}

const Tensor& only(std::string_view call, const Tensors& tensors) {
  if (tensors.size() != 1) refuse(call, "{} tensors, where one is taken for each rank", tensors.size());
  check_dense(call, tensors.front());
  return tensors.front();
}

bool TensorsOfCall::overlaps_an_output(const Range& range) const {
  return std::any_of(outputs_.begin(), outputs_.end(),
                     [&](const Range& output) { return range.begin < output.end && output.begin < range.end; });
}

void* TensorsOfCall::write(const Tensor& tensor, bool is_read) {
  if (at::has_internal_overlap(tensor) == at::MemOverlap::Yes) {
    throw std::runtime_error("tutti: an output of which several elements are one in memory: pass tensor.clone()");
  }
  auto* address = static_cast<char*>(tensor.data_ptr());
  const Range range{.begin = address, .end = address + bytes_of(tensor)};
  if (is_plain(tensor) && lies_well(range) && !overlaps_an_output(range)) {
    kept_.push_back(tensor);
    outputs_.push_back(range);
    return address;
  }
  Tensor copy = is_read ? plain_copy(tensor)
                        : at::empty(tensor.sizes(), tensor.options().memory_format(at::MemoryFormat::Contiguous));
  copies_.emplace_back(tensor, copy);
  return checked(copy);
}

void* TensorsOfCall::checked(const Tensor& copy) const {
  void* const address = copy.data_ptr();
  if (lies_well(address, bytes_of(copy))) return address;
  throw std::runtime_error(
      fmt::format("tutti: no room for {} bytes in the memory that ranks share (TUTTI_TORCH_SHARED)", bytes_of(copy)));
}

const void* TensorsOfCall::input(const Tensor& tensor, const void* may_lie_at) {
  const auto* address = static_cast<const char*>(tensor.data_ptr());
  const Range range{.begin = address, .end = address + bytes_of(tensor)};
  const bool is_usable = is_plain(tensor) && lies_well(range) && (address == may_lie_at || !overlaps_an_output(range));
  kept_.push_back(is_usable ? tensor : plain_copy(tensor));
  return checked(kept_.back());
}

void TensorsOfCall::copy_back() {
  if (copies_.empty()) return;
  const at::NoGradGuard no_grad;
  for (auto& [output, copy] : copies_) {
    const c10::InferenceMode mode(output.is_inference());
    output.copy_(copy);
  }
}

void TensorsOfCall::release() {
  kept_.clear();
  copies_.clear();
  outputs_.clear();
}

void TensorsOfCall::release_after_failure() {
  if (are_shared_) (void)new TensorsOfCall(std::move(*this));  // for good
  release();
}

}  // namespace tutti::bindings
