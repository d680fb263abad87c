#include "packs/vision/operators/ssd_targets.h"

#include <ATen/Functions.h>
#include <torch/library.h>

#include <span>
#include <tuple>
#include <vector>

#include "trireme/engine/operators/kernel_operator.h"
#include "trireme/error.h"

namespace trireme::vision {
namespace {

using operators::internal::Expect;
using operators::internal::kernel_below_autograd;
using operators::internal::under_autocast;
using Targets = std::tuple<at::Tensor, at::Tensor>;

constexpr std::int64_t kCorners = 4;

/// Classes and codes of the matched anchors; the others stay as they are.
void write_targets(const SsdTruth& truth, float threshold, std::int64_t* classes, float* codes) {
  const std::vector<std::int64_t> matches = ssd_matches(truth, threshold);
  for (std::int64_t a = 0; a < truth.num_anchors(); ++a) {
    const std::int64_t match = matches[static_cast<std::size_t>(a)];
    if (match < 0) continue;
    classes[a] = truth.labels[static_cast<std::size_t>(match)];
    encode_boxes(kSsdCoding, truth.box(match), truth.anchor(a), 1, codes + kCorners * a);
  }
}

Targets run_ssd_targets(const at::Tensor& given_boxes, const at::Tensor& given_labels,
                        const at::Tensor& given_anchors, double threshold) {
  const Expect expect("ssd_targets");
  expect.dtype("boxes", given_boxes, {at::kFloat});
  expect.dtype("labels", given_labels, {at::kLong});
  expect.dtype("anchors", given_anchors, {at::kFloat});
  expect.dims("labels", given_labels, 2);
  expect.shape("boxes", given_boxes, {given_labels.size(0), given_labels.size(1), kCorners});
  expect.dims("anchors", given_anchors, 2);
  expect.shape("anchors", given_anchors, {given_anchors.size(0), kCorners});
  const at::Tensor boxes = given_boxes.contiguous(), labels = given_labels.contiguous();
  const at::Tensor anchors = given_anchors.contiguous();
  const std::int64_t batch = labels.size(0), places = labels.size(1), count = anchors.size(0);
  Targets result = {at::zeros({batch, count}, at::kLong),
                    at::zeros({batch, count, kCorners}, at::kFloat)};
  const auto* all_boxes = static_cast<const float*>(boxes.const_data_ptr());
  const auto* all_labels = static_cast<const std::int64_t*>(labels.const_data_ptr());
  auto* classes = static_cast<std::int64_t*>(std::get<0>(result).mutable_data_ptr());
  auto* codes = static_cast<float*>(std::get<1>(result).mutable_data_ptr());
  const std::span corners(static_cast<const float*>(anchors.const_data_ptr()),
                          static_cast<std::size_t>(anchors.numel()));
  try {
    for_each_image(batch, operators::internal::on_torch_threads, [&](std::int64_t b) {
      const SsdTruth truth = {.boxes = all_boxes + b * places * kCorners,
                              .labels = {all_labels + b * places, static_cast<std::size_t>(places)},
                              .anchors = corners};
      write_targets(truth, static_cast<float>(threshold), classes + b * count,
                    codes + b * count * kCorners);
    });
  } catch (const Error& error) {
    expect.fail(error.message());
  }
  return result;
}

TORCH_LIBRARY_FRAGMENT(trireme, library) {
  library.def(
      "ssd_targets(Tensor boxes, Tensor labels, Tensor anchors, float threshold=0.5) -> "
      "(Tensor classes, Tensor codes)");
  library.impl("ssd_targets", kernel_below_autograd(run_ssd_targets));
}

TORCH_LIBRARY_IMPL(trireme, AutocastCPU, library) { library.impl("ssd_targets", under_autocast()); }

}  // namespace

SsdTargets ssd_targets(const at::Tensor& boxes, const at::Tensor& labels, const at::Tensor& anchors,
                       double threshold) {
  static const auto op =
      operators::internal::find_operator<decltype(run_ssd_targets)>("trireme::ssd_targets");
  const auto [classes, codes] = op.call(boxes, labels, anchors, threshold);
  return {classes, codes};
}

}  // namespace trireme::vision
