// The collectives of Backend: each is one of collectives.h, with torch's options.

#include <string>
#include <utility>

#include "python/backend/backend.h"
#include "python/backend/torch_options.h"
#include "python/backend/torch_versions.h"
#include "trireme/error.h"

namespace trireme::backend {

using c10d::OpType;

Backend::WorkPtr Backend::broadcast(std::vector<at::Tensor>& tensors,
                                    const c10d::BroadcastOptions& opts) {
  return start({OpType::BROADCAST, "broadcast", tensors, opts.asyncOp}, [&] {
    check_root_tensor(opts);
    return backend::broadcast(*group_, timeout_of(opts.timeout), only(tensors, "broadcast"),
                              static_cast<int>(opts.rootRank));
  });
}

Backend::WorkPtr Backend::allreduce(std::vector<at::Tensor>& tensors,
                                    const c10d::AllreduceOptions& opts) {
  if (tensors.size() == 1 && tensors.front().layout() == at::kSparse) {
    return allreduce_sparse(tensors, opts);
  }
  return start({OpType::ALLREDUCE, "all_reduce", tensors, opts.asyncOp}, [&] {
    only(tensors, "all_reduce");
    return all_reduce(*group_, timeout_of(opts.timeout), tensors, reduce_of(opts.reduceOp));
  });
}

Backend::WorkPtr Backend::allreduce_sparse(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions& opts) {
  return start({OpType::_ALLREDUCE_SPARSE, "sparse_all_reduce", tensors, opts.asyncOp}, [&] {
    return all_reduce_sparse(*group_, timeout_of(opts.timeout), only(tensors, "all_reduce"),
                             reduce_of(opts.reduceOp));
  });
}

Backend::WorkPtr Backend::allreduce_coalesced(std::vector<at::Tensor>& tensors,
                                              const c10d::AllreduceCoalescedOptions& opts) {
  return start({OpType::ALLREDUCE_COALESCED, "all_reduce", tensors, opts.asyncOp}, [&] {
    return all_reduce(*group_, timeout_of(opts.timeout), tensors, reduce_of(opts.reduceOp));
  });
}

Backend::WorkPtr Backend::reduce(std::vector<at::Tensor>& tensors,
                                 const c10d::ReduceOptions& opts) {
  return start({OpType::REDUCE, "reduce", tensors, opts.asyncOp}, [&] {
    check_root_tensor(opts);
    return backend::reduce(*group_, timeout_of(opts.timeout), only(tensors, "reduce"),
                           static_cast<int>(opts.rootRank), reduce_of(opts.reduceOp));
  });
}

Backend::WorkPtr Backend::allgather(TensorLists& outputs, std::vector<at::Tensor>& inputs,
                                    const c10d::AllgatherOptions& opts) {
  return start({OpType::ALLGATHER, "all_gather", inputs, opts.asyncOp}, [&] {
    return all_gather(*group_, timeout_of(opts.timeout), only(outputs, "outputs of an all_gather"),
                      only(inputs, "inputs of an all_gather"));
  });
}

Backend::WorkPtr Backend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                          const c10d::AllgatherOptions& opts) {
  return start({OpType::_ALLGATHER_BASE, "_all_gather_base", {input}, opts.asyncOp}, [&] {
    return backend::all_gather_single(*group_, timeout_of(opts.timeout), output, input);
  });
}

/// outputs: by rank, a tensor for each input.
Backend::WorkPtr Backend::allgather_coalesced(TensorLists& outputs, std::vector<at::Tensor>& inputs,
                                              const c10d::AllgatherOptions& opts) {
  return start({OpType::ALLGATHER_COALESCED, "all_gather", inputs, opts.asyncOp}, [&] {
    std::vector<Call> calls;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      Tensors of_input;
      for (const std::vector<at::Tensor>& of_rank : outputs) {
        if (of_rank.size() != inputs.size()) {
          throw Error(ErrorKind::kInvalidArgument,
                      "all_gather_coalesced: " + std::to_string(of_rank.size()) +
                          " outputs of a rank, expected one for each of " +
                          std::to_string(inputs.size()) + " inputs");
        }
        of_input.push_back(of_rank[i]);
      }
      calls.push_back(all_gather(*group_, timeout_of(opts.timeout), of_input, inputs[i]));
    }
    return together(std::move(calls));
  });
}

Backend::WorkPtr Backend::allgather_into_tensor_coalesced(std::vector<at::Tensor>& outputs,
                                                          std::vector<at::Tensor>& inputs,
                                                          const c10d::AllgatherOptions& opts) {
  return start({kAllGatherCoalesced, "_all_gather_base", inputs, opts.asyncOp}, [&] {
    check_pairs(outputs, inputs, "all_gather_into_tensor_coalesced");
    std::vector<Call> calls;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      calls.push_back(
          backend::all_gather_single(*group_, timeout_of(opts.timeout), outputs[i], inputs[i]));
    }
    return together(std::move(calls));
  });
}

Backend::WorkPtr Backend::gather(TensorLists& outputs, std::vector<at::Tensor>& inputs,
                                 const c10d::GatherOptions& opts) {
  return start({OpType::GATHER, "gather", inputs, opts.asyncOp}, [&] {
    return backend::gather(*group_, timeout_of(opts.timeout), list_of_root(outputs, opts, "gather"),
                           only(inputs, "inputs of a gather"), static_cast<int>(opts.rootRank));
  });
}

Backend::WorkPtr Backend::gather_into_tensor(at::Tensor& output, at::Tensor& input,
                                             const c10d::GatherOptions& opts) {
  return start({OpType::GATHER, "gather", {input}, opts.asyncOp}, [&] {
    const bool is_root = opts.rootRank == getRank();
    const Tensors parts = is_root ? output.view({getSize(), -1}).unbind(0) : Tensors{};
    return backend::gather(*group_, timeout_of(opts.timeout), parts, input,
                           static_cast<int>(opts.rootRank));
  });
}

Backend::WorkPtr Backend::scatter(std::vector<at::Tensor>& outputs, TensorLists& inputs,
                                  const c10d::ScatterOptions& opts) {
  return start({OpType::SCATTER, "scatter", outputs, opts.asyncOp}, [&] {
    return backend::scatter(*group_, timeout_of(opts.timeout),
                            only(outputs, "outputs of a scatter"),
                            list_of_root(inputs, opts, "scatter"), static_cast<int>(opts.rootRank));
  });
}

Backend::WorkPtr Backend::reduce_scatter(std::vector<at::Tensor>& outputs, TensorLists& inputs,
                                         const c10d::ReduceScatterOptions& opts) {
  return start({OpType::REDUCE_SCATTER, "reduce_scatter", outputs, opts.asyncOp}, [&] {
    return backend::reduce_scatter(
        *group_, timeout_of(opts.timeout), only(outputs, "outputs of a reduce_scatter"),
        only(inputs, "inputs of a reduce_scatter"), reduce_of(opts.reduceOp));
  });
}

Backend::WorkPtr Backend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                               const c10d::ReduceScatterOptions& opts) {
  return start({OpType::_REDUCE_SCATTER_BASE, "_reduce_scatter_base", {input}, opts.asyncOp}, [&] {
    return backend::reduce_scatter_single(*group_, timeout_of(opts.timeout), output, input,
                                          reduce_of(opts.reduceOp));
  });
}

Backend::WorkPtr Backend::reduce_scatter_tensor_coalesced(std::vector<at::Tensor>& outputs,
                                                          std::vector<at::Tensor>& inputs,
                                                          const c10d::ReduceScatterOptions& opts) {
  return start({kReduceScatterCoalesced, "_reduce_scatter_base", inputs, opts.asyncOp}, [&] {
    check_pairs(outputs, inputs, "reduce_scatter_tensor_coalesced");
    std::vector<Call> calls;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      calls.push_back(backend::reduce_scatter_single(*group_, timeout_of(opts.timeout), outputs[i],
                                                     inputs[i], reduce_of(opts.reduceOp)));
    }
    return together(std::move(calls));
  });
}

Backend::WorkPtr Backend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                        std::vector<int64_t>& output_splits,
                                        std::vector<int64_t>& input_splits,
                                        const c10d::AllToAllOptions& opts) {
  return start({OpType::ALLTOALL_BASE, "all_to_all", {input}, opts.asyncOp}, [&] {
    return backend::all_to_all_single(*group_, timeout_of(opts.timeout), output, input,
                                      output_splits, input_splits);
  });
}

Backend::WorkPtr Backend::alltoall(std::vector<at::Tensor>& outputs,
                                   std::vector<at::Tensor>& inputs,
                                   const c10d::AllToAllOptions& opts) {
  return start({OpType::ALLTOALL, "all_to_all", inputs, opts.asyncOp},
               [&] { return all_to_all(*group_, timeout_of(opts.timeout), outputs, inputs); });
}

}  // namespace trireme::backend
