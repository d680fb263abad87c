#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "python/backend/collectives.h"
#include "trireme/error.h"

namespace trireme::backend {
namespace {

void wait(const Call& call) {
  for (const transport::WorkPtr& work : call.works) {
    work->wait_for(std::chrono::milliseconds::max());
  }
  if (call.after) call.after();
}

/// Memory for all ranks' parts, of `counts` columns each.
Tensors columns(const at::Tensor& like, std::int64_t rows,
                const std::vector<std::int64_t>& counts) {
  Tensors parts;
  for (const std::int64_t count : counts) {
    parts.push_back(at::empty({rows, count}, like.options()));
  }
  return parts;
}

/// How many values each rank has. Throws where shapes differ.
std::vector<std::int64_t> counts_of(RankGroup& group, Timeout timeout, const at::Tensor& own) {
  const at::Tensor mine = at::tensor({own.sparse_dim(), own.dense_dim(), own._nnz()}, at::kLong);
  const at::Tensor all = at::empty({group.size(), mine.numel()}, at::kLong);
  wait(all_gather_single(group, timeout, all, mine));
  std::vector<std::int64_t> counts;
  for (int rank = 0; rank < group.size(); ++rank) {
    if (!at::equal(all[rank].narrow(0, 0, 2), mine.narrow(0, 0, 2))) {
      throw Error(ErrorKind::kInvalidArgument,
                  "all_reduce of a sparse tensor: its number of sparse and dense dimensions "
                  "differs between this rank and group rank " +
                      std::to_string(rank));
    }
    counts.push_back(all[rank][2].item<std::int64_t>());
  }
  return counts;
}

}  // namespace

Call all_reduce_sparse(RankGroup& group, Timeout timeout, const at::Tensor& tensor,
                       collectives::Reduce by) {
  if (!tensor.device().is_cpu() || by.op != kernels::ReduceOp::kSum) {
    throw Error(ErrorKind::kInvalidArgument,
                "a sparse tensor is reduced on the CPU, by sum alone; expected such a call");
  }
  const at::Tensor own = tensor.coalesce();
  const std::vector<std::int64_t> counts = counts_of(group, timeout, own);
  const at::Tensor values = own.values().reshape({own._nnz(), -1}).t().contiguous();
  const Tensors all_indices = columns(own.indices(), own.sparse_dim(), counts);
  const Tensors all_values = columns(values, values.size(0), counts);
  wait(all_gather(group, timeout, all_indices, own.indices()));
  wait(all_gather(group, timeout, all_values, values));
  std::vector<std::int64_t> shape = own.values().sizes().vec();
  const at::Tensor together = at::cat(all_values, 1).t().contiguous();
  shape[0] = together.size(0);
  const at::Tensor sum =
      at::sparse_coo_tensor(at::cat(all_indices, 1), together.view(shape), own.sizes()).coalesce();
  tensor.copy_(sum);
  return {.results = {tensor}};
}

}  // namespace trireme::backend
