#include "packs/vision/kernels/roi_align.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "packs/vision/operators/detection.h"
#include "trireme/engine/operators/kernel_operator.h"

namespace trireme::vision {
namespace {

using operators::internal::BelowAutograd;
using operators::internal::Expect;
using operators::internal::find_operator;
using operators::internal::kernel_below_autograd;
using operators::internal::under_autocast;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
constexpr auto kChannelsLast = at::MemoryFormat::ChannelsLast;

FeatureShape shape_of(at::IntArrayRef sizes) {
  return {.batch = sizes[0], .height = sizes[2], .width = sizes[3], .channels = sizes[1]};
}

at::Tensor forward_kernel(const at::Tensor& given_features, const at::Tensor& given_regions,
                          std::int64_t pooled_height, std::int64_t pooled_width, double scale,
                          std::int64_t num_samples, bool is_aligned) {
  const at::Tensor features = given_features.contiguous(kChannelsLast);
  const at::Tensor regions = given_regions.contiguous();
  const at::Tensor out = at::empty({regions.size(0), features.size(1), pooled_height, pooled_width},
                                   features.options().memory_format(kChannelsLast));
  roi_align({pooled_height, pooled_width, scale, num_samples, is_aligned},
            shape_of(features.sizes()), features.const_data_ptr<float>(),
            regions.const_data_ptr<float>(), regions.size(0), out.mutable_data_ptr<float>(),
            operators::internal::on_torch_threads);
  return out;
}

at::Tensor backward_kernel(const at::Tensor& given_gradient, const at::Tensor& given_regions,
                           at::IntArrayRef shape, double scale, std::int64_t num_samples,
                           bool is_aligned) {
  const at::Tensor gradient = given_gradient.contiguous(kChannelsLast);
  const at::Tensor regions = given_regions.contiguous();
  const at::Tensor made = at::empty(shape, gradient.options().memory_format(kChannelsLast)).zero_();
  roi_align_backward({gradient.size(2), gradient.size(3), scale, num_samples, is_aligned},
                     shape_of(shape), gradient.const_data_ptr<float>(),
                     regions.const_data_ptr<float>(), regions.size(0),
                     made.mutable_data_ptr<float>(), operators::internal::on_torch_threads);
  return made;
}

class RoiAlign : public torch::autograd::Function<RoiAlign> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& features,
                            const at::Tensor& regions, std::int64_t pooled_height,
                            std::int64_t pooled_width, double scale, std::int64_t num_samples,
                            bool is_aligned) {
    static const auto op = find_operator<decltype(forward_kernel)>("trireme::_roi_align");
    context->save_for_backward({regions});
    context->saved_data["shape"] = features.sym_sizes();
    context->saved_data["scale"] = scale;
    context->saved_data["num_samples"] = num_samples;
    context->saved_data["is_aligned"] = is_aligned;
    const BelowAutograd below;
    return op.call(features, regions, pooled_height, pooled_width, scale, num_samples, is_aligned);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    using Backward = at::Tensor(const at::Tensor&, const at::Tensor&, c10::SymIntArrayRef, double,
                                std::int64_t, bool);
    static const auto op = find_operator<Backward>("trireme::_roi_align_backward");
    auto& saved = context->saved_data;
    const at::Tensor regions = context->get_saved_variables()[0];
    const at::Tensor made = [&] {
      const BelowAutograd below;
      return op.call(gradients[0], regions, saved["shape"].toSymIntVector(),
                     saved["scale"].toDouble(), saved["num_samples"].toInt(),
                     saved["is_aligned"].toBool());
    }();
    return operators::internal::once_differentiable("roi_align", {made, {}, {}, {}, {}, {}, {}});
  }
};

at::Tensor run_roi_align(const at::Tensor& features, const at::Tensor& regions,
                         std::int64_t pooled_height, std::int64_t pooled_width, double scale,
                         std::int64_t num_samples, bool is_aligned) {
  const Expect expect("roi_align");
  expect.dtype("features", features, {at::kFloat});
  expect.dims("features", features, 4);
  expect.dtype("regions", regions, {at::kFloat});
  expect.dims("regions", regions, 2);
  expect.shape("regions", regions, {regions.sym_size(0), 5});
  expect.no_gradient("regions", regions);
  if (pooled_height < 1 || pooled_width < 1) {
    expect.fail("the pooled size must be 1 x 1 or larger, is " + std::to_string(pooled_height) +
                " x " + std::to_string(pooled_width));
  }
  return RoiAlign::apply(features, regions, pooled_height, pooled_width, scale, num_samples,
                         is_aligned);
}

TORCH_LIBRARY_FRAGMENT(trireme, library) {
  library.def(
      "roi_align(Tensor features, Tensor regions, int pooled_height=7, int pooled_width=7, "
      "float scale=1., int num_samples=0, bool is_aligned=False) -> Tensor");
  library.impl("roi_align", run_roi_align);
  library.def(
      "_roi_align(Tensor features, Tensor regions, int pooled_height, int pooled_width, "
      "float scale, int num_samples, bool is_aligned) -> Tensor");
  library.impl("_roi_align", kernel_below_autograd(forward_kernel));
  library.def(
      "_roi_align_backward(Tensor gradient, Tensor regions, SymInt[] shape, float scale, "
      "int num_samples, bool is_aligned) -> Tensor");
  library.impl("_roi_align_backward", kernel_below_autograd(backward_kernel));
}

TORCH_LIBRARY_IMPL(trireme, AutocastCPU, library) { library.impl("roi_align", under_autocast()); }

}  // namespace

at::Tensor roi_align(const at::Tensor& features, const at::Tensor& regions,
                     const RoiAlignOptions& options) {
  static const auto op =
      operators::internal::find_operator<decltype(run_roi_align)>("trireme::roi_align");
  return op.call(features, regions, options.pooled_height, options.pooled_width, options.scale,
                 options.num_samples, options.is_aligned);
}

}  // namespace trireme::vision
