// SPDX-License-Identifier: Apache-2.0
#include "impl/communicator/communicator.h"

namespace tutti {

Result<bool> Work::test() { return communicator_->test(ticket_); }
Status Work::wait(std::chrono::nanoseconds timeout) { return communicator_->wait(ticket_, timeout); }
std::string Work::position() const { return communicator_->position(ticket_); }

Status Communicator::all_reduce(const void* input, void* output, Count count, Dtype dtype, Op op, Buffers buffers) {
  return run({.collective = Collective::all_reduce,
              .dtype = dtype,
              .op = op,
              .count = count,
              .input = input,
              .output = output,
              .is_in_place = input == output,
              .buffers = buffers});
}

Status Communicator::broadcast(const void* input, void* output, Count count, Dtype dtype, int root, Buffers buffers) {
  return run({.collective = Collective::broadcast,
              .dtype = dtype,
              .root = root,
              .count = count,
              .input = input,
              .output = output,
              .is_in_place = input == output,
              .buffers = buffers});
}

Status Communicator::all_to_all(const void* input, void* output, Count count, Dtype dtype, Buffers buffers) {
  return run({.collective = Collective::all_to_all,
              .dtype = dtype,
              .count = count,
              .input = input,
              .output = output,
              .is_in_place = input == output,
              .buffers = buffers});
}

Status Communicator::barrier() { return run({.collective = Collective::barrier}); }

}  // namespace tutti
