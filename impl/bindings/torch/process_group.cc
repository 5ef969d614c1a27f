// SPDX-License-Identifier: Apache-2.0
// What all calls do, and those with one tensor for each rank.
#include "impl/bindings/torch/process_group.h"

#include "impl/bindings/torch/elements.h"
#include "impl/bindings/torch/failure.h"
#include "impl/bindings/torch/shared.h"
#include "impl/bindings/torch/start.h"
#include "impl/collective/alike.h"

namespace tutti::bindings {

#if TORCH_VERSION_MAJOR >= 2
namespace {

void check_pairs(const GroupWork& work, const Tensors& outputs, const Tensors& inputs) {
  if (outputs.size() != inputs.size()) refuse(work.call(), "{} outputs for {} inputs", outputs.size(), inputs.size());
}

}  // namespace
#endif

ProcessGroup::ProcessGroup(const StorePointer& store, int rank, int size, milliseconds timeout, std::string name,
                           const Members& members)
    : GroupBase(rank, size),
      name_(std::move(name)),
      timeout_(timeout),
      store_(store),
      world_(meet(store, rank, size, timeout, members)),
      recorder_(Recorder::of_process().for_group(rank)) {
#if TORCH_VERSION_MAJOR < 2
  init();
#endif
}

ProcessGroup::~ProcessGroup() { world_->leave(); }

WorkPointer ProcessGroup::begin(c10d::OpType type, std::string_view call, const Tensors& inputs) {
  collectives_.fetch_add(1, std::memory_order_relaxed);
  return begin_message(type, call, inputs);
}

WorkPointer ProcessGroup::begin_message(c10d::OpType type, std::string_view call, const Tensors& inputs) {
  return c10::make_intrusive<GroupWork>(rank_, type, fmt::format("{}:{}", name_, call), inputs);
}

ProcessGroup::Pointer ProcessGroup::start(const WorkPointer& work, milliseconds timeout, const Call& call) {
  record(*work, call);
  if (ranks_are_alike(call.collective)) {
    work->times = times_;
    work->number = times_->begin();
  }
  return start(work, {.timeout = own_timeout(timeout)},
               [&](embed::OperationOptions options) { return world_->post(call, std::move(options)); });
}

ProcessGroup::Pointer ProcessGroup::start(const WorkPointer& work, milliseconds timeout, std::vector<Call> calls) {
  for (const Call& call : calls) record(*work, call);
  auto next = [calls = std::move(calls)](Communicator& communicator, std::vector<tutti::Work>& works) -> Result<bool> {
    for (const Call& call : calls) {
      TUTTI_ASSIGN_OR_RETURN(tutti::Work posted,
                             communicator.post(placed_where_it_lies(call, communicator.rank(), communicator.ranks())));
      works.push_back(posted);
    }
    return true;
  };
  return start(work, {.timeout = own_timeout(timeout)}, [&](embed::OperationOptions options) {
    return world_->post(embed::Next(std::move(next)), std::move(options));
  });
}

int ProcessGroup::root_of(const GroupWork& work, std::int64_t root) const {
  if (root < 0 || root >= size_) refuse(work.call(), "root {} of a group of {} ranks", root, size_);
  return static_cast<int>(root);
}

Buffers ProcessGroup::buffers_for(GroupWork& work, Collective collective, const Tensor& least) const {
  const bool is_list = has_counts(collective);
  const bool is_one_way = collective == Collective::broadcast || collective == Collective::reduce;
  const bool shares =
      world_->has_arenas() && !is_list && least.nbytes() >= (is_one_way ? kLeastSharedOneWay : kLeastShared);
  work.tensors.lie_in(shares ? shared_memory() : nullptr);
  return shares ? Buffers::shared : Buffers::private_;
}

// `like`: the smaller one of its tensors.
Call ProcessGroup::reduction(GroupWork& work, Collective collective, const c10d::ReduceOp& op, const Tensor& like) {
  const auto [kind, dtype] = reduced(work.call(), op, like.scalar_type());
  Call call{.collective = collective,
            .dtype = dtype,
            .op = kind,
            .count = like.numel() * elements_of(work.call(), like.scalar_type()).factor,
            .buffers = buffers_for(work, collective, like)};
  if (const Tensor factor = factor_of(work.call(), op, like.scalar_type()); factor.defined()) {
    work.tensors.keep(factor);
    call.factor = factor.data_ptr();
  }
  return call;
}

ProcessGroup::Pointer ProcessGroup::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  const WorkPointer work = begin(c10d::OpType::BROADCAST, "broadcast", tensors);
  const Tensor& tensor = only(work->call(), tensors);
  const int root = root_of(*work, options.rootRank);
  const Elements elements = elements_of(work->call(), tensor.scalar_type());
  const Buffers buffers = buffers_for(*work, Collective::broadcast, tensor);
  void* const buffer = root == rank_ ? const_cast<void*>(work->tensors.input(tensor)) : work->tensors.output(tensor);
  work->outputs = tensors;
  return start(work, options.timeout,
               {.collective = Collective::broadcast,
                .dtype = elements.dtype,
                .root = root,
                .count = tensor.numel() * elements.factor,
                .input = buffer,
                .output = buffer,
                .buffers = buffers});
}

ProcessGroup::Pointer ProcessGroup::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  if (tensors.size() == 1 && tensors.front().is_sparse()) return sum_sparse(tensors.front(), options);
  const WorkPointer work = begin(c10d::OpType::ALLREDUCE, "all_reduce", tensors);
  const Tensor& tensor = only(work->call(), tensors);
  Call call = reduction(*work, Collective::all_reduce, options.reduceOp, tensor);
  call.input = call.output = work->tensors.in_place(tensor);
  work->outputs = tensors;
  return start(work, options.timeout, call);
}

ProcessGroup::Pointer ProcessGroup::allreduce_coalesced(Tensors& tensors,
                                                        const c10d::AllreduceCoalescedOptions& options) {
  const WorkPointer work = begin(c10d::OpType::ALLREDUCE_COALESCED, "all_reduce", tensors);
  std::vector<Call> calls;
  for (const Tensor& tensor : tensors) {
    check_dense(work->call(), tensor);
    Call& call = calls.emplace_back(reduction(*work, Collective::all_reduce, options.reduceOp, tensor));
    call.input = call.output = work->tensors.in_place(tensor);
  }
  work->outputs = tensors;
  return start(work, options.timeout, std::move(calls));
}

ProcessGroup::Pointer ProcessGroup::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  const WorkPointer work = begin(c10d::OpType::REDUCE, "reduce", tensors);
  const Tensor& tensor = only(work->call(), tensors);
  Call call = reduction(*work, Collective::reduce, options.reduceOp, tensor);
  call.root = root_of(*work, options.rootRank);
  if (call.root == rank_) {
    call.input = call.output = work->tensors.in_place(tensor);
  } else {
    call.input = work->tensors.input(tensor);
  }
  work->outputs = tensors;
  return start(work, options.timeout, call);
}

Call ProcessGroup::all_gather_call(GroupWork& work, const Tensor& output, const Tensor& input) {
  check_dense(work.call(), output);
  check_dense(work.call(), input);
  if (output.scalar_type() != input.scalar_type()) {
    refuse(work.call(), "output tensor must have the same type as input tensor: {} and {}",
           c10::toString(output.scalar_type()), c10::toString(input.scalar_type()));
  }
  if (output.numel() != input.numel() * size_) {
    refuse(work.call(), "output tensor size must be equal to world_size times input tensor size: {} is not {} x {}",
           output.numel(), size_, input.numel());
  }
  const Elements elements = elements_of(work.call(), input.scalar_type());
  const Buffers buffers = buffers_for(work, Collective::all_gather, input);
  auto* const to = static_cast<char*>(work.tensors.output(output));
  const std::int64_t bytes = input.numel() * input.element_size();
  return {.collective = Collective::all_gather,
          .dtype = elements.dtype,
          .count = input.numel() * elements.factor,
          .input = work.tensors.input(input, to + rank_ * bytes),
          .output = to,
          .buffers = buffers};
}

ProcessGroup::Pointer ProcessGroup::_allgather_base(Tensor& output, Tensor& input,
                                                    const c10d::AllgatherOptions& options) {
  const WorkPointer work = begin(c10d::OpType::_ALLGATHER_BASE, "_all_gather_base", {input});
  const Call call = all_gather_call(*work, output, input);
  work->outputs = {output};
  return start(work, options.timeout, call);
}

Call ProcessGroup::reduce_scatter_call(GroupWork& work, const c10d::ReduceOp& op, const Tensor& output,
                                       const Tensor& input) {
  check_dense(work.call(), output);
  check_dense(work.call(), input);
  if (output.scalar_type() != input.scalar_type()) {
    refuse(work.call(), "input tensor must be the same type as the output tensor: {} and {}",
           c10::toString(input.scalar_type()), c10::toString(output.scalar_type()));
  }
  if (input.numel() != output.numel() * size_) {
    refuse(work.call(), "input tensor must be the same size as output size times world size: {} is not {} x {}",
           input.numel(), output.numel(), size_);
  }
  Call call = reduction(work, Collective::reduce_scatter, op, output);
  auto* const to = static_cast<char*>(work.tensors.output(output));
  const std::int64_t bytes = output.numel() * output.element_size();
  call.output = to;
  call.input = work.tensors.input(input, to - rank_ * bytes);
  return call;
}

ProcessGroup::Pointer ProcessGroup::_reduce_scatter_base(Tensor& output, Tensor& input,
                                                         const c10d::ReduceScatterOptions& options) {
  const WorkPointer work = begin(c10d::OpType::_REDUCE_SCATTER_BASE, "_reduce_scatter_base", {input});
  const Call call = reduce_scatter_call(*work, options.reduceOp, output, input);
  work->outputs = {output};
  return start(work, options.timeout, call);
}

#if TORCH_VERSION_MAJOR >= 2
ProcessGroup::Pointer ProcessGroup::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                                    const c10d::AllgatherOptions& options) {
  const WorkPointer work = begin(c10d::OpType::COALESCED, "_all_gather_base", inputs);
  check_pairs(*work, outputs, inputs);
  std::vector<Call> calls;
  for (std::size_t i = 0; i < inputs.size(); ++i) calls.push_back(all_gather_call(*work, outputs[i], inputs[i]));
  work->outputs = outputs;
  return start(work, options.timeout, std::move(calls));
}

ProcessGroup::Pointer ProcessGroup::reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                                    const c10d::ReduceScatterOptions& options) {
  const WorkPointer work = begin(c10d::OpType::COALESCED, "_reduce_scatter_base", inputs);
  check_pairs(*work, outputs, inputs);
  std::vector<Call> calls;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    calls.push_back(reduce_scatter_call(*work, options.reduceOp, outputs[i], inputs[i]));
  }
  work->outputs = outputs;
  return start(work, options.timeout, std::move(calls));
}
#endif

ProcessGroup::Pointer ProcessGroup::barrier(const c10d::BarrierOptions& options) {
  return start(begin(c10d::OpType::BARRIER, "barrier", {}), options.timeout, Call{.collective = Collective::barrier});
}

}  // namespace tutti::bindings
