#include <algorithm>
#include <vector>

#include "packs/vision/kernels/boxes.h"
#include "packs/vision/kernels/matching.h"
#include "packs/vision/kernels/nms.h"
#include "packs/vision/kernels/roi_align.h"
#include "tests/judges/judge.h"

namespace trireme::judges {
namespace {

/// boxes [n, 4], scores [n], classes [n], threshold -> kept
Tensors batched_nms(const Tensors& inputs) {
  const std::vector<std::int64_t> kept = vision::batched_nms(
      inputs.get<float>("boxes"), inputs.get<float>("scores"), inputs.get<std::int64_t>("classes"),
      {.threshold = inputs.number("threshold")});
  Tensors outputs;
  std::ranges::copy(kept, outputs.add<std::int64_t>("kept", {std::ssize(kept)}).begin());
  return outputs;
}

/// features [N, H, W, C], regions [R, 5], gradient_out [R, 7, 7, C] -> out, gradient
Tensors roi_align(const Tensors& inputs) {
  const auto& shape = inputs.at("features").shape;
  const vision::FeatureShape features{shape[0], shape[1], shape[2], shape[3]};
  const vision::RoiAlignSettings options{
      .scale = inputs.number("scale"),
      .num_samples = static_cast<std::int64_t>(inputs.number("num_samples")),
      .is_aligned = inputs.number("is_aligned") != 0};
  const auto regions = inputs.get<float>("regions");
  const std::int64_t num_regions = std::ssize(regions) / 5;
  Tensors outputs;
  const auto out = outputs.add<float>("out", {num_regions, 7, 7, shape[3]});
  const auto gradient = outputs.add<float>("gradient", shape);
  vision::roi_align(options, features, inputs.get<float>("features").data(), regions.data(),
                    num_regions, out.data());
  vision::roi_align_backward(options, features, inputs.get<float>("gradient_out").data(),
                             regions.data(), num_regions, gradient.data());
  return outputs;
}

/// a [n, 4], b [m, 4] -> overlaps [n, m]; high, low -> matches [m] of the anchors b
Tensors match_anchors(const Tensors& inputs) {
  const auto a = inputs.get<float>("a");
  const auto b = inputs.get<float>("b");
  const std::int64_t n = std::ssize(a) / 4, m = std::ssize(b) / 4;
  Tensors outputs;
  const auto overlaps = outputs.add<float>("overlaps", {n, m});
  vision::box_overlaps(a.data(), n, b.data(), m, overlaps.data());
  vision::match_anchors({.high = static_cast<float>(inputs.number("high")),
                         .low = static_cast<float>(inputs.number("low")),
                         .keeps_best = inputs.number("keeps_best") != 0},
                        overlaps, n, outputs.add<std::int64_t>("matches", {m}));
  return outputs;
}

/// boxes, anchors [n, 4], codes to decode -> codes, decoded
Tensors code_boxes(const Tensors& inputs) {
  const vision::BoxCoding coding{.weights = {10, 10, 5, 5}};
  const auto boxes = inputs.get<float>("boxes");
  const float* anchors = inputs.get<float>("anchors").data();
  const std::int64_t n = std::ssize(boxes) / 4;
  Tensors outputs;
  const auto codes = outputs.add<float>("codes", {n, 4});
  vision::encode_boxes(coding, boxes.data(), anchors, n, codes.data());
  vision::decode_boxes(coding, inputs.get<float>("codes").data(), anchors, n,
                       outputs.add<float>("decoded", {n, 4}).data());
  return outputs;
}

}  // namespace

void add_detection(Operations& operations) {
  operations["batched_nms"] = batched_nms;
  operations["roi_align"] = roi_align;
  operations["match_anchors"] = match_anchors;
  operations["code_boxes"] = code_boxes;
}

}  // namespace trireme::judges
