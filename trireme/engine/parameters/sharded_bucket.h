#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "trireme/plan/layout/parameter_map.h"

namespace trireme::parameters {

/// Values of a bucket of which a replica keeps its shard, and has the whole for a while (docs/decisions/0057).
///
/// A parameter of it is a tensor with a storage of its own, as others are. The storage shows the whole's memory while there
/// is one, so that all views of it, autograd's saved ones too, do; in between nobody can read it: torch throws, and says
/// why.
///
/// Caller-synchronised.
class ShardedBucket {
 public:
  /// bucket   outlives this.
  ShardedBucket(const layout::Bucket& bucket, int replica, at::ScalarType type);
  ~ShardedBucket();
  ShardedBucket(const ShardedBucket&) = delete;
  ShardedBucket& operator=(const ShardedBucket&) = delete;

  /// The parameter of a slot, with this tensor's sizes and strides; its elements in the shard are this tensor's.
  at::Tensor add(const layout::Slot& slot, const at::Tensor& value);

  /// Elements [begin, end) of the bucket, and their values, which are what is trained: [end - begin].
  const layout::Shard& range() const { return range_; }
  const at::Tensor& shard() const { return shard_; }

  /// Memory for all elements, from torch's allocator, to be filled: [num_elements]. Parameters do not show it yet.
  const at::Tensor& make_whole();

  /// It is filled: parameters show it.
  void show();

  /// Gives it back.
  void drop();

  bool is_shown() const { return is_shown_; }

 private:
  struct Parameter {
    c10::Storage storage;
    std::int64_t offset_bytes = 0;
  };

  const layout::Bucket& bucket_;
  layout::Shard range_;
  at::Tensor shard_;
  at::Tensor whole_;  ///< Undefined where there is none.
  bool is_shown_ = false;
  std::vector<Parameter> parameters_;
};

/// Whether the tensor's values can be read: not those of a parameter that is in shards at the moment.
bool has_memory(const at::Tensor& parameter);

}  // namespace trireme::parameters
