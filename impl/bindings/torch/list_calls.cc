// SPDX-License-Identifier: Apache-2.0
// The calls with a list of tensors.
#include <algorithm>

#include "impl/bindings/torch/elements.h"
#include "impl/bindings/torch/process_group.h"
#include "impl/bindings/torch/start.h"

namespace tutti::bindings {
namespace {

void check_list(const GroupWork& work, const Tensors& list, int size, const Tensor& like) {
  if (static_cast<int>(list.size()) != size) {
    refuse(work.call(), "a list of {} tensors in a group of {} ranks", list.size(), size);
  }
  for (const Tensor& tensor : list) {
    check_dense(work.call(), tensor);
    if (tensor.scalar_type() != like.scalar_type()) {
      refuse(work.call(), "Invalid tensor type: {} in a list for {}", c10::toString(tensor.scalar_type()),
             c10::toString(like.scalar_type()));
    }
  }
}

const Tensors& only_list(const GroupWork& work, const std::vector<Tensors>& lists) {
  if (lists.size() != 1) refuse(work.call(), "{} lists, where one is taken", lists.size());
  return lists.front();
}

// The equal or given parts of a tensor's rows.
template <class P>
std::vector<P> rows_of(const GroupWork& work, const Tensor& tensor, void* address,
                       const std::vector<std::int64_t>& splits, int size, Count factor) {
  const std::int64_t rows = tensor.dim() > 0 ? tensor.size(0) : 1;
  const std::int64_t row = rows > 0 ? tensor.numel() / rows : 0;
  if (splits.empty() && rows % size != 0) {
    refuse(work.call(), "Tensor's dim 0 does not divide equally across group size: {} rows, {} ranks", rows, size);
  }
  if (!splits.empty() && static_cast<int>(splits.size()) != size) {
    refuse(work.call(), "Number of tensor splits not equal to group size: {} and {}", splits.size(), size);
  }
  std::vector<P> parts;
  std::int64_t at = 0;
  for (int rank = 0; rank < size; ++rank) {
    const std::int64_t part = splits.empty() ? rows / size : splits[static_cast<std::size_t>(rank)];
    if (part < 0) refuse(work.call(), "a split of {} rows", part);
    parts.push_back(
        {.address = static_cast<char*>(address) + at * row * tensor.element_size(), .count = part * row * factor});
    at += part;
  }
  if (at != rows) refuse(work.call(), "Split sizes doesn't match total dim 0 size: {} and {}", at, rows);
  return parts;
}

}  // namespace

ProcessGroup::Pointer ProcessGroup::start(const WorkPointer& work, milliseconds timeout,
                                          std::vector<CallOfLists> calls) {
  for (const CallOfLists& call : calls) record(*work, call);
  auto next = [calls = std::move(calls)](Communicator& communicator, std::vector<tutti::Work>& works) -> Result<bool> {
    for (const CallOfLists& call : calls) {
      TUTTI_ASSIGN_OR_RETURN(tutti::Work posted, post(communicator, call));
      works.push_back(posted);
    }
    return true;
  };
  return start(work, {.timeout = own_timeout(timeout)}, [&](embed::OperationOptions options) {
    return world_->post(embed::Next(std::move(next)), std::move(options));
  });
}

// One tensor of each rank to a list, which is null on ranks that have none.
CallOfLists ProcessGroup::gather_call(GroupWork& work, Collective collective, int root, const Tensors* outputs,
                                      const Tensor& input) {
  check_dense(work.call(), input);
  const Elements elements = elements_of(work.call(), input.scalar_type());
  CallOfLists made{.call = {.collective = collective, .dtype = elements.dtype, .root = root}};
  const auto own = static_cast<std::size_t>(rank_);
  if (outputs == nullptr) {
    made.outputs.assign(static_cast<std::size_t>(size_), {.count = input.numel() * elements.factor});
  } else {
    check_list(work, *outputs, size_, input);
    for (const Tensor& output : *outputs) {
      made.outputs.push_back({.address = work.tensors.output(output), .count = output.numel() * elements.factor});
    }
    if ((*outputs)[own].numel() != input.numel()) {
      refuse(work.call(), "this rank's tensor has {} elements, and its place in the list {}", input.numel(),
             (*outputs)[own].numel());
    }
  }
  made.call.input = work.tensors.input(input, made.outputs[own].address);
  return made;
}

ProcessGroup::Pointer ProcessGroup::allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                                              const c10d::AllgatherOptions& options) {
  const WorkPointer work = begin(c10d::OpType::ALLGATHER, "all_gather", inputs);
  const Tensors& list = only_list(*work, outputs);
  std::vector<CallOfLists> calls{gather_call(*work, Collective::all_gather_v, 0, &list, only(work->call(), inputs))};
  work->outputs = list;
  return start(work, options.timeout, std::move(calls));
}

// outputs[rank][i]: what inputs[i] is on a rank.
ProcessGroup::Pointer ProcessGroup::allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                                        const c10d::AllgatherOptions& options) {
  const WorkPointer work = begin(c10d::OpType::ALLGATHER_COALESCED, "all_gather", inputs);
  if (static_cast<int>(outputs.size()) != size_) {
    refuse(work->call(), "{} lists of outputs in a group of {} ranks", outputs.size(), size_);
  }
  std::vector<CallOfLists> calls;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Tensors list;
    for (const Tensors& of_rank : outputs) {
      if (of_rank.size() != inputs.size()) {
        refuse(work->call(), "a list of {} outputs for {} inputs", of_rank.size(), inputs.size());
      }
      list.push_back(of_rank[i]);
    }
    calls.push_back(gather_call(*work, Collective::all_gather_v, 0, &list, inputs[i]));
  }
  for (const Tensors& list : outputs) work->outputs.insert(work->outputs.end(), list.begin(), list.end());
  return start(work, options.timeout, std::move(calls));
}

ProcessGroup::Pointer ProcessGroup::gather(std::vector<Tensors>& outputs, Tensors& inputs,
                                           const c10d::GatherOptions& options) {
  const WorkPointer work = begin(c10d::OpType::GATHER, "gather", inputs);
  const int root = root_of(*work, options.rootRank);
  const Tensors* const list = root == rank_ ? &only_list(*work, outputs) : nullptr;
  std::vector<CallOfLists> calls{gather_call(*work, Collective::gather_v, root, list, only(work->call(), inputs))};
  if (list != nullptr) work->outputs = *list;
  return start(work, options.timeout, std::move(calls));
}

ProcessGroup::Pointer ProcessGroup::scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                            const c10d::ScatterOptions& options) {
  const WorkPointer work = begin(c10d::OpType::SCATTER, "scatter", outputs);
  const Tensor& output = only(work->call(), outputs);
  const Elements elements = elements_of(work->call(), output.scalar_type());
  const int root = root_of(*work, options.rootRank);
  CallOfLists made{.call = {.collective = Collective::scatter_v, .dtype = elements.dtype, .root = root}};
  made.call.output = work->tensors.output(output);
  if (root == rank_) {
    const Tensors& list = only_list(*work, inputs);
    check_list(*work, list, size_, output);
    for (std::size_t i = 0; i < list.size(); ++i) {
      const void* const may_lie_at = static_cast<int>(i) == rank_ ? made.call.output : nullptr;
      made.inputs.push_back(
          {.address = work->tensors.input(list[i], may_lie_at), .count = list[i].numel() * elements.factor});
    }
    if (list[static_cast<std::size_t>(rank_)].numel() != output.numel()) {
      refuse(work->call(), "this rank's tensor has {} elements, and its place in the list {}", output.numel(),
             list[static_cast<std::size_t>(rank_)].numel());
    }
  } else {
    made.inputs.assign(static_cast<std::size_t>(size_), {.count = output.numel() * elements.factor});
  }
  work->outputs = outputs;
  return start(work, options.timeout, std::vector<CallOfLists>{std::move(made)});
}

ProcessGroup::Pointer ProcessGroup::reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                                   const c10d::ReduceScatterOptions& options) {
  const WorkPointer work = begin(c10d::OpType::REDUCE_SCATTER, "reduce_scatter", outputs);
  const Tensor& output = only(work->call(), outputs);
  const Tensors& list = only_list(*work, inputs);
  check_list(*work, list, size_, output);
  const Count factor = elements_of(work->call(), output.scalar_type()).factor;
  CallOfLists made{.call = reduction(*work, Collective::reduce_scatter_v, options.reduceOp, output)};
  made.call.count = 0;
  made.call.output = work->tensors.output(output);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const void* const may_lie_at = static_cast<int>(i) == rank_ ? made.call.output : nullptr;
    made.inputs.push_back({.address = work->tensors.input(list[i], may_lie_at), .count = list[i].numel() * factor});
  }
  if (list[static_cast<std::size_t>(rank_)].numel() != output.numel()) {
    refuse(work->call(), "this rank's tensor has {} elements, and its place in the list {}", output.numel(),
           list[static_cast<std::size_t>(rank_)].numel());
  }
  work->outputs = outputs;
  return start(work, options.timeout, std::vector<CallOfLists>{std::move(made)});
}

ProcessGroup::Pointer ProcessGroup::alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) {
  const WorkPointer work = begin(c10d::OpType::ALLTOALL, "all_to_all", inputs);
  if (inputs.empty()) refuse(work->call(), "a list of no tensors in a group of {} ranks", size_);
  check_list(*work, inputs, size_, inputs.front());
  check_list(*work, outputs, size_, inputs.front());
  const Elements elements = elements_of(work->call(), inputs.front().scalar_type());
  CallOfLists made{.call = {.collective = Collective::all_to_all_v, .dtype = elements.dtype}};
  for (const Tensor& output : outputs) {
    made.outputs.push_back({.address = work->tensors.output(output), .count = output.numel() * elements.factor});
  }
  // In place is all of the list or nothing.
  const bool is_in_place =
      std::equal(inputs.begin(), inputs.end(), made.outputs.begin(), [&](const Tensor& in, const Part& out) {
        return in.data_ptr() == out.address && in.numel() * elements.factor == out.count;
      });
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    made.inputs.push_back({.address = work->tensors.input(inputs[i], is_in_place ? made.outputs[i].address : nullptr),
                           .count = inputs[i].numel() * elements.factor});
  }
  work->outputs = outputs;
  return start(work, options.timeout, std::vector<CallOfLists>{std::move(made)});
}

ProcessGroup::Pointer ProcessGroup::alltoall_base(Tensor& output, Tensor& input,
                                                  std::vector<std::int64_t>& output_splits,
                                                  std::vector<std::int64_t>& input_splits,
                                                  const c10d::AllToAllOptions& options) {
  const WorkPointer work = begin(c10d::OpType::ALLTOALL_BASE, "all_to_all", {input});
  check_dense(work->call(), output);
  check_dense(work->call(), input);
  if (output.scalar_type() != input.scalar_type()) {
    refuse(work->call(), "Tensors are not equal in data type: {} and {}", c10::toString(output.scalar_type()),
           c10::toString(input.scalar_type()));
  }
  const Elements elements = elements_of(work->call(), input.scalar_type());
  const bool is_even = output_splits.empty() && input_splits.empty();
  const Buffers buffers = is_even ? buffers_for(*work, Collective::all_to_all, input) : Buffers::private_;
  void* const to = work->tensors.output(output);
  void* const from = const_cast<void*>(work->tensors.input(input, output_splits == input_splits ? to : nullptr));
  CallOfLists made{.call = {.collective = Collective::all_to_all_v, .dtype = elements.dtype}};
  made.outputs = rows_of<Part>(*work, output, to, output_splits, size_, elements.factor);
  made.inputs = rows_of<ConstPart>(*work, input, from, input_splits, size_, elements.factor);
  work->outputs = {output};
  if (!is_even) {
    return start(work, options.timeout, std::vector<CallOfLists>{std::move(made)});
  }
  if (made.inputs.front().count != made.outputs.front().count) {
    refuse(work->call(), "the input has {} elements and the output {}", input.numel(), output.numel());
  }
  return start(work, options.timeout,
               Call{.collective = Collective::all_to_all,
                    .dtype = elements.dtype,
                    .count = made.inputs.front().count,
                    .input = from,
                    .output = to,
                    .buffers = buffers});
}

}  // namespace tutti::bindings
