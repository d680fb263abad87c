#include "python/backend/backend.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <string>
#include <utility>

#include "python/backend/call_line.h"
#include "python/backend/monitored_barrier.h"
#include "python/backend/store_rendezvous.h"
#include "python/backend/torch_errors.h"
#include "trireme/error.h"

namespace trireme::backend {
namespace {

using c10d::OpType;
using kernels::ReduceOp;

constexpr std::chrono::milliseconds kGoodbyePatience{5'000};
constexpr std::chrono::milliseconds kExitPatience{1'000};

Timeout timeout_of(std::chrono::milliseconds timeout) {
  if (timeout == c10d::kUnsetTimeout) return std::nullopt;
  return timeout;
}

[[noreturn]] void refuse(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, problem);
}

double factor_of(const c10d::ReduceOp& op) {
  const auto* factor = dynamic_cast<const c10d::PreMulSumSupplement*>(op.supplement_.get());
  if (factor == nullptr) refuse("PREMUL_SUM has no factor; make it by _make_nccl_premul_sum");
  if (factor->tensor_factor.defined()) return factor->tensor_factor.item().toDouble();
  return factor->double_factor;
}

collectives::Reduce reduce_of(const c10d::ReduceOp& op) {
  switch (op.op_) {
    case c10d::ReduceOp::SUM:
      return ReduceOp::kSum;
    case c10d::ReduceOp::AVG:
      return ReduceOp::kAverage;
    case c10d::ReduceOp::PRODUCT:
      return ReduceOp::kProduct;
    case c10d::ReduceOp::MIN:
      return ReduceOp::kMin;
    case c10d::ReduceOp::MAX:
      return ReduceOp::kMax;
    case c10d::ReduceOp::BAND:
      return ReduceOp::kAnd;
    case c10d::ReduceOp::BOR:
      return ReduceOp::kOr;
    case c10d::ReduceOp::BXOR:
      return ReduceOp::kXor;
    case c10d::ReduceOp::PREMUL_SUM:
      return collectives::scaled_sum(factor_of(op));
    default:
      refuse("unknown reduction " + std::to_string(op.op_));
  }
}

/// torch gives lists, of one tensor for each device of this rank.
template <typename T>
const T& only(const std::vector<T>& list, const char* what) {
  if (list.size() == 1) return list.front();
  refuse(std::string(what) + ": expected one, got " + std::to_string(list.size()));
}

template <typename Options>
void check_root_tensor(const Options& opts) {
  if (opts.rootTensor != 0) {
    refuse("the root tensor is " + std::to_string(opts.rootTensor) +
           ", expected 0: a rank has one");
  }
}

/// The list of a gather or scatter, which the root alone gives.
template <typename Options>
Tensors list_of_root(const std::vector<Tensors>& lists, const Options& opts, const char* what) {
  if (lists.empty()) return {};
  if (lists.size() > 1) {
    refuse(std::string(what) + " with root " + std::to_string(opts.rootRank) + ": " +
           std::to_string(lists.size()) + " lists of tensors, expected one, of the root alone");
  }
  return lists.front();
}

void check_pairs(const Tensors& outputs, const Tensors& inputs, const char* what) {
  if (outputs.size() == inputs.size()) return;
  refuse(std::string(what) + ": " + std::to_string(outputs.size()) + " outputs and " +
         std::to_string(inputs.size()) + " inputs; expected as many");
}

}  // namespace

Backend::Backend(std::string name, c10::intrusive_ptr<c10d::Store> store,
                 std::shared_ptr<RankGroup> group)
    : c10d::Backend(group->rank(), group->size()),
      name_(std::move(name)),
      store_(std::move(store)),
      group_(std::move(group)) {}

Backend::~Backend() {
  const UnlockedInterpreter unlocked;  // threads that end may wait for it
  close();
}

void Backend::close() { group_->close(kExitPatience); }

c10::intrusive_ptr<c10d::Backend::Options> Backend::getBackendOptions() {
  auto options = c10::make_intrusive<Options>(name_, group_->timeout());
  options->group_name = getGroupUid();
  return options;
}

/// Errors of the call itself are thrown; those of what it has started reach the work.
Backend::WorkPtr Backend::start(Operation operation, const std::function<Call()>& call) {
  const CallLine line = call_line();
  Call started;
  try {
    const at::AutoDispatchBelowAutograd below;
    const at::NoGradGuard no_grad;
    started = call();
  } catch (const Error& error) {
    throw_refusal(error, line);
  }
  return register_call(std::move(started), std::move(operation), line);
}

Backend::WorkPtr Backend::register_call(Call call, Operation operation, const CallLine& line) {
  std::uint64_t sequence = 0;
  {
    const std::lock_guard lock(mutex_);
    sequence = ++num_operations_;
  }
  auto work = TensorWork::make(group_, under_way_, std::move(call),
                               {.type = operation.type,
                                .title = name_ + ":" + operation.name,
                                .line = line,
                                .sequence = sequence,
                                .inputs = std::move(operation.inputs)});
  const std::lock_guard lock(mutex_);
  if (coalesced_) coalesced_->push_back(work);
  return work;
}

void Backend::startCoalescing() {
  const std::lock_guard lock(mutex_);
  TORCH_CHECK(!coalesced_, "startCoalescing was called before the endCoalescing of another one");
  coalesced_.emplace();
}

/// A work that ends with all of them.
Backend::WorkPtr Backend::endCoalescing() {
  std::vector<c10::intrusive_ptr<TensorWork>> parts;
  {
    const std::lock_guard lock(mutex_);
    TORCH_CHECK(coalesced_, "endCoalescing was called without startCoalescing");
    parts = std::move(*coalesced_);
    coalesced_.reset();
  }
  Call all;
  for (const auto& part : parts) {
    all.works.insert(all.works.end(), part->call().works.begin(), part->call().works.end());
    all.results.insert(all.results.end(), part->call().results.begin(), part->call().results.end());
  }
  all.after = [parts] {
    for (const auto& part : parts) part->wait();
  };
  return register_call(std::move(all), {OpType::COALESCED, "coalesced"}, call_line());
}

// ---- Collectives

Backend::WorkPtr Backend::broadcast(std::vector<at::Tensor>& tensors,
                                    const c10d::BroadcastOptions& opts) {
  return start({OpType::BROADCAST, "broadcast", tensors}, [&] {
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
  return start({OpType::ALLREDUCE, "all_reduce", tensors}, [&] {
    only(tensors, "all_reduce");
    return all_reduce(*group_, timeout_of(opts.timeout), tensors, reduce_of(opts.reduceOp));
  });
}

Backend::WorkPtr Backend::allreduce_sparse(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions& opts) {
  return start({OpType::_ALLREDUCE_SPARSE, "sparse_all_reduce", tensors}, [&] {
    return all_reduce_sparse(*group_, timeout_of(opts.timeout), only(tensors, "all_reduce"),
                             reduce_of(opts.reduceOp));
  });
}

Backend::WorkPtr Backend::allreduce_coalesced(std::vector<at::Tensor>& tensors,
                                              const c10d::AllreduceCoalescedOptions& opts) {
  return start({OpType::ALLREDUCE_COALESCED, "all_reduce", tensors}, [&] {
    return all_reduce(*group_, timeout_of(opts.timeout), tensors, reduce_of(opts.reduceOp));
  });
}

Backend::WorkPtr Backend::reduce(std::vector<at::Tensor>& tensors,
                                 const c10d::ReduceOptions& opts) {
  return start({OpType::REDUCE, "reduce", tensors}, [&] {
    check_root_tensor(opts);
    return backend::reduce(*group_, timeout_of(opts.timeout), only(tensors, "reduce"),
                           static_cast<int>(opts.rootRank), reduce_of(opts.reduceOp));
  });
}

Backend::WorkPtr Backend::allgather(TensorLists& outputs, std::vector<at::Tensor>& inputs,
                                    const c10d::AllgatherOptions& opts) {
  return start({OpType::ALLGATHER, "all_gather", inputs}, [&] {
    return all_gather(*group_, timeout_of(opts.timeout), only(outputs, "outputs of an all_gather"),
                      only(inputs, "inputs of an all_gather"));
  });
}

Backend::WorkPtr Backend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                          const c10d::AllgatherOptions& opts) {
  return start({OpType::_ALLGATHER_BASE, "_all_gather_base", {input}}, [&] {
    return backend::all_gather_single(*group_, timeout_of(opts.timeout), output, input);
  });
}

/// outputs: by rank, a tensor for each input.
Backend::WorkPtr Backend::allgather_coalesced(TensorLists& outputs, std::vector<at::Tensor>& inputs,
                                              const c10d::AllgatherOptions& opts) {
  return start({OpType::ALLGATHER_COALESCED, "all_gather", inputs}, [&] {
    std::vector<Call> calls;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      Tensors of_input;
      for (const std::vector<at::Tensor>& of_rank : outputs) {
        if (of_rank.size() != inputs.size()) {
          refuse("all_gather_coalesced: " + std::to_string(of_rank.size()) +
                 " outputs of a rank, expected one for each of " + std::to_string(inputs.size()) +
                 " inputs");
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
  return start({OpType::ALLGATHER_INTO_TENSOR_COALESCED, "_all_gather_base", inputs}, [&] {
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
  return start({OpType::GATHER, "gather", inputs}, [&] {
    return backend::gather(*group_, timeout_of(opts.timeout), list_of_root(outputs, opts, "gather"),
                           only(inputs, "inputs of a gather"), static_cast<int>(opts.rootRank));
  });
}

Backend::WorkPtr Backend::gather_into_tensor(at::Tensor& output, at::Tensor& input,
                                             const c10d::GatherOptions& opts) {
  return start({OpType::GATHER, "gather", {input}}, [&] {
    const bool is_root = opts.rootRank == getRank();
    const Tensors parts = is_root ? output.view({getSize(), -1}).unbind(0) : Tensors{};
    return backend::gather(*group_, timeout_of(opts.timeout), parts, input,
                           static_cast<int>(opts.rootRank));
  });
}

Backend::WorkPtr Backend::scatter(std::vector<at::Tensor>& outputs, TensorLists& inputs,
                                  const c10d::ScatterOptions& opts) {
  return start({OpType::SCATTER, "scatter", outputs}, [&] {
    return backend::scatter(*group_, timeout_of(opts.timeout),
                            only(outputs, "outputs of a scatter"),
                            list_of_root(inputs, opts, "scatter"), static_cast<int>(opts.rootRank));
  });
}

Backend::WorkPtr Backend::reduce_scatter(std::vector<at::Tensor>& outputs, TensorLists& inputs,
                                         const c10d::ReduceScatterOptions& opts) {
  return start({OpType::REDUCE_SCATTER, "reduce_scatter", outputs}, [&] {
    return backend::reduce_scatter(
        *group_, timeout_of(opts.timeout), only(outputs, "outputs of a reduce_scatter"),
        only(inputs, "inputs of a reduce_scatter"), reduce_of(opts.reduceOp));
  });
}

Backend::WorkPtr Backend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                               const c10d::ReduceScatterOptions& opts) {
  return start({OpType::_REDUCE_SCATTER_BASE, "_reduce_scatter_base", {input}}, [&] {
    return backend::reduce_scatter_single(*group_, timeout_of(opts.timeout), output, input,
                                          reduce_of(opts.reduceOp));
  });
}

Backend::WorkPtr Backend::reduce_scatter_tensor_coalesced(std::vector<at::Tensor>& outputs,
                                                          std::vector<at::Tensor>& inputs,
                                                          const c10d::ReduceScatterOptions& opts) {
  return start({OpType::REDUCE_SCATTER_TENSOR_COALESCED, "_reduce_scatter_base", inputs}, [&] {
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
  return start({OpType::ALLTOALL_BASE, "all_to_all", {input}}, [&] {
    return backend::all_to_all_single(*group_, timeout_of(opts.timeout), output, input,
                                      output_splits, input_splits);
  });
}

Backend::WorkPtr Backend::alltoall(std::vector<at::Tensor>& outputs,
                                   std::vector<at::Tensor>& inputs,
                                   const c10d::AllToAllOptions& opts) {
  return start({OpType::ALLTOALL, "all_to_all", inputs},
               [&] { return all_to_all(*group_, timeout_of(opts.timeout), outputs, inputs); });
}

// ---- Between two ranks

Backend::WorkPtr Backend::send(std::vector<at::Tensor>& tensors, int peer, int tag) {
  return start({OpType::SEND, "send", tensors},
               [&] { return backend::send(*group_, only(tensors, "send"), peer, tag); });
}

Backend::WorkPtr Backend::recv(std::vector<at::Tensor>& tensors, int source, int tag) {
  return start({OpType::RECV, "recv", tensors},
               [&] { return backend::recv(*group_, only(tensors, "recv"), source, tag); });
}

Backend::WorkPtr Backend::recvAnysource(std::vector<at::Tensor>& tensors, int tag) {
  return start({OpType::RECVANYSOURCE, "recvAnySource", tensors}, [&] {
    return backend::recv(*group_, only(tensors, "recv"), transport::kAnySource, tag);
  });
}

// ---- Barriers and ends

Backend::WorkPtr Backend::barrier(const c10d::BarrierOptions& opts) {
  return start({OpType::BARRIER, "barrier"},
               [&] { return backend::barrier(*group_, timeout_of(opts.timeout)); });
}

void Backend::monitoredBarrier(const c10d::BarrierOptions& opts, bool wait_all_ranks) {
  const CallLine line = call_line();
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = num_monitored_++;
  }
  StoreRendezvous rendezvous(store_);
  try {
    monitored_barrier(rendezvous, {.rank = getRank(),
                                   .size = getSize(),
                                   .number = number,
                                   .timeout = timeout_of(opts.timeout).value_or(group_->timeout()),
                                   .waits_for_all = wait_all_ranks});
  } catch (const Error& error) {
    throw_refusal(error, line);
  }
}

std::uint64_t Backend::getSequenceNumberForGroup() {
  const std::lock_guard lock(mutex_);
  return num_operations_;
}

c10d::ErrorType Backend::getError() {
  const std::optional<Error> failure = group_->failure();
  if (!failure) return c10d::ErrorType::SUCCESS;
  if (failure->kind() == ErrorKind::kTimeout) return c10d::ErrorType::TIMEOUT;
  const bool is_own = failure->context().rank == group_->world()->rank();
  return is_own ? c10d::ErrorType::COMM_ERROR : c10d::ErrorType::REMOTE_ERROR;
}

void Backend::abort() { group_->abort("torch asked for it"); }

void Backend::shutdown() { group_->close(kGoodbyePatience); }

c10::intrusive_ptr<c10d::Backend> Backend::split(
    const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
    const c10::intrusive_ptr<c10d::Backend::Options>& opts) {
  std::vector<int> world_ranks;
  for (const int rank : ranks)
    world_ranks.push_back(group_->ranks().at(static_cast<std::size_t>(rank)));
  const auto own = std::ranges::find(ranks, getRank());
  if (own == ranks.end()) return nullptr;
  auto group = std::make_shared<RankGroup>(
      group_->world(), std::move(world_ranks),
      RankGroup::Options{.name = opts->group_name, .timeout = opts->timeout});
  return c10::make_intrusive<Backend>(name_, store, std::move(group));
}

}  // namespace trireme::backend
