#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>

#include <memory>
#include <vector>

#include "python/backend/rank_group.h"

namespace trireme::backend {

/// Tensors whose memory the ranks of a group on one host share: collectives on them copy nothing.
///
/// Threads  caller-synchronised.
class SharedBuckets {
 public:
  explicit SharedBuckets(const std::shared_ptr<RankGroup>& group);

  bool contains(const at::Tensor& tensor) const;

  /// Moves the memory of `tensor`, and of all that are views of it, to such memory. All ranks call it
  /// in the order of their collectives, with tensors of one size. Blocks.
  ///
  /// When the group is closed the memory becomes the process's own again: tensors outlive groups.
  void move(const at::Tensor& tensor);

 private:
  struct Moved {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    void* memory;
  };

  static void move_back(const std::vector<Moved>& all);

  const std::weak_ptr<RankGroup> group_;  // which calls back when it is closed
  const std::shared_ptr<std::vector<Moved>> moved_ = std::make_shared<std::vector<Moved>>();
};

}  // namespace trireme::backend
