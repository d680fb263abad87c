#include "trireme/engine/parameters/lane_accumulator.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "trireme/base/check.h"
#include "trireme/error.h"
#include "trireme/kernels/half.h"
#include "trireme/kernels/reduce/fold.h"

namespace trireme::parameters {
namespace {

using kernels::FoldStep;

/// The gradient with the strides of `view`, so that both are walked in memory order.
at::Tensor match(const at::Tensor& gradient, const at::Tensor& view) {
  if (gradient.layout() != at::kStrided) return match(gradient.to_dense(), view);
  if (gradient.strides() == view.strides()) return gradient;
  return at::empty_strided(view.sizes(), view.strides(), gradient.options()).copy_(gradient);
}

template <typename Source, typename Accumulator>
void fold(FoldStep step, const at::Tensor& source, at::Tensor& accumulator) {
  kernels::fold(step, static_cast<const Source*>(source.const_data_ptr()),
                static_cast<Accumulator*>(accumulator.mutable_data_ptr()), source.numel());
}

void fold(FoldStep step, const at::Tensor& gradient, at::Tensor& view) {
  const at::Tensor source = match(gradient, view);
  if (view.scalar_type() == at::kDouble) {
    return source.scalar_type() == at::kDouble ? fold<double, double>(step, source, view)
                                               : fold<float, double>(step, source, view);
  }
  switch (source.scalar_type()) {
    case at::kFloat:
      return fold<float, float>(step, source, view);
    case at::kBFloat16:
      return fold<kernels::Bf16, float>(step, source, view);
    case at::kHalf:
      return fold<kernels::F16, float>(step, source, view);
    default:
      throw Error(ErrorKind::kInvalidArgument,
                  std::string("a gradient has dtype ") + c10::toString(source.scalar_type()));
  }
}

void add_flat(const at::Tensor& left, const at::Tensor& right) {
  if (left.scalar_type() == at::kDouble) {
    kernels::add_into(left.mutable_data_ptr<double>(), right.const_data_ptr<double>(),
                      left.numel());
  } else {
    kernels::add_into(left.mutable_data_ptr<float>(), right.const_data_ptr<float>(), left.numel());
  }
}

}  // namespace

LaneAccumulator::LaneAccumulator(const ParameterStore& store, const graph::Graph& graph,
                                 int num_lanes, const Options& options)
    : store_(store),
      sites_in_(store.map().buckets.size()),
      missing_(store.map().buckets.size()),
      num_lanes_(num_lanes),
      num_replicas_(options.num_replicas),
      dtype_(options.dtype) {
  for (const int stage : store.stages()) lanes_[stage].folds.resize(num_replicas_);
  for (int i = 0; i < num_replicas_ * kernels::LaneTree::num_buffers(num_lanes); ++i) {
    buffers_.push_back(i == 0 && options.memory ? store.make_gradients(options.memory)
                                                : store.make_gradients());
  }
  for (const graph::UseSite& site : graph::use_sites(graph)) {
    const int index = num_sites();
    Place place{.parameter = graph.parameters[site.parameter].name, .site = site.site, .views = {}};
    place.bucket = store.sites(place.parameter)[site.site].bucket;
    sites_of_[place.parameter].push_back(index);
    if (store.holds(store.map().buckets[place.bucket].stage)) {
      sites_in_[place.bucket].push_back(index);
      for (const auto& buffers : buffers_) {
        const bool is_here = !buffers.is_temporary(place.bucket);
        place.views.push_back(is_here ? store.gradient_view(buffers, place.parameter, place.site)
                                      : at::Tensor());
      }
    }
    places_.push_back(std::move(place));
  }
  for (int b = 0; b < static_cast<int>(sites_in_.size()); ++b) {
    if (!sites_in_[b].empty()) lanes_of(b).buckets.push_back(b);
  }
}

void LaneAccumulator::begin_step() {
  for (auto& [stage, lanes] : lanes_) {
    lanes.on_sum = nullptr;
    for (Fold& fold : lanes.folds) {
      fold.tree = std::make_unique<kernels::LaneTree>(num_lanes_);
      fold.finished.clear();
    }
    for (int r = 0; r < num_replicas_; ++r) {
      lanes.folds[r].buffer = first_buffer(r) + lanes.folds[r].tree->next_buffer();
    }
  }
  replica_ = 0;
  for (Place& place : places_) {
    place.written.assign(num_replicas_, false);
    place.reached = false;
  }
  for (int b = 0; b < static_cast<int>(sites_in_.size()); ++b) {
    if (buffers_[0].is_temporary(b)) drop_buffer(0, b);
  }
}

void LaneAccumulator::make_buffer(int buffer, int bucket) {
  GradientBuffers& buffers = buffers_[buffer];
  if (buffers.flat(bucket).defined()) return;
  buffers.make(store_.map().buckets[bucket], bucket);
  for (const int site : sites_in_[bucket]) {
    Place& place = places_[site];
    place.views[buffer] = store_.gradient_view(buffers, place.parameter, place.site);
  }
}

void LaneAccumulator::drop_buffer(int buffer, int bucket) {
  buffers_[buffer].drop(bucket);
  forget_views(buffer, bucket);
}

void LaneAccumulator::keep_shard(int bucket, const layout::Shard& shard) {
  if (!buffers_[0].is_temporary(bucket)) return;
  buffers_[0].keep(bucket, shard);
  forget_views(0, bucket);
}

void LaneAccumulator::forget_views(int buffer, int bucket) {
  for (const int site : sites_in_[bucket]) places_[site].views[buffer] = at::Tensor();
}

void LaneAccumulator::accept(int site, const at::Tensor& gradient) {
  const at::NoGradGuard no_grad;
  Place& place = places_[site];
  const Lanes& lanes = lanes_of(place.bucket);
  const int buffer = lanes.folds[replica_].buffer;
  make_buffer(buffer, place.bucket);
  fold(place.written[replica_] ? FoldStep::kNext : FoldStep::kFirst, gradient, place.views[buffer]);
  place.written[replica_] = place.reached = true;
  if (lanes.on_sum && --missing_[place.bucket] == 0) finish_bucket(place.bucket);
}

void LaneAccumulator::begin_last_microbatch(int stage, std::function<void(int)> on_sum) {
  Lanes& lanes = lanes_.at(stage);
  lanes.on_sum = std::move(on_sum);
  for (const int bucket : lanes.buckets)
    missing_[bucket] = static_cast<int>(sites_in_[bucket].size());
}

/// All lanes of all replicas.
bool LaneAccumulator::is_whole(const Fold& fold) const {
  return replica_ == num_replicas_ - 1 && fold.tree->is_complete();
}

void LaneAccumulator::push(Fold& fold) {
  fold.merges.clear();
  for (const auto& [left, right] : fold.tree->push()) {
    fold.merges.push_back({first_buffer(replica_) + left, first_buffer(replica_) + right});
  }
  if (!is_whole(fold)) return;
  for (const auto& [left, right] : kernels::tree_merges(num_replicas_)) {
    fold.merges.push_back({first_buffer(left), first_buffer(right)});
  }
}

/// The first bucket of a stage's lane to be finished decides its merges, which are those of all.
void LaneAccumulator::finish_bucket(int bucket) {
  const at::NoGradGuard no_grad;
  Lanes& lanes = lanes_of(bucket);
  Fold& fold = lanes.folds[replica_];
  if (fold.finished.empty()) push(fold);
  fold.finished.insert(bucket);
  make_buffer(fold.buffer, bucket);
  for (int site : sites_in_[bucket]) {
    if (!places_[site].written[replica_]) places_[site].views[fold.buffer].zero_();
    places_[site].written[replica_] = false;
  }
  for (const kernels::Merge merge : fold.merges) this->merge(merge, bucket);
  for (int i = 1; is_whole(fold) && i < std::ssize(buffers_); ++i) {
    if (buffers_[i].is_temporary(bucket)) drop_buffer(i, bucket);
  }
  if (lanes.on_sum) return lanes.on_sum(bucket);
  if (!is_whole(fold) || !is_rounded(bucket)) return;
  const at::Tensor& sum = buffers_[0].flat(bucket);
  kernels::round_through_bf16(sum.mutable_data_ptr<float>(), sum.numel());
}

void LaneAccumulator::merge(kernels::Merge merge, int bucket) {
  const at::Tensor& left = buffers_[merge.left].flat(bucket);
  const at::Tensor& right = buffers_[merge.right].flat(bucket);
  if (!is_rounded(bucket)) return add_flat(left, right);
  kernels::add_rounded(left.mutable_data_ptr<float>(), right.const_data_ptr<float>(), left.numel());
}

void LaneAccumulator::end_lane(int stage) {
  Lanes& lanes = lanes_.at(stage);
  Fold& fold = lanes.folds[replica_];
  for (const int bucket : lanes.buckets) {
    if (!fold.finished.contains(bucket)) finish_bucket(bucket);
  }
  if (fold.finished.empty()) push(fold);
  fold.finished.clear();
  if (!fold.tree->is_complete()) fold.buffer = first_buffer(replica_) + fold.tree->next_buffer();
}

void LaneAccumulator::end_lane() {
  for (const auto& [stage, lanes] : lanes_) end_lane(stage);
}

void LaneAccumulator::end_step(const RemoteSites& remote) {
  const at::NoGradGuard no_grad;
  for (const auto& [stage, lanes] : lanes_) {
    for (const Fold& fold : lanes.folds)
      TRIREME_CHECK(fold.tree->is_complete(), "a step ends before its last lane");
  }
  for (const std::string& name : store_.names()) sum_sites(name, remote);
}

at::Tensor LaneAccumulator::site_sum(int site) const {
  const SlotPlace place = store_.sites(places_[site].parameter)[places_[site].site];
  const layout::Slot& slot = store_.slot(place);
  return buffers_[0].flat(place.bucket).narrow(0, slot.offset_elements, slot.num_elements);
}

bool LaneAccumulator::has_gradient(const std::string& parameter) const {
  const std::vector<int>& sites = sites_of_.at(parameter);
  return std::any_of(sites.begin(), sites.end(), [&](int site) { return has_reached(site); });
}

void LaneAccumulator::sum_sites(const std::string& parameter, const RemoteSites& remote) {
  const std::vector<int>& sites = sites_of_.at(parameter);
  if (sites.size() < 2) return;
  const auto part = [&](int site) {
    const auto found = remote.find(site);
    return found == remote.end() ? site_sum(site) : found->second;
  };
  at::Tensor sum = part(sites[0]);
  for (std::size_t i = 1; i < sites.size(); ++i) add_flat(sum, part(sites[i]));
  const SlotPlace place = store_.owner(parameter);
  const layout::Slot& slot = store_.slot(place);
  const at::Tensor owner =
      buffers_[0].flat(place.bucket).narrow(0, slot.offset_elements, slot.num_elements);
  if (owner.data_ptr() != sum.data_ptr()) owner.copy_(sum);
}

}  // namespace trireme::parameters
