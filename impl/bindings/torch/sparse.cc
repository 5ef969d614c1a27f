// SPDX-License-Identifier: Apache-2.0
// The sum of sparse tensors: how many elements each rank has, then where they are and what they are, then the sum.
#include <memory>

#include "impl/bindings/torch/elements.h"
#include "impl/bindings/torch/failure.h"
#include "impl/bindings/torch/process_group.h"
#include "impl/bindings/torch/start.h"

namespace tutti::bindings {
namespace {

// Its tensors are made while the operation moves, by whichever thread moves it.
class SparseSum {
 public:
  SparseSum(const Tensor& tensor, Elements elements, int rank, int ranks)
      : own_(tensor.detach().coalesce()),
        indices_(own_.indices().contiguous()),
        values_(own_.values().contiguous()),
        elements_(elements),
        rank_(static_cast<std::size_t>(rank)),
        counts_(static_cast<std::size_t>(ranks)) {
    counts_[rank_] = own_._nnz();
  }

  Result<bool> advance(Communicator& communicator, std::vector<tutti::Work>& works) {
    if (!knows_counts_) {
      TUTTI_ASSIGN_OR_RETURN(tutti::Work counts, communicator.post({.collective = Collective::all_gather,
                                                                    .dtype = Dtype::i64,
                                                                    .count = 1,
                                                                    .input = &counts_[rank_],
                                                                    .output = counts_.data(),
                                                                    .is_in_place = true}));
      works.push_back(counts);
      knows_counts_ = true;
      return false;
    }
    try {
      make_room();
    } catch (const std::exception& failure) {
      return error(Code::resource, "no room for the elements of all ranks: {}", failure.what());
    }
    TUTTI_ASSIGN_OR_RETURN(tutti::Work indices, gather(communicator, indices_, all_indices_, {Dtype::i64}));
    works.push_back(indices);
    TUTTI_ASSIGN_OR_RETURN(tutti::Work values, gather(communicator, values_, all_values_, elements_));
    works.push_back(values);
    return true;
  }

  [[nodiscard]] Tensor sum() const {
    const at::NoGradGuard no_grad;
    return at::sparse_coo_tensor(at::cat(all_indices_, 1), at::cat(all_values_, 0), own_.sizes(), own_.options())
        .coalesce();
  }

 private:
  void make_room() {
    for (const std::int64_t count : counts_) {
      std::vector<std::int64_t> shape = values_.sizes().vec();
      shape.front() = count;
      all_indices_.push_back(at::empty({own_.sparse_dim(), count}, indices_.options()));
      all_values_.push_back(at::empty(shape, values_.options()));
    }
  }
  static Result<tutti::Work> gather(Communicator& communicator, const Tensor& own, const Tensors& all,
                                    Elements elements) {
    CallOfLists lists{
        .call = {.collective = Collective::all_gather_v, .dtype = elements.dtype, .input = own.data_ptr()}};
    for (const Tensor& one : all) {
      lists.outputs.push_back({.address = one.data_ptr(), .count = one.numel() * elements.factor});
    }
    return post(communicator, lists);
  }

  Tensor own_, indices_, values_;
  Elements elements_;
  std::size_t rank_;
  std::vector<std::int64_t> counts_;
  bool knows_counts_ = false;
  Tensors all_indices_, all_values_;
};

}  // namespace

ProcessGroup::Pointer ProcessGroup::sum_sparse(const Tensor& tensor, const c10d::AllreduceOptions& options) {
  const WorkPointer work = begin(c10d::OpType::ALLREDUCE, "sparse_all_reduce", {tensor});
  if (!tensor.device().is_cpu()) {
    refuse(work->call(), "a tensor on {}: this backend moves tensors of the CPU", tensor.device().str());
  }
  if (static_cast<c10d::ReduceOp::RedOpType>(options.reduceOp) != c10d::ReduceOp::SUM) {
    refuse(work->call(), "of sparse tensors there is only the SUM: pass tensor.to_dense() for another reduction");
  }
  const auto sum = std::make_shared<SparseSum>(tensor, elements_of(work->call(), tensor.scalar_type()), rank_, size_);
  work->outputs = {tensor};
  // The Work holds the tensors, for who lets go of the last one may need Python's lock.
  work->at_success = [sum, output = tensor] {
    const at::NoGradGuard no_grad;
    Tensor(output).copy_(sum->sum());
  };
  auto next = [sum = sum.get()](Communicator& communicator, std::vector<tutti::Work>& works) {
    return sum->advance(communicator, works);
  };
  return start(work, {.timeout = own_timeout(options.timeout)}, [&](embed::OperationOptions operation) {
    return world_->post(embed::Next(next), std::move(operation));
  });
}

#if TORCH_VERSION_MAJOR >= 2
ProcessGroup::Pointer ProcessGroup::allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) {
  if (tensors.size() != 1) refuse(name_ + ":sparse_all_reduce", "{} tensors, where one is taken", tensors.size());
  return sum_sparse(tensors.front(), options);
}
#endif

}  // namespace tutti::bindings
