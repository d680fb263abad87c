#include "packs/vision/operators/detection.h"

#include <ATen/Functions.h>
#include <torch/library.h>

#include <span>
#include <tuple>
#include <vector>

#include "packs/vision/kernels/nms.h"
#include "packs/vision/kernels/selection.h"
#include "trireme/engine/operators/kernel_operator.h"
#include "trireme/error.h"

namespace trireme::vision {
namespace {

using operators::internal::Expect;
using operators::internal::kernel_below_autograd;
using operators::internal::under_autocast;
using Places = std::tuple<at::Tensor, at::Tensor>;

/// Row b of a contiguous tensor.
template <typename T>
std::span<const T> row(const at::Tensor& tensor, std::int64_t b) {
  const std::int64_t count = c10::multiply_integers(tensor.sizes().slice(1));
  return {static_cast<const T*>(tensor.const_data_ptr()) + b * count,
          static_cast<std::size_t>(count)};
}

template <typename T>
std::span<T> mutable_row(const at::Tensor& tensor, std::int64_t b) {
  const std::int64_t count = c10::multiply_integers(tensor.sizes().slice(1));
  return {static_cast<T*>(tensor.mutable_data_ptr()) + b * count, static_cast<std::size_t>(count)};
}

void check_capacity(const Expect& expect, std::int64_t capacity) {
  if (capacity < 0) {
    expect.fail("capacity must be 0 or more, is " + std::to_string(capacity));
  }
}

Places empty_places(std::int64_t batch, std::int64_t capacity) {
  return {at::zeros({batch, capacity}, at::kLong), at::zeros({batch}, at::kLong)};
}

/// Runs `work` for each image of a batch; its errors name the image.
template <typename Work>
void for_images(const Expect& expect, std::int64_t batch, const Work& work) {
  operators::internal::on_torch_threads(batch, [&](std::int64_t b) {
    try {
      work(b);
    } catch (const Error& error) {
      expect.fail("image " + std::to_string(b) + ": " + error.message());
    }
  });
}

Places run_nms(const at::Tensor& given_boxes, const at::Tensor& given_scores,
               const at::Tensor& given_classes, double threshold, std::int64_t capacity) {
  const Expect expect("fixed_nms");
  expect.dtype("boxes", given_boxes, {at::kFloat});
  expect.dtype("scores", given_scores, {at::kFloat});
  expect.dtype("classes", given_classes, {at::kLong, at::kInt});
  expect.dims("scores", given_scores, 2);
  expect.shape("boxes", given_boxes, {given_scores.size(0), given_scores.size(1), 4});
  expect.shape("classes", given_classes, given_scores.sym_sizes());
  check_capacity(expect, capacity);
  const at::Tensor boxes = given_boxes.contiguous(), scores = given_scores.contiguous();
  const at::Tensor classes = given_classes.to(at::kLong).contiguous();
  Places result = empty_places(scores.size(0), capacity);
  const auto& [places, counts] = result;
  for_images(expect, scores.size(0), [&](std::int64_t b) {
    mutable_row<std::int64_t>(counts, b)[0] =
        fixed_nms(row<float>(boxes, b), row<float>(scores, b), row<std::int64_t>(classes, b),
                  threshold, mutable_row<std::int64_t>(places, b));
  });
  return result;
}

template <typename T>
std::span<const T> elements(const at::Tensor& tensor) {
  return {static_cast<const T*>(tensor.const_data_ptr()), static_cast<std::size_t>(tensor.numel())};
}

void check_boxes(const Expect& expect, const at::Tensor& boxes, const at::Tensor& scores) {
  expect.dtype("boxes", boxes, {at::kFloat});
  expect.dtype("scores", scores, {at::kFloat});
  expect.dims("scores", scores, 1);
  expect.shape("boxes", boxes, {scores.size(0), 4});
}

at::Tensor run_kept(const at::Tensor& given_boxes, const at::Tensor& given_scores,
                    double threshold) {
  check_boxes(Expect("nms"), given_boxes, given_scores);
  const at::Tensor boxes = given_boxes.contiguous(), scores = given_scores.contiguous();
  return at::tensor(nms(elements<float>(boxes), elements<float>(scores), {.threshold = threshold},
                        operators::internal::on_torch_threads),
                    at::kLong);
}

at::Tensor run_batched_kept(const at::Tensor& given_boxes, const at::Tensor& given_scores,
                            const at::Tensor& given_classes, double threshold) {
  const Expect expect("batched_nms");
  check_boxes(expect, given_boxes, given_scores);
  expect.dtype("classes", given_classes, {at::kLong, at::kInt});
  expect.shape("classes", given_classes, {given_scores.size(0)});
  const at::Tensor boxes = given_boxes.contiguous(), scores = given_scores.contiguous();
  const at::Tensor classes = given_classes.to(at::kLong).contiguous();
  return at::tensor(
      batched_nms(elements<float>(boxes), elements<float>(scores), elements<std::int64_t>(classes),
                  {.threshold = threshold}, operators::internal::on_torch_threads),
      at::kLong);
}

at::Tensor run_hard_negatives(const at::Tensor& given_losses, const at::Tensor& given_matched,
                              double ratio) {
  const Expect expect("hard_negatives");
  expect.dtype("losses", given_losses, {at::kFloat});
  expect.dtype("is_matched", given_matched, {at::kBool});
  expect.dims("losses", given_losses, 2);
  expect.shape("is_matched", given_matched, given_losses.sym_sizes());
  const at::Tensor losses = given_losses.contiguous(), matched = given_matched.contiguous();
  const at::Tensor chosen = at::empty_like(matched);
  for_images(expect, losses.size(0), [&](std::int64_t b) {
    mine_hard_negatives(row<float>(losses, b), row<std::uint8_t>(matched, b), ratio,
                        mutable_row<std::uint8_t>(chosen, b));
  });
  return chosen;
}

Places run_nonzero(const at::Tensor& given_values, std::int64_t capacity) {
  const Expect expect("fixed_nonzero");
  expect.dtype("values", given_values, {at::kBool});
  expect.dims("values", given_values, 2);
  check_capacity(expect, capacity);
  const at::Tensor values = given_values.contiguous();
  Places result = empty_places(values.size(0), capacity);
  const auto& [places, counts] = result;
  operators::internal::on_torch_threads(values.size(0), [&](std::int64_t b) {
    mutable_row<std::int64_t>(counts, b)[0] =
        fixed_nonzero(row<std::uint8_t>(values, b), mutable_row<std::int64_t>(places, b));
  });
  return result;
}

TORCH_LIBRARY_FRAGMENT(trireme, library) {
  library.def(
      "fixed_nms(Tensor boxes, Tensor scores, Tensor classes, float threshold=0.5, "
      "int capacity=100) -> (Tensor places, Tensor counts)");
  library.def("hard_negatives(Tensor losses, Tensor is_matched, float ratio) -> Tensor");
  library.def("fixed_nonzero(Tensor values, int capacity) -> (Tensor places, Tensor counts)");
  library.impl("fixed_nms", kernel_below_autograd(run_nms));
  library.impl("hard_negatives", kernel_below_autograd(run_hard_negatives));
  library.impl("fixed_nonzero", kernel_below_autograd(run_nonzero));
  // As many as are kept: for those who do not record.
  const std::vector<at::Tag> varies = {at::Tag::dynamic_output_shape};
  library.def("nms(Tensor boxes, Tensor scores, float threshold) -> Tensor", varies);
  library.def("batched_nms(Tensor boxes, Tensor scores, Tensor classes, float threshold) -> Tensor",
              varies);
  library.impl("nms", kernel_below_autograd(run_kept));
  library.impl("batched_nms", kernel_below_autograd(run_batched_kept));
}

TORCH_LIBRARY_IMPL(trireme, AutocastCPU, library) {
  library.impl("fixed_nms", under_autocast());
  library.impl("hard_negatives", under_autocast());
  library.impl("nms", under_autocast());
  library.impl("batched_nms", under_autocast());
}

Chosen to_chosen(const Places& result) { return {std::get<0>(result), std::get<1>(result)}; }

}  // namespace

Chosen fixed_nms(const at::Tensor& boxes, const at::Tensor& scores, const at::Tensor& classes,
                 const NmsOptions& options) {
  static const auto op =
      operators::internal::find_operator<decltype(run_nms)>("trireme::fixed_nms");
  return to_chosen(op.call(boxes, scores, classes, options.threshold, options.capacity));
}

at::Tensor hard_negatives(const at::Tensor& losses, const at::Tensor& is_matched, double ratio) {
  static const auto op =
      operators::internal::find_operator<decltype(run_hard_negatives)>("trireme::hard_negatives");
  return op.call(losses, is_matched, ratio);
}

Chosen fixed_nonzero(const at::Tensor& values, std::int64_t capacity) {
  static const auto op =
      operators::internal::find_operator<decltype(run_nonzero)>("trireme::fixed_nonzero");
  return to_chosen(op.call(values, capacity));
}

}  // namespace trireme::vision
