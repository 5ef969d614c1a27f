// SPDX-License-Identifier: Apache-2.0
// torch's dtypes and reductions as those of tutti.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "impl/bindings/torch/torch.h"
#include "impl/collective/collective.h"
#include "impl/types/dtype.h"
#include "impl/types/op.h"

namespace tutti::bindings {

/// What an element of torch is to tutti.
struct Elements {
  Dtype dtype = Dtype::u8;
  Count factor = 1;  ///< elements of `dtype` in one of torch: a complex number is two
};

/// Throws, naming the dtype, where tutti has none for it.
[[nodiscard]] Elements elements_of(std::string_view call, at::ScalarType type);

/// How elements are reduced, and as which.
struct Reduced {
  Op op = Op::none;
  Dtype dtype = Dtype::u8;
};

/// Throws, naming both, where there is no such reduction of these elements.
[[nodiscard]] Reduced reduced(std::string_view call, const c10d::ReduceOp& op, at::ScalarType type);

/// PREMUL_SUM: the factor, one element of `type`. Undefined for other reductions.
[[nodiscard]] Tensor factor_of(std::string_view call, const c10d::ReduceOp& op, at::ScalarType type);

}  // namespace tutti::bindings
