#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

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
/// parameters).
///
/// Caller-synchronised.
class GradientBuffers {
 public:
  GradientBuffers(const layout::ParameterMap& map, const Stages& stages, const FlatMemory& memory);

  /// Undefined where the bucket's stage is not held.
  const at::Tensor& flat(int bucket) const { return flat_[bucket]; }
  std::vector<at::Tensor>& all() { return flat_; }

 private:
  std::vector<at::Tensor> flat_;
};

/// Values of the trainable parameters behind the map, in flat buffers per owner bucket; mirrors of
/// parameters whose owner is elsewhere, likewise.
///
/// Where a mirror's owner is held too, they are the same memory. Caller-synchronised.
class ParameterStore {
 public:
  struct Options {
    FlatMemory memory = make_flat_memory;
    std::optional<Stages> stages;  ///< Those held here; all where it is not set.
    /// Called with each of the model's tensors before its value is taken; Model::fill.
    std::function<void(const at::Tensor& parameter)> fill;
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

  /// The parameter's value, a view of its owner's slot or, where that is elsewhere, its mirror's.
  const at::Tensor& value(const std::string& parameter) const;

  /// As `value`, its slot in memory order: [num_elements].
  at::Tensor flat_value(const std::string& parameter) const;

  /// Whether the parameter's value is held here, as owner or mirror.
  bool has_value(const std::string& parameter) const { return views_.contains(parameter); }

  /// Flat values of an owner or mirror bucket; undefined for others and where they are elsewhere.
  const at::Tensor& flat_values(int bucket) const { return values_[bucket]; }

  /// Whether the parameter is trainable and used; held here or not.
  bool is_trained(const std::string& parameter) const { return owners_.contains(parameter); }

  /// Whether it is held here or not.
  SlotPlace owner(const std::string& parameter) const { return owners_.at(parameter); }

  /// Places of all the sites of a parameter, in node order, held here or not.
  const std::vector<SlotPlace>& sites(const std::string& parameter) const;

  /// memory   of the buffers.
  GradientBuffers make_gradients(const FlatMemory& memory) const { return {map_, stages_, memory}; }
  GradientBuffers make_gradients() const { return make_gradients(memory_); }

  /// The site's part of `gradients`, shaped as the parameter.
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

  layout::ParameterMap map_;
  FlatMemory memory_;
  Stages stages_;
  std::vector<std::string> names_;
  std::vector<at::Tensor> values_;  ///< By bucket.
  std::map<std::string, at::Tensor> views_;
  std::map<std::string, SlotPlace> owners_;
  std::map<std::string, std::vector<SlotPlace>> sites_;
};

}  // namespace trireme::parameters
