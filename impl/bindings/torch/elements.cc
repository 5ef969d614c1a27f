// SPDX-License-Identifier: Apache-2.0
#include "impl/bindings/torch/elements.h"

#include "impl/bindings/torch/failure.h"

namespace tutti::bindings {
namespace {

using Reduce = c10d::ReduceOp;

Reduce::RedOpType kind_of(const Reduce& op) { return static_cast<Reduce::RedOpType>(op); }

std::string_view name_of(const Reduce& op) {
  switch (kind_of(op)) {
    case Reduce::SUM:
      return "SUM";
    case Reduce::AVG:
      return "AVG";
    case Reduce::PRODUCT:
      return "PRODUCT";
    case Reduce::MIN:
      return "MIN";
    case Reduce::MAX:
      return "MAX";
    case Reduce::BAND:
      return "BAND";
    case Reduce::BOR:
      return "BOR";
    case Reduce::BXOR:
      return "BXOR";
    case Reduce::PREMUL_SUM:
      return "PREMUL_SUM";
    default:
      return "an unknown ReduceOp";
  }
}

Op plain_op_of(const Reduce& op) {
  switch (kind_of(op)) {
    case Reduce::SUM:
      return Op::sum;
    case Reduce::AVG:
      return Op::avg;
    case Reduce::PRODUCT:
      return Op::prod;
    case Reduce::MIN:
      return Op::min;
    case Reduce::MAX:
      return Op::max;
    case Reduce::BAND:
      return Op::band;
    case Reduce::BOR:
      return Op::bor;
    case Reduce::BXOR:
      return Op::bxor;
    case Reduce::PREMUL_SUM:
      return Op::premul_sum;
    default:
      return Op::none;
  }
}

// A product of bools is "all", as the smallest of them is.
Op bool_op_of(const Reduce& op) {
  const Op plain = plain_op_of(op);
  return plain == Op::prod ? Op::min : plain;
}

// What acts on both parts of a complex number as on the whole.
bool acts_on_parts(Op op) { return op == Op::sum || op == Op::avg; }

}  // namespace

Elements elements_of(std::string_view call, at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return {Dtype::f32};
    case at::kDouble:
      return {Dtype::f64};
    case at::kHalf:
      return {Dtype::f16};
    case at::kBFloat16:
      return {Dtype::bf16};
    case at::kChar:
      return {Dtype::i8};
    case at::kByte:
      return {Dtype::u8};
    case at::kInt:
      return {Dtype::i32};
    case at::kLong:
      return {Dtype::i64};
    case at::kBool:
      return {Dtype::boolean};
    case at::kShort:
      return {Dtype::i16};
    case at::kComplexHalf:
      return {.dtype = Dtype::f16, .factor = 2};
    case at::kComplexFloat:
      return {.dtype = Dtype::f32, .factor = 2};
    case at::kComplexDouble:
      return {.dtype = Dtype::f64, .factor = 2};
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 1)
    case at::kFloat8_e4m3fn:
      return {Dtype::f8e4m3};
    case at::kFloat8_e5m2:
      return {Dtype::f8e5m2};
#endif
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 3)
    case at::kUInt16:
      return {Dtype::u16};
    case at::kUInt32:
      return {Dtype::u32};
    case at::kUInt64:
      return {Dtype::u64};
#endif
    default:
      refuse(call, "no dtype for tensors of {}: convert them, for example to float", c10::toString(type));
  }
}

Reduced reduced(std::string_view call, const c10d::ReduceOp& op, at::ScalarType type) {
  const Elements elements = elements_of(call, type);
  const bool is_bool = type == at::kBool;
  const Op found = is_bool ? bool_op_of(op) : plain_op_of(op);
  // As bytes, which are zero or one.
  if (is_bool && found == Op::bxor) return {.op = Op::bxor, .dtype = Dtype::u8};
  if (found == Op::none || (at::isComplexType(type) && !acts_on_parts(found)) || !op_exists(found, elements.dtype)) {
    refuse(call, "Cannot use ReduceOp.{} with tensors of {}", name_of(op), c10::toString(type));
  }
  return {.op = found, .dtype = elements.dtype};
}

Tensor factor_of(std::string_view call, const c10d::ReduceOp& op, at::ScalarType type) {
  if (kind_of(op) != Reduce::PREMUL_SUM) return {};
  const auto* supplement = dynamic_cast<const c10d::NCCLPreMulSumSupplement*>(op.supplement_.get());
  if (supplement == nullptr) refuse(call, "PREMUL_SUM without its factor: see torch.distributed._make_nccl_premul_sum");
#if TORCH_VERSION_MAJOR >= 2
  const Tensor given = supplement->tensor_factor;
#else
  const Tensor given = supplement->tensor_factors.empty() ? Tensor() : supplement->tensor_factors.front();
#endif
  if (!given.defined()) return at::full({1}, supplement->double_factor, type);
  if (given.numel() != 1) refuse(call, "PREMUL_SUM multiplies by one number, not by a tensor of {}", given.numel());
  return given.detach().reshape({1}).to(at::kCPU, type).contiguous();
}

}  // namespace tutti::bindings
