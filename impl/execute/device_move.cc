// SPDX-License-Identifier: Apache-2.0
#include "impl/execute/device_move.h"

namespace tutti {
namespace {

template <class T>
DeviceMoveFunction move_of(Op op) {
  switch (op) {
#define TUTTI_ROW(id, name, domain)                                           \
  case Op::id:                                                                \
    if constexpr (op_exists_for<T>(Op::id)) return &move_elements<T, Op::id>; \
    break;
    TUTTI_OPS(TUTTI_ROW)
#undef TUTTI_ROW
    case Op::none:
      return &move_elements<T, Op::none>;
  }
  return nullptr;
}

}  // namespace

DeviceMoveFunction device_move_for(Dtype dtype, Op op) {
  TUTTI_ASSERT(op_exists(op, dtype), "{} of {}", to_string(op), to_string(dtype));
  return visit_dtype(dtype, [op]<class T>(std::type_identity<T>) { return move_of<T>(op); });
}

}  // namespace tutti
