// SPDX-License-Identifier: Apache-2.0
// A process group of torch.distributed whose calls are collectives of tutti. README.md: what differs from Gloo.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "impl/bindings/torch/lists.h"
#include "impl/bindings/torch/meeting.h"
#include "impl/bindings/torch/record.h"
#include "impl/bindings/torch/torch.h"
#include "impl/bindings/torch/work.h"
#include "impl/embed/world.h"

namespace tutti::bindings {

/// Every call checks what can be checked on this rank, throws if that is wrong, and otherwise posts. Of what fails
/// later Work::wait throws. The calls of all ranks are to come in one order; those of a rank from any thread.
class ProcessGroup final : public GroupBase {
 public:
  using Pointer = c10::intrusive_ptr<c10d::Work>;

  /// All ranks of the store call it; returns when all have. `name` begins messages, and what torch's profiler shows.
  ProcessGroup(const StorePointer& store, int rank, int size, milliseconds timeout, std::string name,
               const Members& members = {});
  ~ProcessGroup() override;
  [[nodiscard]] const std::shared_ptr<embed::World>& world() const { return world_; }

  /// Whatever the name: torch takes one that says "gloo" for Gloo's own class.
  const std::string getBackendName() const override { return "tutti"; }

  Pointer broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  Pointer allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  Pointer allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override;
  Pointer reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  Pointer allgather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
  Pointer allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                              const c10d::AllgatherOptions& options) override;
  Pointer _allgather_base(Tensor& output, Tensor& input, const c10d::AllgatherOptions& options) override;
  Pointer gather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::GatherOptions& options) override;
  Pointer scatter(Tensors& outputs, std::vector<Tensors>& inputs, const c10d::ScatterOptions& options) override;
  Pointer reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                         const c10d::ReduceScatterOptions& options) override;
  Pointer _reduce_scatter_base(Tensor& output, Tensor& input, const c10d::ReduceScatterOptions& options) override;
  Pointer alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) override;
  Pointer alltoall_base(Tensor& output, Tensor& input, std::vector<std::int64_t>& output_splits,
                        std::vector<std::int64_t>& input_splits, const c10d::AllToAllOptions& options) override;
  Pointer barrier(const c10d::BarrierOptions& options) override;
  /// Over the store, so that it says who is missing. torch's own function takes the backend gloo alone.
  void monitoredBarrier(const c10d::BarrierOptions& options, bool waits_for_all) override;

  Pointer send(Tensors& tensors, int to, int tag) override;
  Pointer recv(Tensors& tensors, int from, int tag) override;
  Pointer recvAnysource(Tensors& tensors, int tag) override;

  /// For which ranks the others wait, by the calls in which all ranks do the same, the last `CallTimes::kKept` of them;
  /// the costliest rank first. All ranks call it. `calls`: how many were looked at.
  [[nodiscard]] std::vector<embed::Straggler> stragglers(std::int64_t& calls);

  void setSequenceNumberForGroup() override {}
  std::uint64_t getSequenceNumberForGroup() override { return collectives_.load(); }

  // Calls between the two are calls like others.
  void startCoalescing() override;
#if TORCH_VERSION_MAJOR >= 2
  /// One Work for all of them.
  Pointer endCoalescing() override;
  Pointer allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  Pointer allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions& options) override;
  Pointer reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& options) override;
#endif

 private:
  /// `call`: its name after the group's.
  [[nodiscard]] WorkPointer begin(c10d::OpType type, std::string_view call, const Tensors& inputs);
  [[nodiscard]] WorkPointer begin_message(c10d::OpType type, std::string_view call, const Tensors& inputs);
  /// `post` gives the operation of the world. Throws what it says.
  template <class Post>
  Pointer start(const WorkPointer& work, embed::OperationOptions options, const Post& post);
  Pointer start(const WorkPointer& work, milliseconds timeout, const Call& call);
  Pointer start(const WorkPointer& work, milliseconds timeout, std::vector<Call> calls);
  Pointer start(const WorkPointer& work, milliseconds timeout, std::vector<CallOfLists> calls);
  /// Before `call` is posted.
  template <class AnyCall>
  void record(GroupWork& work, const AnyCall& call) {
    if (recorder_ == nullptr) return;
    work.recorder = recorder_;
    recorder_->note(call, size_);
  }
  [[nodiscard]] Call reduction(GroupWork& work, Collective collective, const c10d::ReduceOp& op, const Tensor& like);
  [[nodiscard]] Call all_gather_call(GroupWork& work, const Tensor& output, const Tensor& input);
  [[nodiscard]] Call reduce_scatter_call(GroupWork& work, const c10d::ReduceOp& op, const Tensor& output,
                                         const Tensor& input);
  [[nodiscard]] CallOfLists gather_call(GroupWork& work, Collective collective, int root, const Tensors* outputs,
                                        const Tensor& input);
  /// Where the tensors of a call are to lie, of which `least` is the smallest on all ranks. Before they are named.
  /// Calls with lists are v forms, whose algorithms are as fast with private buffers.
  [[nodiscard]] Buffers buffers_for(GroupWork& work, Collective collective, const Tensor& least) const;
  [[nodiscard]] int root_of(const GroupWork& work, std::int64_t root) const;
  Pointer sum_sparse(const Tensor& tensor, const c10d::AllreduceOptions& options);
  void wait_for_root(milliseconds timeout, const std::string& keys);
  void wait_for_ranks(milliseconds timeout, const std::string& keys, bool waits_for_all);

  const std::string name_;
  const milliseconds timeout_;
  const StorePointer store_;
  const std::shared_ptr<embed::World> world_;
  const std::shared_ptr<CallTimes> times_ = std::make_shared<CallTimes>();
  Recorder* const recorder_;  // null: the calls of this group are not recorded
  std::atomic<std::uint64_t> collectives_{0};
  std::uint64_t monitored_barriers_ = 0;
#if TORCH_VERSION_MAJOR >= 2
  bool is_coalescing_ = false;
  std::vector<Pointer> coalesced_;
#endif
};

}  // namespace tutti::bindings
