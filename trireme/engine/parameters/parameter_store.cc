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
                                 const FlatMemory& memory) {
  for (const layout::Bucket& bucket : map.buckets) {
    flat_.push_back(stages.contains(bucket.stage)
                        ? typed(memory, accumulator_type(bucket.dtype), bucket.num_elements)
                        : at::Tensor());
  }
}

ParameterStore::ParameterStore(layout::ParameterMap map, const graph::Graph& graph,
                               std::vector<at::Tensor> tensors, const Options& options)
    : map_(std::move(map)), memory_(options.memory) {
  for (const layout::Bucket& bucket : map_.buckets) stages_.insert(bucket.stage);
  if (options.stages) stages_ = *options.stages;
  place_sites();
  for (const layout::Bucket& bucket : map_.buckets) {
    values_.push_back(has_values(bucket)
                          ? typed(memory_, value_type(bucket.dtype), bucket.num_elements)
                          : at::Tensor());
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
    const at::Tensor view = slot_view(values_[place->bucket], slot(*place), tensor.detach());
    view.copy_(tensor.detach());
    tensor.set_data(with_own_storage(view));
    views_[parameter.name] = view;
  }
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

const std::vector<SlotPlace>& ParameterStore::sites(const std::string& parameter) const {
  return sites_.at(parameter);
}

at::Tensor ParameterStore::gradient_view(const GradientBuffers& gradients,
                                         const std::string& parameter, int site) const {
  const SlotPlace place = sites_.at(parameter).at(site);
  return slot_view(gradients.flat(place.bucket), slot(place), value(parameter));
}

}  // namespace trireme::parameters
