// SPDX-License-Identifier: Apache-2.0
// Calls whose blocks are tensors of a list, wherever they lie.
#pragma once

#include <vector>

#include "impl/communicator/communicator.h"

namespace tutti::bindings {

/// A v form with P parts in place of a divided buffer. The other operand is that of the call.
struct CallOfLists {
  Call call;
  std::vector<ConstPart> inputs;  // empty: the call's input is one tensor
  std::vector<Part> outputs;      // empty: the call's output is
};

[[nodiscard]] inline Result<Work> post(Communicator& communicator, const CallOfLists& call) {
  return communicator.post_list(call.call, call.inputs, call.outputs);
}

}  // namespace tutti::bindings
