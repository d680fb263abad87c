#include "trireme/engine/serial/lane_accumulator.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include "trireme/base/error.h"
#include "trireme/kernels/half.h"
#include "trireme/kernels/reduce/fold.h"

namespace trireme::serial {
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

LaneAccumulator::LaneAccumulator(const parameters::ParameterStore& store, const graph::Graph& graph,
                                 int num_lanes)
    : store_(store), num_lanes_(num_lanes) {
  for (int i = 0; i < kernels::LaneTree::num_buffers(num_lanes); ++i) {
    buffers_.push_back(store.make_gradients());
  }
  for (const graph::UseSite& site : graph::use_sites(graph)) {
    Place place{.parameter = graph.parameters[site.parameter].name, .site = site.site, .views = {}};
    for (const auto& buffers : buffers_) {
      place.views.push_back(store.gradient_view(buffers, place.parameter, place.site));
    }
    places_.push_back(std::move(place));
  }
}

void LaneAccumulator::begin_step() {
  tree_ = std::make_unique<kernels::LaneTree>(num_lanes_);
  for (Place& place : places_) place.written = false;
  reached_.clear();
}

void LaneAccumulator::accept(int site, const at::Tensor& gradient) {
  const at::NoGradGuard no_grad;
  Place& place = places_[site];
  fold(place.written ? FoldStep::kNext : FoldStep::kFirst, gradient,
       place.views[tree_->next_buffer()]);
  place.written = true;
  reached_.insert(place.parameter);
}

void LaneAccumulator::end_lane() {
  const int lane_buffer = tree_->next_buffer();
  for (Place& place : places_) {
    if (!place.written) place.views[lane_buffer].zero_();
    place.written = false;
  }
  for (const kernels::Merge merge : tree_->push()) {
    for (std::size_t b = 0; b < store_.map().buckets.size(); ++b) {
      add_flat(buffers_[merge.left].flat(static_cast<int>(b)),
               buffers_[merge.right].flat(static_cast<int>(b)));
    }
  }
}

void LaneAccumulator::end_step() {
  TRIREME_CHECK(tree_->is_complete(), "a step ends before its last lane");
  for (const std::string& name : store_.names()) sum_sites(name);
}

void LaneAccumulator::sum_sites(const std::string& parameter) {
  const auto& sites = store_.sites(parameter);
  if (sites.size() < 2) return;
  const auto part = [&](const parameters::SlotPlace& place) {
    const parameters::Slot& slot = store_.slot(place);
    return buffers_[0].flat(place.bucket).narrow(0, slot.offset_elements, slot.num_elements);
  };
  const at::Tensor sum = part(sites[0]);
  for (std::size_t i = 1; i < sites.size(); ++i) add_flat(sum, part(sites[i]));
  const at::Tensor owner = part(store_.owner(parameter));
  if (owner.data_ptr() != sum.data_ptr()) owner.copy_(sum);
}

}  // namespace trireme::serial
