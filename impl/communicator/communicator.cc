// SPDX-License-Identifier: Apache-2.0
#include "impl/communicator/communicator.h"

namespace tutti {

Result<bool> Work::test() { return communicator_->test(ticket_); }
Status Work::wait(std::chrono::nanoseconds timeout) { return communicator_->wait(ticket_, timeout); }
Status Work::wait() { return communicator_->wait(ticket_, communicator_->timeout()); }
Result<bool> Work::wait_for(std::chrono::nanoseconds timeout) { return communicator_->wait_for(ticket_, timeout); }
std::string Work::position() const { return communicator_->position(ticket_); }
std::string Work::report() const { return communicator_->report(); }

Status Communicator::broadcast(const void* input, void* output, Count count, Dtype dtype, int root, Buffers buffers) {
  return run_where_it_lies({.collective = Collective::broadcast,
                            .dtype = dtype,
                            .root = root,
                            .count = count,
                            .input = input,
                            .output = output,
                            .buffers = buffers});
}

Status Communicator::reduce(const void* input, void* output, Count count, Dtype dtype, Reduction reduction, int root,
                            Buffers buffers) {
  return run_where_it_lies({.collective = Collective::reduce,
                            .dtype = dtype,
                            .op = reduction.op,
                            .root = root,
                            .count = count,
                            .input = input,
                            .output = output,
                            .factor = reduction.factor,
                            .buffers = buffers});
}

Status Communicator::all_reduce(const void* input, void* output, Count count, Dtype dtype, Reduction reduction,
                                Buffers buffers) {
  return run_where_it_lies({.collective = Collective::all_reduce,
                            .dtype = dtype,
                            .op = reduction.op,
                            .count = count,
                            .input = input,
                            .output = output,
                            .factor = reduction.factor,
                            .buffers = buffers});
}

Status Communicator::gather(const void* input, void* output, Count count, Dtype dtype, int root, Buffers buffers) {
  return run_where_it_lies({.collective = Collective::gather,
                            .dtype = dtype,
                            .root = root,
                            .count = count,
                            .input = input,
                            .output = output,
                            .buffers = buffers});
}

Status Communicator::all_gather(const void* input, void* output, Count count, Dtype dtype, Buffers buffers) {
  return run_where_it_lies({.collective = Collective::all_gather,
                            .dtype = dtype,
                            .count = count,
                            .input = input,
                            .output = output,
                            .buffers = buffers});
}

Status Communicator::scatter(const void* input, void* output, Count count, Dtype dtype, int root, Buffers buffers) {
  return run_where_it_lies({.collective = Collective::scatter,
                            .dtype = dtype,
                            .root = root,
                            .count = count,
                            .input = input,
                            .output = output,
                            .buffers = buffers});
}

Status Communicator::reduce_scatter(const void* input, void* output, Count count, Dtype dtype, Reduction reduction,
                                    Buffers buffers) {
  return run_where_it_lies({.collective = Collective::reduce_scatter,
                            .dtype = dtype,
                            .op = reduction.op,
                            .count = count,
                            .input = input,
                            .output = output,
                            .factor = reduction.factor,
                            .buffers = buffers});
}

Status Communicator::all_to_all(const void* input, void* output, Count count, Dtype dtype, Buffers buffers) {
  return run_where_it_lies({.collective = Collective::all_to_all,
                            .dtype = dtype,
                            .count = count,
                            .input = input,
                            .output = output,
                            .buffers = buffers});
}

Status Communicator::scan(const void* input, void* output, Count count, Dtype dtype, Reduction reduction,
                          Buffers buffers) {
  return run_where_it_lies({.collective = Collective::scan,
                            .dtype = dtype,
                            .op = reduction.op,
                            .count = count,
                            .input = input,
                            .output = output,
                            .factor = reduction.factor,
                            .buffers = buffers});
}

Status Communicator::exscan(const void* input, void* output, Count count, Dtype dtype, Reduction reduction,
                            Buffers buffers) {
  return run_where_it_lies({.collective = Collective::exscan,
                            .dtype = dtype,
                            .op = reduction.op,
                            .count = count,
                            .input = input,
                            .output = output,
                            .factor = reduction.factor,
                            .buffers = buffers});
}

Status Communicator::send(const void* buffer, Count count, Dtype dtype, int peer, int tag) {
  TUTTI_ASSIGN_OR_RETURN(Work work, post_send(buffer, count, dtype, peer, tag));
  return work.wait();
}

Status Communicator::recv(void* buffer, Count count, Dtype dtype, int peer, int tag) {
  TUTTI_ASSIGN_OR_RETURN(Work work, post_recv(buffer, count, dtype, peer, tag));
  return work.wait();
}

Result<std::optional<Message>> Communicator::probe(int /*peer*/, std::optional<int> /*tag*/) {
  return error(Code::unavailable, "messages of thread blocks cannot be probed: they come when both ends are posted");
}

bool Communicator::cancel(const Work& receive) {
  return receive.ticket_.kind == Ticket::Kind::receive && take_back(receive.ticket_);
}

Result<std::unique_ptr<Communicator>> Communicator::split(int colour, int key) {
  TUTTI_ASSIGN_OR_RETURN(const auto formation, post_split(colour, key));
  TUTTI_RETURN_IF_ERROR(formation->wait(timeout()));
  return formation->take();
}

Result<std::unique_ptr<Communicator>> Communicator::new_group(std::span<const int> ranks) {
  TUTTI_ASSIGN_OR_RETURN(const auto formation, post_new_group(ranks));
  TUTTI_RETURN_IF_ERROR(formation->wait(timeout()));
  return formation->take();
}

Status Communicator::begin_capture() {
  return error(Code::unavailable, "calls are captured where ranks are thread blocks, and nowhere else");
}
Result<std::unique_ptr<CapturedCalls>> Communicator::end_capture() { return Communicator::begin_capture(); }
Result<Work> Communicator::post_captured(CapturedCalls& /*calls*/) { return Communicator::begin_capture(); }

Status Communicator::barrier() { return run({.collective = Collective::barrier}); }

}  // namespace tutti
