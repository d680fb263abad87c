#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <vector>

#include "python/backend/collectives.h"
#include "python/backend/rank_group.h"
#include "python/backend/tensor_work.h"
#include "python/backend/torch_versions.h"

namespace trireme::backend {

/// torch's view of a process group: translates options, works and errors, and nothing else.
///
/// Threads  as RankGroup.
class Backend final : public c10d::Backend {
 public:
  struct Options final : c10d::Backend::Options {
    using c10d::Backend::Options::Options;
    c10::intrusive_ptr<c10d::Backend::Options> clone() const TRIREME_OVERRIDE_SINCE_TORCH_2_14 {
      return c10::make_intrusive<Options>(*this);
    }
  };

  /// name   under which torch knows it.
  /// store  of this group alone.
  Backend(std::string name, c10::intrusive_ptr<c10d::Store> store,
          std::shared_ptr<RankGroup> group);

  /// Closes the group.
  ~Backend() override;

  /// Leaves the group, and waits a second for the others at most.
  void close();

  const std::shared_ptr<RankGroup>& group() const { return group_; }

  const std::string getBackendName() const override { return name_; }
  c10::intrusive_ptr<c10d::Backend::Options> getBackendOptions() override;
  bool supportsSplitting() const override { return true; }
  void setTimeout(std::chrono::milliseconds timeout) override { group_->set_timeout(timeout); }
  void startCoalescing() override;
  c10::intrusive_ptr<c10d::Work> endCoalescing() override;

  using WorkPtr = c10::intrusive_ptr<c10d::Work>;
  using TensorLists = std::vector<std::vector<at::Tensor>>;

  WorkPtr broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& opts) override;
  WorkPtr allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& opts) override;
  WorkPtr allreduce_sparse(std::vector<at::Tensor>& tensors,
                           const c10d::AllreduceOptions& opts) override;
  WorkPtr allreduce_coalesced(std::vector<at::Tensor>& tensors,
                              const c10d::AllreduceCoalescedOptions& opts) override;
  WorkPtr reduce(std::vector<at::Tensor>& tensors, const c10d::ReduceOptions& opts) override;
  WorkPtr allgather(TensorLists& outputs, std::vector<at::Tensor>& inputs,
                    const c10d::AllgatherOptions& opts) override;
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input,
                          const c10d::AllgatherOptions& opts) override;
  WorkPtr allgather_coalesced(TensorLists& outputs, std::vector<at::Tensor>& inputs,
                              const c10d::AllgatherOptions& opts) override;
  WorkPtr allgather_into_tensor_coalesced(std::vector<at::Tensor>& outputs,
                                          std::vector<at::Tensor>& inputs,
                                          const c10d::AllgatherOptions& opts) override;
  WorkPtr gather(TensorLists& outputs, std::vector<at::Tensor>& inputs,
                 const c10d::GatherOptions& opts) override;
  WorkPtr gather_into_tensor(at::Tensor& output, at::Tensor& input,
                             const c10d::GatherOptions& opts) TRIREME_OVERRIDE_SINCE_TORCH_2_14;
  WorkPtr scatter(std::vector<at::Tensor>& outputs, TensorLists& inputs,
                  const c10d::ScatterOptions& opts) override;
  WorkPtr reduce_scatter(std::vector<at::Tensor>& outputs, TensorLists& inputs,
                         const c10d::ReduceScatterOptions& opts) override;
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& opts) override;
  WorkPtr reduce_scatter_tensor_coalesced(std::vector<at::Tensor>& outputs,
                                          std::vector<at::Tensor>& inputs,
                                          const c10d::ReduceScatterOptions& opts) override;
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_splits,
                        std::vector<int64_t>& input_splits,
                        const c10d::AllToAllOptions& opts) override;
  WorkPtr alltoall(std::vector<at::Tensor>& outputs, std::vector<at::Tensor>& inputs,
                   const c10d::AllToAllOptions& opts) override;
  WorkPtr send(std::vector<at::Tensor>& tensors, int peer, int tag) override;
  WorkPtr recv(std::vector<at::Tensor>& tensors, int source, int tag) override;
  WorkPtr recvAnysource(std::vector<at::Tensor>& tensors, int tag) override;
  WorkPtr barrier(const c10d::BarrierOptions& opts) override;
  void monitoredBarrier(const c10d::BarrierOptions& opts, bool wait_all_ranks) override;

  void setSequenceNumberForGroup() override {}
  std::uint64_t getSequenceNumberForGroup() override;
  void enableCollectivesTiming() override {}
  void eagerConnectSingleDevice(at::Device) override {}
  c10d::ErrorType getError() override;
  void abort() override;
  void shutdown() override;

  c10::intrusive_ptr<c10d::Backend> split(
      const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
      const c10::intrusive_ptr<c10d::Backend::Options>& opts) override;

 private:
  struct Operation {
    c10d::OpType type;
    const char* name;
    Tensors inputs = {};
    bool is_async = true;  ///< Its caller goes on, and waits elsewhere or not at all.
  };

  WorkPtr start(Operation operation, const std::function<Call()>& call);
  WorkPtr register_call(Call call, Operation operation, const CallLine& line);

  const std::string name_;
  const c10::intrusive_ptr<c10d::Store> store_;
  const std::shared_ptr<RankGroup> group_;  // shared with calls of other threads
  const std::shared_ptr<CallsUnderWay> under_way_ = std::make_shared<CallsUnderWay>();
  std::mutex mutex_;
  std::uint64_t num_operations_ = 0;
  std::uint64_t num_monitored_ = 0;  ///< Monitored barriers.
  /// Started since startCoalescing; nothing where that was not called.
  std::optional<std::vector<c10::intrusive_ptr<TensorWork>>> coalesced_;
};

}  // namespace trireme::backend
