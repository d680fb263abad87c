#include "packs/vision/operators/ssd_loss.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <tuple>

#include "trireme/engine/operators/kernel_operator.h"
#include "trireme/error.h"

namespace trireme::vision {
namespace {

using at::Tensor;
using operators::internal::BelowAutograd;
using operators::internal::Expect;
using operators::internal::find_operator;
using operators::internal::kernel_below_autograd;
using operators::internal::on_torch_threads;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

using Sums = std::tuple<Tensor, Tensor, Tensor>;

/// The sums, then what the backward needs: slopes, classes, is_chosen, log_sums.
using Made = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;
using Gradients = std::tuple<Tensor, Tensor>;

Made loss_kernel(const Tensor& given_codes, const Tensor& given_logits, const Tensor& given_boxes,
                 const Tensor& given_labels, const Tensor& given_anchors, double threshold,
                 double ratio) {
  const Tensor codes = given_codes.contiguous(), logits = given_logits.contiguous();
  const Tensor boxes = given_boxes.contiguous(), labels = given_labels.contiguous();
  const Tensor anchors = given_anchors.contiguous();
  const std::int64_t batch = logits.size(0), count = logits.size(1);
  const Tensor box_sums = at::empty({batch}, at::kFloat), class_sums = at::empty_like(box_sums);
  const Tensor num_matched = at::empty({batch}, at::kLong);
  const Tensor slopes = at::zeros({batch, count, 4}, at::kFloat);
  const Tensor classes = at::zeros({batch, count}, at::kLong);
  const Tensor is_chosen = at::empty({batch, count}, at::kBool);
  const Tensor log_sums = at::empty({batch, count}, at::kFloat);
  try {
    ssd_loss({.overlap = threshold, .negatives_ratio = ratio},
             {.num_images = batch,
              .num_anchors = count,
              .num_classes = logits.size(2),
              .num_places = labels.size(1),
              .codes = codes.const_data_ptr<float>(),
              .logits = logits.const_data_ptr<float>(),
              .boxes = boxes.const_data_ptr<float>(),
              .labels = labels.const_data_ptr<std::int64_t>(),
              .anchors = anchors.const_data_ptr<float>()},
             {.boxes = box_sums.mutable_data_ptr<float>(),
              .classes = class_sums.mutable_data_ptr<float>(),
              .num_matched = num_matched.mutable_data_ptr<std::int64_t>()},
             {.classes = classes.mutable_data_ptr<std::int64_t>(),
              .is_chosen = static_cast<std::uint8_t*>(is_chosen.mutable_data_ptr()),
              .log_sums = log_sums.mutable_data_ptr<float>(),
              .slopes = slopes.mutable_data_ptr<float>()},
             on_torch_threads);
  } catch (const Error& error) {
    Expect("ssd_loss").fail(error.message());
  }
  return {box_sums, class_sums, num_matched, slopes, classes, is_chosen, log_sums};
}

Gradients loss_backward_kernel(const Tensor& given_box_gradients,
                               const Tensor& given_class_gradients, const Tensor& given_logits,
                               const Tensor& slopes, const Tensor& classes, const Tensor& is_chosen,
                               const Tensor& log_sums) {
  const Tensor logits = given_logits.contiguous();
  const Tensor of_boxes = given_box_gradients.contiguous();
  const Tensor of_classes = given_class_gradients.contiguous();
  Gradients made = {at::empty_like(slopes), at::empty_like(logits)};
  const auto num_images = static_cast<std::size_t>(logits.size(0));
  ssd_loss_backward({.num_images = logits.size(0),
                     .num_anchors = logits.size(1),
                     .num_classes = logits.size(2),
                     .logits = logits.const_data_ptr<float>()},
                    {.classes = classes.const_data_ptr<std::int64_t>(),
                     .is_chosen = static_cast<const std::uint8_t*>(is_chosen.const_data_ptr()),
                     .log_sums = log_sums.const_data_ptr<float>(),
                     .slopes = slopes.const_data_ptr<float>()},
                    {.boxes = {of_boxes.const_data_ptr<float>(), num_images},
                     .classes = {of_classes.const_data_ptr<float>(), num_images}},
                    std::get<0>(made).mutable_data_ptr<float>(),
                    std::get<1>(made).mutable_data_ptr<float>(), on_torch_threads);
  return made;
}

class SsdLossFunction : public torch::autograd::Function<SsdLossFunction> {
 public:
  static variable_list forward(AutogradContext* context, const Tensor& codes, const Tensor& logits,
                               const Tensor& boxes, const Tensor& labels, const Tensor& anchors,
                               double threshold, double ratio) {
    static const auto op = find_operator<decltype(loss_kernel)>("trireme::_ssd_loss");
    const auto [box_sums, class_sums, num_matched, slopes, classes, is_chosen, log_sums] = [&] {
      const BelowAutograd below;
      return op.call(codes, logits, boxes, labels, anchors, threshold, ratio);
    }();
    context->save_for_backward({logits, slopes, classes, is_chosen, log_sums});
    context->mark_non_differentiable({num_matched});
    return {box_sums, class_sums, num_matched};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    static const auto op =
        find_operator<decltype(loss_backward_kernel)>("trireme::_ssd_loss_backward");
    const variable_list saved = context->get_saved_variables();
    const auto [codes, logits] = [&] {
      const BelowAutograd below;
      return op.call(gradients[0], gradients[1], saved[0], saved[1], saved[2], saved[3], saved[4]);
    }();
    return operators::internal::once_differentiable("ssd_loss",
                                                    {codes, logits, {}, {}, {}, {}, {}});
  }
};

Sums run_ssd_loss(const Tensor& codes, const Tensor& logits, const Tensor& boxes,
                  const Tensor& labels, const Tensor& anchors, double threshold, double ratio) {
  const Expect expect("ssd_loss");
  expect.dtype("codes", codes, {at::kFloat});
  expect.dtype("logits", logits, {at::kFloat});
  expect.dtype("boxes", boxes, {at::kFloat});
  expect.dtype("labels", labels, {at::kLong});
  expect.dtype("anchors", anchors, {at::kFloat});
  expect.no_gradient("boxes", boxes);
  expect.no_gradient("anchors", anchors);
  expect.dims("logits", logits, 3);
  expect.dims("labels", labels, 2);
  const c10::SymInt images = logits.sym_size(0), count = logits.sym_size(1);
  expect.shape("codes", codes, {images, count, 4});
  expect.shape("anchors", anchors, {count, 4});
  expect.shape("labels", labels, {images, labels.sym_size(1)});
  expect.shape("boxes", boxes, {images, labels.sym_size(1), 4});
  const variable_list made =
      SsdLossFunction::apply(codes, logits, boxes, labels, anchors, threshold, ratio);
  return {made[0], made[1], made[2]};
}

TORCH_LIBRARY_FRAGMENT(trireme, library) {
  library.def(
      "ssd_loss(Tensor codes, Tensor logits, Tensor boxes, Tensor labels, Tensor anchors, "
      "float threshold=0.5, float negatives_ratio=3) -> "
      "(Tensor box_losses, Tensor class_losses, Tensor num_matched)");
  library.impl("ssd_loss", run_ssd_loss);
  library.def(
      "_ssd_loss(Tensor codes, Tensor logits, Tensor boxes, Tensor labels, Tensor anchors, "
      "float threshold, float negatives_ratio) -> (Tensor box_losses, Tensor class_losses, "
      "Tensor num_matched, Tensor slopes, Tensor classes, Tensor is_chosen, Tensor log_sums)");
  library.impl("_ssd_loss", kernel_below_autograd(loss_kernel));
  library.def(
      "_ssd_loss_backward(Tensor box_gradients, Tensor class_gradients, Tensor logits, "
      "Tensor slopes, Tensor classes, Tensor is_chosen, Tensor log_sums) -> "
      "(Tensor codes, Tensor logits)");
  library.impl("_ssd_loss_backward", kernel_below_autograd(loss_backward_kernel));
}

TORCH_LIBRARY_IMPL(trireme, AutocastCPU, library) {
  library.impl("ssd_loss", operators::internal::under_autocast());
}

}  // namespace

SsdLossSums ssd_loss(const SsdLossTensors& tensors, const SsdLossOptions& options) {
  static const auto op = find_operator<decltype(run_ssd_loss)>("trireme::ssd_loss");
  const auto [boxes, classes, num_matched] =
      op.call(tensors.codes, tensors.logits, tensors.boxes, tensors.labels, tensors.anchors,
              options.overlap, options.negatives_ratio);
  return {boxes, classes, num_matched};
}

}  // namespace trireme::vision
