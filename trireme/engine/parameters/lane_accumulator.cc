#include "trireme/engine/parameters/lane_accumulator.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
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
                                 int num_lanes, const FlatMemory& sums_memory)
    : store_(store), sites_in_(store.map().buckets.size()), num_lanes_(num_lanes) {
  for (int i = 0; i < kernels::LaneTree::num_buffers(num_lanes); ++i) {
    buffers_.push_back(i == 0 && sums_memory ? store.make_gradients(sums_memory)
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
        place.views.push_back(store.gradient_view(buffers, place.parameter, place.site));
      }
    }
    places_.push_back(std::move(place));
  }
}

void LaneAccumulator::begin_step() {
  tree_ = std::make_unique<kernels::LaneTree>(num_lanes_);
  lane_buffer_ = tree_->next_buffer();
  on_sum_ = nullptr;
  for (Place& place : places_) place.written = place.reached = false;
}

void LaneAccumulator::accept(int site, const at::Tensor& gradient) {
  const at::NoGradGuard no_grad;
  Place& place = places_[site];
  fold(place.written ? FoldStep::kNext : FoldStep::kFirst, gradient, place.views[lane_buffer_]);
  place.written = place.reached = true;
  if (on_sum_ && --missing_[place.bucket] == 0) finish_bucket(place.bucket);
}

void LaneAccumulator::begin_last_microbatch(std::function<void(int)> on_sum) {
  on_sum_ = std::move(on_sum);
  missing_.clear();
  for (const std::vector<int>& sites : sites_in_)
    missing_.push_back(static_cast<int>(sites.size()));
}

/// The first bucket of a lane to be finished decides its merges, which are those of all.
void LaneAccumulator::finish_bucket(int bucket) {
  const at::NoGradGuard no_grad;
  if (finished_.empty()) merges_ = tree_->push();
  finished_.insert(bucket);
  for (int site : sites_in_[bucket]) {
    if (!places_[site].written) places_[site].views[lane_buffer_].zero_();
    places_[site].written = false;
  }
  for (const kernels::Merge merge : merges_) {
    add_flat(buffers_[merge.left].flat(bucket), buffers_[merge.right].flat(bucket));
  }
  if (on_sum_) on_sum_(bucket);
}

void LaneAccumulator::end_lane() {
  for (int b = 0; b < static_cast<int>(sites_in_.size()); ++b) {
    if (!sites_in_[b].empty() && !finished_.contains(b)) finish_bucket(b);
  }
  if (finished_.empty()) tree_->push();
  finished_.clear();
  if (!tree_->is_complete()) lane_buffer_ = tree_->next_buffer();
}

void LaneAccumulator::end_step(const RemoteSites& remote) {
  const at::NoGradGuard no_grad;
  TRIREME_CHECK(tree_->is_complete(), "a step ends before its last lane");
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
