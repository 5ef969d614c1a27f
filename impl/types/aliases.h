// SPDX-License-Identifier: Apache-2.0
// What else people call dtypes and ops: parse_dtype and parse_op read these names too, rows and ids never have them.
// Names with blanks between them; of ways to write one that is_same_name takes for the same, one. Empty where there is
// none.
#pragma once

#include <string_view>

#include "impl/types/dtype.h"
#include "impl/types/op.h"

namespace tutti {

[[nodiscard]] std::string_view aliases_of(Dtype dtype);
[[nodiscard]] std::string_view aliases_of(Op op);

}  // namespace tutti
