#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <vector>

#include "python/backend/backend.h"
#include "python/backend/shared_buckets.h"

namespace trireme::backend {

/// How DistributedDataParallel averages its gradients here: in place, in memory that the ranks of a
/// host share, from the second backward on (in the first one DDP's buckets are not final).
///
/// With lanes the gradients of several backwards become one: each is a lane of the global batch, and
/// all lanes, of all ranks, are added by THE tree (kernels/reduce/tree.h), which depends on the number
/// of all lanes alone. So the bits do not depend on how many ranks there are:
///
///     4 lanes     1 rank      0 1 2 3        2 ranks   0 1 | 2 3        4 ranks   0 | 1 | 2 | 3
///     the tree    (0+1)+(2+3) in each case; those within a rank are added here, the rest by all_reduce
///
/// Until the last lane of a step gradients are zeros.
///
/// Threads  as DDP's reducer calls it: one after another.
class DdpHook final : public c10d::CommHookInterface {
 public:
  struct Lanes {
    int own = 1;             ///< Backwards of this rank in a step; a power of two.
    int all = 1;             ///< Of all ranks.
    bool are_fixed = false;  ///< Sum them in the order of lanes; else average over ranks.
  };

  DdpHook(c10::intrusive_ptr<Backend> backend, Lanes lanes);

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override;

  /// Waits for the all_reduce, on the thread of the backward.
  at::Tensor parseHookResult(const c10::IValue& result) override;

 private:
  bool add_lane(c10d::GradBucket& bucket);
  void add_lanes_of(const at::Tensor& parameter, at::Tensor& gradient);

  const c10::intrusive_ptr<Backend> backend_;
  const Lanes lanes_;
  SharedBuckets shared_;
  std::map<const void*, std::vector<at::Tensor>>
      lanes_of_;  ///< By parameter, those before the last.
  std::map<const void*, c10::intrusive_ptr<c10d::Work>> works_;  ///< By the bucket's memory.
  std::size_t num_backwards_ = 0;
};

/// Makes it the hook of a DDP model's reducer, which may have no other.
///
/// Errors   kInvalidArgument where lanes are no whole number of powers of two.
void register_ddp_hook(c10d::Reducer& reducer, c10::intrusive_ptr<Backend> backend, int num_lanes);

}  // namespace trireme::backend
