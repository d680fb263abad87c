#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

#include "python/backend/call_line.h"
#include "python/backend/collectives.h"
#include "python/backend/rank_group.h"
#include "python/backend/torch_versions.h"
#include "trireme/error.h"

namespace trireme::backend {

class TensorWork;

/// The calls of a group that have not ended, whether their callers keep them or not: what they read
/// and write stays until then.
///
/// Threads  safe from any thread.
class CallsUnderWay {
 public:
  void add(const c10::intrusive_ptr<TensorWork>& work);
  void remove(TensorWork* work);

 private:
  std::mutex mutex_;
  std::map<TensorWork*, c10::intrusive_ptr<TensorWork>> works_;
};

/// What torch knows of a call under way: `dist.all_reduce(..., async_op=True)` returns one.
///
/// Threads  safe from any thread.
class TensorWork final : public c10d::Work {
 public:
  struct Origin {
    c10d::OpType type;
    std::string title;  ///< For the profiler: `trireme:all_reduce`.
    CallLine line;      ///< Not known: who waits looks for it where it failed.
    std::uint64_t sequence = 0;
    Tensors inputs = {};  ///< For the profiler.
  };

  /// Adds itself to `under_way` until it has ended.
  static c10::intrusive_ptr<TensorWork> make(const std::shared_ptr<RankGroup>& group,
                                             const std::shared_ptr<CallsUnderWay>& under_way,
                                             Call call, Origin origin);

  TensorWork(const std::shared_ptr<RankGroup>& group,
             const std::shared_ptr<CallsUnderWay>& under_way, Call call, Origin origin);

  const Call& call() const { return call_; }

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  int sourceRank() const override;
  std::vector<at::Tensor> result() override;
  void synchronize() override { wait(); }
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  std::uint64_t getSequencenumber() const override { return origin_.sequence; }
  std::chrono::milliseconds getTimeout() const TRIREME_OVERRIDE_SINCE_TORCH_2_14 {
    return timeout_;
  }

 private:
  bool is_settled() const;
  void wait_for_works(std::chrono::milliseconds timeout);
  void settle();
  void finish_call();
  std::exception_ptr error_at(const CallLine& line) const;

  const std::weak_ptr<RankGroup> group_;  // may be closed before
  const std::weak_ptr<CallsUnderWay> under_way_;
  const std::vector<int> ranks_;  ///< World ranks by group rank.
  const std::chrono::milliseconds timeout_;
  const Origin origin_;
  mutable std::mutex mutex_;
  Call call_;
  bool is_settled_ = false;
  std::optional<Error> failure_;                    ///< Of the works.
  std::exception_ptr other_error_;                  ///< Of what came after them.
  c10::intrusive_ptr<c10::ivalue::Future> future_;  ///< Once somebody has asked for it.
};

}  // namespace trireme::backend
