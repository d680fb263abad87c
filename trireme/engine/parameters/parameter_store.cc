#include "trireme/engine/parameters/parameter_store.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <utility>

#include "trireme/error.h"

namespace trireme::parameters {
namespace {

/// bf16 and f16 gradients are summed in f32.
at::ScalarType accumulator_type(Dtype dtype) {
  return dtype == Dtype::kF64 ? at::kDouble : at::kFloat;
}

at::ScalarType value_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF64:
      return at::kDouble;
    case Dtype::kF32:
      return at::kFloat;
    default:
      throw Error(ErrorKind::kInvalidArgument,
                  "a trainable parameter has dtype " + std::string(to_text(dtype)) +
                      "; keep parameters in f32 (or f64) and compute in bf16 by autocast");
  }
}

/// The same memory as a storage of its own: to torch, and to a recording, the parameters of a model
/// share nothing, as before.
at::Tensor with_own_storage(const at::Tensor& view) {
  return at::from_blob(
      view.mutable_data_ptr(), view.sizes(), view.strides(), [view](void*) {}, view.options());
}

at::Tensor typed(const FlatMemory& memory, at::ScalarType type, std::int64_t elements) {
  return memory(elements * static_cast<std::int64_t>(c10::elementSize(type))).view(type);
}

}  // namespace

at::Tensor make_flat_memory(std::int64_t bytes) {
  return at::zeros({bytes}, at::TensorOptions().dtype(at::kByte));
}

at::Tensor slot_view(const at::Tensor& flat, const layout::Slot& slot, const at::Tensor& like) {
  const at::Tensor part = flat.narrow(0, slot.offset_elements, slot.num_elements);
  if (!like.is_non_overlapping_and_dense()) return part.view(like.sizes());
  return part.as_strided(like.sizes(), like.strides());
}

GradientBuffers::GradientBuffers(const layout::ParameterMap& map, const Stages& stages,
                                 std::vector<bool> temporary, const FlatMemory& memory)
    : temporary_(std::move(temporary)), parts_(map.buckets.size()) {
  for (std::size_t b = 0; b < map.buckets.size(); ++b) {
    const layout::Bucket& bucket = map.buckets[b];
    flat_.push_back(stages.contains(bucket.stage) && !temporary_[b]
                        ? typed(memory, accumulator_type(bucket.dtype), bucket.num_elements)
                        : at::Tensor());
  }
}

void GradientBuffers::make(const layout::Bucket& bucket, int index) {
  if (flat_[index].defined()) return;
  flat_[index] = typed(make_flat_memory, accumulator_type(bucket.dtype), bucket.num_elements);
}

void GradientBuffers::keep(int bucket, const layout::Shard& shard) {
  const std::int64_t num = shard.end_elements - shard.begin_elements;
  parts_[bucket] = {flat_[bucket].narrow(0, shard.begin_elements, num).clone(),
                    shard.begin_elements};
  flat_[bucket] = at::Tensor();
}

void GradientBuffers::drop(int bucket) {
  flat_[bucket] = at::Tensor();
  parts_[bucket] = {};
}

at::Tensor GradientBuffers::elements(int bucket, std::int64_t begin, std::int64_t num) const {
  const Part& part = parts_[bucket];
  if (!part.values.defined()) return flat_[bucket].narrow(0, begin, num);
  // Of a parameter outside the shard there are none, wherever they would begin.
  return part.values.narrow(0, num == 0 ? 0 : begin - part.begin, num);
}

std::vector<at::Tensor> GradientBuffers::all() const {
  std::vector<at::Tensor> all;
  for (std::size_t b = 0; b < flat_.size(); ++b) {
    all.push_back(parts_[b].values.defined() ? parts_[b].values : flat_[b]);
  }
  return all;
}

ParameterStore::ParameterStore(layout::ParameterMap map, const graph::Graph& graph,
                               std::vector<at::Tensor> tensors, const Options& options)
    : map_(std::move(map)), memory_(options.memory) {
  for (const layout::Bucket& bucket : map_.buckets) stages_.insert(bucket.stage);
  if (options.stages) stages_ = *options.stages;
  sharded_ = options.sharded;
  sharded_.resize(map_.buckets.size());
  place_sites();
  for (std::size_t b = 0; b < map_.buckets.size(); ++b) {
    const layout::Bucket& bucket = map_.buckets[b];
    const bool is_here = has_values(bucket);
    values_.push_back(is_here && !sharded_[b]
                          ? typed(memory_, value_type(bucket.dtype), bucket.num_elements)
                          : at::Tensor());
    shards_.push_back(
        is_here && sharded_[b]
            ? std::make_unique<ShardedBucket>(bucket, options.replica, value_type(bucket.dtype))
            : nullptr);
  }
  move_values(graph, tensors, options.fill);
}

/// A mirror bucket has them as soon as one of its owners is elsewhere.
bool ParameterStore::has_values(const layout::Bucket& bucket) const {
  if (!holds(bucket.stage) || bucket.kind == layout::BucketKind::kSite) return false;
  return bucket.kind == layout::BucketKind::kOwner ||
         std::any_of(bucket.slots.begin(), bucket.slots.end(),
                     [&](const layout::Slot& slot) { return !owns(slot.parameter); });
}

std::optional<SlotPlace> ParameterStore::place_of_value(const std::string& parameter) const {
  if (!owners_.contains(parameter)) return std::nullopt;
  if (owns(parameter)) return owner(parameter);
  for (const SlotPlace& place : sites(parameter)) {
    const layout::Bucket& bucket = map_.buckets[place.bucket];
    if (bucket.kind == layout::BucketKind::kMirror && holds(bucket.stage)) return place;
  }
  return std::nullopt;
}

void ParameterStore::place_sites() {
  for (std::size_t b = 0; b < map_.buckets.size(); ++b) {
    const layout::Bucket& bucket = map_.buckets[b];
    for (std::size_t s = 0; s < bucket.slots.size(); ++s) {
      const layout::Slot& slot = bucket.slots[s];
      const SlotPlace place{static_cast<int>(b), static_cast<int>(s)};
      auto& sites = sites_[slot.parameter];
      if (static_cast<int>(sites.size()) <= slot.site) sites.resize(slot.site + 1);
      sites[slot.site] = place;
      if (bucket.kind == layout::BucketKind::kOwner) owners_[slot.parameter] = place;
    }
  }
  for (const auto& [name, place] : owners_) {
    if (owns(name)) names_.push_back(name);
  }
}

void ParameterStore::move_values(const graph::Graph& graph, const std::vector<at::Tensor>& tensors,
                                 const std::function<void(const at::Tensor&)>& fill) {
  const at::NoGradGuard no_grad;
  for (const graph::Parameter& parameter : graph.parameters) {
    if (!owners_.contains(parameter.name)) continue;
    at::Tensor tensor = tensors[parameter.value];
    const auto place = place_of_value(parameter.name);
    if (!place) {
      tensor.set_data(at::empty({0}, tensor.options()));
      continue;
    }
    if (fill) fill(tensor);
    move_value(parameter.name, *place, std::move(tensor));
  }
}

void ParameterStore::move_value(const std::string& parameter, SlotPlace place, at::Tensor tensor) {
  at::Tensor& view = views_[parameter];
  if (ShardedBucket* shards = shards_[place.bucket].get()) {
    view = shards->add(slot(place), tensor.detach());
    tensor.set_data(view);
    return;
  }
  view = slot_view(values_[place.bucket], slot(place), tensor.detach());
  view.copy_(tensor.detach());
  tensor.set_data(with_own_storage(view));
}

const at::Tensor& ParameterStore::value(const std::string& parameter) const {
  const auto found = views_.find(parameter);
  if (found == views_.end()) {
    throw Error(ErrorKind::kInvalidArgument,
                "'" + parameter + "' is no trainable parameter of the recording's stages here");
  }
  return found->second;
}

at::Tensor ParameterStore::flat_value(const std::string& parameter) const {
  value(parameter);  // the check
  const SlotPlace place = *place_of_value(parameter);
  return values_[place.bucket].narrow(0, slot(place).offset_elements, slot(place).num_elements);
}

at::Tensor ParameterStore::kept_value(const std::string& parameter) const {
  const SlotPlace place = owner(parameter);
  const layout::Slot& own = slot(place);
  std::int64_t begin = own.offset_elements, end = begin + own.num_elements;
  if (const ShardedBucket* shards = sharded(place.bucket)) {
    begin = std::clamp(shards->range().begin_elements, begin, end);
    end = std::clamp(shards->range().end_elements, begin, end);
  }
  return elements(place.bucket, begin, end - begin);
}

at::Tensor ParameterStore::elements(int bucket, std::int64_t begin, std::int64_t num) const {
  const ShardedBucket* shards = sharded(bucket);
  if (shards == nullptr) return values_[bucket].narrow(0, begin, num);
  // Of a parameter outside the shard there are none, wherever they would begin.
  if (num == 0) return shards->shard().narrow(0, 0, 0);
  return shards->shard().narrow(0, begin - shards->range().begin_elements, num);
}

const std::vector<SlotPlace>& ParameterStore::sites(const std::string& parameter) const {
  return sites_.at(parameter);
}

at::Tensor ParameterStore::gradient_view(const GradientBuffers& gradients,
                                         const std::string& parameter, int site) const {
  const SlotPlace place = sites_.at(parameter).at(site);
  return slot_view(gradients.flat(place.bucket), slot(place), value(parameter));
}

}  // namespace trireme::parameters
