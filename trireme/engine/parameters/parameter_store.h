#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "trireme/engine/parameters/sharded_bucket.h"
#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/parameter_map.h"

namespace trireme::parameters {

/// Makes memory for a flat buffer: a u8 tensor of that many bytes, aligned to 64. A transport that
/// wants buffers in memory of its own hands in another one.
using FlatMemory = std::function<at::Tensor(std::int64_t bytes)>;

/// Zeros from torch's allocator.
at::Tensor make_flat_memory(std::int64_t bytes);

/// Where a slot lies: bucket of the map, slot of the bucket.
struct SlotPlace {
  int bucket = -1;
  int slot = -1;
};

/// A slot's part of a bucket's flat buffer, shaped like the parameter with its natural strides.
at::Tensor slot_view(const at::Tensor& flat, const layout::Slot& slot, const at::Tensor& like);

/// Stages whose parameters a process holds.
using Stages = std::set<int>;

/// Gradients of the use sites of some stages: one flat buffer per bucket, f32 (f64 for f64
/// parameters). Of buckets whose values are in shards there is a buffer for a part of the step only, and what is left is
/// the shard of their sum.
///
/// Caller-synchronised.
class GradientBuffers {
 public:
  /// temporary   by bucket: those that `make` makes.
  /// memory      of the others.
  GradientBuffers(const layout::ParameterMap& map, const Stages& stages,
                  std::vector<bool> temporary, const FlatMemory& memory);

  /// Undefined where the bucket's stage is not held, and where there is none now.
  const at::Tensor& flat(int bucket) const { return flat_[bucket]; }

  bool is_temporary(int bucket) const { return temporary_[bucket]; }

  /// Zeros for a temporary one, where there is none.
  void make(const layout::Bucket& bucket, int index);

  /// Leaves of a temporary one its elements in `shard`, or nothing.
  void keep(int bucket, const layout::Shard& shard);
  void drop(int bucket);

  /// Elements [begin, begin + num) of the bucket, which must be here.
  at::Tensor elements(int bucket, std::int64_t begin, std::int64_t num) const;

  /// What there is: of each bucket the shard, or else the whole.
  std::vector<at::Tensor> all() const;

 private:
  struct Part {
    at::Tensor values;
    std::int64_t begin = 0;  ///< In the bucket.
  };

  std::vector<bool> temporary_;
  std::vector<at::Tensor> flat_;
  std::vector<Part> parts_;
};

/// Values of the trainable parameters behind the map, in flat buffers per owner bucket; mirrors of
/// parameters whose owner is elsewhere, likewise.
///
/// Where a mirror's owner is held too, they are the same memory. Sharded buckets have no flat values: ShardedBucket.
/// Caller-synchronised.
class ParameterStore {
 public:
  struct Options {
    FlatMemory memory = make_flat_memory;
    std::optional<Stages> stages;  ///< Those held here; all where it is not set.
    /// Called with each of the model's tensors before its value is taken; Model::fill.
    std::function<void(const at::Tensor& parameter)> fill;
    std::vector<bool> sharded = {};  ///< By bucket (layout::sharded_buckets); empty: none.
    int replica = 0;                 ///< Whose shards are kept.
  };

  /// Copies the parameters in and gives the model's own tensors this memory, so that the module
  /// always shows the trained values. Trainable parameters that only other stages use lose theirs.
  ///
  /// tensors   of the recording, by value id.
  ParameterStore(layout::ParameterMap map, const graph::Graph& graph,
                 std::vector<at::Tensor> tensors, const Options& options);

  const layout::ParameterMap& map() const { return map_; }

  /// Trainable parameters that are owned here, in byte order of their names.
  const std::vector<std::string>& names() const { return names_; }

  const Stages& stages() const { return stages_; }
  bool holds(int stage) const { return stages_.contains(stage); }
  bool owns(const std::string& parameter) const {
    return holds(map_.buckets[owner(parameter).bucket].stage);
  }

  /// The parameter's value, a view of its owner's slot or, where that is elsewhere, its mirror's. In a sharded bucket it can
  /// be read while that is whole.
  const at::Tensor& value(const std::string& parameter) const;

  /// As `value`, its slot in memory order: [num_elements].
  at::Tensor flat_value(const std::string& parameter) const;

  /// Whether the parameter's value is held here, as owner or mirror.
  bool has_value(const std::string& parameter) const { return views_.contains(parameter); }

  /// Values that are kept here for good, of a parameter owned here, in memory order: all, or those in the shard.
  at::Tensor kept_value(const std::string& parameter) const;

  /// Of an owner's bucket: elements [begin, begin + num) of these.
  at::Tensor elements(int bucket, std::int64_t begin, std::int64_t num) const;

  /// Null where the bucket's values are not in shards, or not here.
  ShardedBucket* sharded(int bucket) const { return shards_[bucket].get(); }
  bool is_sharded(const std::string& parameter) const {
    return shards_[owner(parameter).bucket] != nullptr;
  }

  /// Flat values of an owner or mirror bucket; undefined for others, sharded ones, and where they are elsewhere.
  const at::Tensor& flat_values(int bucket) const { return values_[bucket]; }

  /// Whether the parameter is trainable and used; held here or not.
  bool is_trained(const std::string& parameter) const { return owners_.contains(parameter); }

  /// Whether it is held here or not.
  SlotPlace owner(const std::string& parameter) const { return owners_.at(parameter); }

  /// Places of all the sites of a parameter, in node order, held here or not.
  const std::vector<SlotPlace>& sites(const std::string& parameter) const;

  /// memory   of the buffers.
  GradientBuffers make_gradients(const FlatMemory& memory) const {
    return {map_, stages_, sharded_, memory};
  }
  GradientBuffers make_gradients() const { return make_gradients(memory_); }

  /// The site's part of `gradients`, shaped as the parameter; its buffer is there as a whole.
  at::Tensor gradient_view(const GradientBuffers& gradients, const std::string& parameter,
                           int site) const;

  const layout::Slot& slot(SlotPlace place) const {
    return map_.buckets[place.bucket].slots[place.slot];
  }

 private:
  void place_sites();
  bool has_values(const layout::Bucket& bucket) const;
  std::optional<SlotPlace> place_of_value(const std::string& parameter) const;
  void move_values(const graph::Graph& graph, const std::vector<at::Tensor>& tensors,
                   const std::function<void(const at::Tensor&)>& fill);
  void move_value(const std::string& parameter, SlotPlace place, at::Tensor tensor);

  layout::ParameterMap map_;
  FlatMemory memory_;
  Stages stages_;
  std::vector<bool> sharded_;  ///< By bucket.
  std::vector<std::unique_ptr<ShardedBucket>> shards_;
  std::vector<std::string> names_;
  std::vector<at::Tensor> values_;  ///< By bucket.
  std::map<std::string, at::Tensor> views_;
  std::map<std::string, SlotPlace> owners_;
  std::map<std::string, std::vector<SlotPlace>> sites_;
};

}  // namespace trireme::parameters
