#include "benchmarks/kernels/detection_cases.h"

#include <algorithm>
#include <random>
#include <string>

#include "benchmarks/kernels/random_values.h"
#include "packs/vision/kernels/boxes.h"
#include "packs/vision/kernels/matching.h"
#include "packs/vision/kernels/nms.h"
#include "packs/vision/kernels/roi_align.h"

namespace trireme::kernels::bench {
namespace {

/// Boxes of 8 to `largest` pixels in an image of 300.
Tensors make_boxes(std::int64_t n, std::int64_t num_classes, float largest) {
  Tensors inputs;
  std::vector<float> place(n * 2), extent(n * 2);
  fill_even(place, 1, 0, 300);
  fill_even(extent, 2, 8, largest);
  const auto boxes = inputs.add<float>("boxes", {n, 4});
  const auto classes = inputs.add<std::int64_t>("classes", {n});
  for (std::int64_t i = 0; i < n; ++i) {
    for (int k = 0; k < 2; ++k) {
      boxes[i * 4 + k] = place[i * 2 + k];
      boxes[i * 4 + 2 + k] = place[i * 2 + k] + extent[i * 2 + k];
    }
    classes[i] = i % num_classes;
  }
  // All different: libraries order equal ones in their own ways.
  const auto scores = inputs.add<float>("scores", {n});
  for (std::int64_t i = 0; i < n; ++i)
    scores[i] = static_cast<float>(i + 1) / static_cast<float>(n);
  std::ranges::shuffle(scores, std::mt19937_64(3));
  return inputs;
}

class NmsCase final : public Case {
 public:
  NmsCase(Tensors inputs, const CaseSetting& setting)
      : inputs_(std::move(inputs)), spread_(on_threads(setting.num_threads)) {}

  const Tensors& inputs() const override { return inputs_; }

  void run() override {
    kept_ = vision::batched_nms(inputs_.get<float>("boxes"), inputs_.get<float>("scores"),
                                inputs_.get<std::int64_t>("classes"), {}, spread_);
  }

  Tensors outputs() const override {
    Tensors outputs;
    std::ranges::copy(kept_, outputs.add<std::int64_t>("kept", {std::ssize(kept_)}).begin());
    return outputs;
  }

 private:
  const Tensors inputs_;
  const Spread spread_;
  std::vector<std::int64_t> kept_;
};

/// Ground-truth boxes against anchors.
class OverlapsCase final : public Case {
 public:
  explicit OverlapsCase(const CaseSetting& setting)
      : spread_(on_threads(setting.num_threads)), overlaps_(kNumTruth * kNumAnchors) {
    inputs_ = make_boxes(kNumTruth + kNumAnchors, 1, 60);
    inputs_.options["num_truth"] = std::to_string(kNumTruth);
  }

  const Tensors& inputs() const override { return inputs_; }

  void run() override {
    const float* boxes = inputs_.get<float>("boxes").data();
    vision::box_overlaps(boxes, kNumTruth, boxes + 4 * kNumTruth, kNumAnchors, overlaps_.data(),
                         spread_);
  }

  Tensors outputs() const override {
    Tensors outputs;
    std::ranges::copy(overlaps_, outputs.add<float>("overlaps", {kNumTruth, kNumAnchors}).begin());
    return outputs;
  }

 private:
  static constexpr std::int64_t kNumTruth = 20, kNumAnchors = 120'000;

  Tensors inputs_;
  const Spread spread_;
  std::vector<float> overlaps_;
};

/// Faster R-CNN's matching of anchors to ground-truth boxes, from their overlaps.
class MatchingCase final : public Case {
 public:
  explicit MatchingCase(const CaseSetting& setting)
      : spread_(on_threads(setting.num_threads)), matches_(kNumAnchors) {
    const Tensors boxes = make_boxes(kNumTruth + kNumAnchors, 1, 60);
    const float* truth = boxes.get<float>("boxes").data();
    vision::box_overlaps(truth, kNumTruth, truth + 4 * kNumTruth, kNumAnchors,
                         inputs_.add<float>("overlaps", {kNumTruth, kNumAnchors}).data());
  }

  const Tensors& inputs() const override { return inputs_; }

  void run() override {
    vision::match_anchors({.high = 0.7F, .low = 0.3F}, inputs_.get<float>("overlaps"), kNumTruth,
                          matches_, spread_);
  }

  Tensors outputs() const override {
    Tensors outputs;
    std::ranges::copy(matches_, outputs.add<std::int64_t>("matches", {kNumAnchors}).begin());
    return outputs;
  }

 private:
  static constexpr std::int64_t kNumTruth = 20, kNumAnchors = 120'000;

  Tensors inputs_;
  const Spread spread_;
  std::vector<std::int64_t> matches_;
};

/// Boxes coded relative to anchors, and back.
class BoxCodesCase final : public Case {
 public:
  explicit BoxCodesCase(const CaseSetting& setting)
      : spread_(on_threads(setting.num_threads)), codes_(4 * kNum), boxes_(4 * kNum) {}

  const Tensors& inputs() const override { return inputs_; }

  void run() override {
    const float* boxes = inputs_.get<float>("boxes").data();
    const float* anchors = boxes + 4 * kNum;
    vision::encode_boxes(kCoding, boxes, anchors, kNum, codes_.data(), spread_);
    vision::decode_boxes(kCoding, codes_.data(), anchors, kNum, boxes_.data(), spread_);
  }

  Tensors outputs() const override {
    Tensors outputs;
    std::ranges::copy(codes_, outputs.add<float>("codes", {kNum, 4}).begin());
    std::ranges::copy(boxes_, outputs.add<float>("decoded", {kNum, 4}).begin());
    return outputs;
  }

 private:
  static constexpr std::int64_t kNum = 120'000;
  static constexpr vision::BoxCoding kCoding{.weights = {10, 10, 5, 5}};

  const Tensors inputs_ = make_boxes(2 * kNum, 1, 60);  // boxes, then anchors
  const Spread spread_;
  std::vector<float> codes_, boxes_;
};

/// Regions of all sizes on a map of 200 x 272 pixels, channels last.
Tensors make_regions(const vision::FeatureShape& shape, std::int64_t n) {
  Tensors inputs;
  fill_normal(
      inputs.add<float>("features", {shape.batch, shape.height, shape.width, shape.channels}), 1);
  const auto regions = inputs.add<float>("regions", {n, 5});
  std::mt19937_64 random(2);
  std::uniform_real_distribution<float> share(0.02F, 0.5F), place(0, 1);
  for (std::int64_t i = 0; i < n; ++i) {
    for (int axis = 0; axis < 2; ++axis) {
      const auto size = static_cast<float>(axis == 0 ? shape.width : shape.height);
      const float extent = size * share(random);
      const float begin = place(random) * (size - extent);
      regions[i * 5 + 1 + axis] = begin;
      regions[i * 5 + 3 + axis] = begin + extent;
    }
  }
  return inputs;
}

class RoiAlignCase final : public Case {
 public:
  RoiAlignCase(bool has_backward, int num_threads)
      : has_backward_(has_backward),
        spread_(on_threads(num_threads)),
        out_(kRegions * 49 * kShape.channels) {
    if (has_backward) {
      gradient_.resize(kShape.height * kShape.width * kShape.channels);
      inputs_.options.emplace("has_backward", "1");
    }
  }

  const Tensors& inputs() const override { return inputs_; }

  void run() override {
    const float* regions = inputs_.get<float>("regions").data();
    vision::roi_align(kOptions, kShape, inputs_.get<float>("features").data(), regions, kRegions,
                      out_.data(), spread_);
    if (!has_backward_) return;
    std::ranges::fill(gradient_, 0.0F);
    vision::roi_align_backward(kOptions, kShape, out_.data(), regions, kRegions, gradient_.data(),
                               spread_);
  }

  Tensors outputs() const override {
    Tensors outputs;
    std::ranges::copy(out_, outputs.add<float>("out", {kRegions, 7, 7, kShape.channels}).begin());
    if (has_backward_) {
      std::ranges::copy(gradient_, outputs
                                       .add<float>("gradient", {kShape.batch, kShape.height,
                                                                kShape.width, kShape.channels})
                                       .begin());
    }
    return outputs;
  }

 private:
  static constexpr vision::FeatureShape kShape{1, 200, 272, 256};
  static constexpr vision::RoiAlignSettings kOptions{.num_samples = 2, .is_aligned = true};
  static constexpr std::int64_t kRegions = 512;

  Tensors inputs_ = make_regions(kShape, kRegions);
  const bool has_backward_;
  const Spread spread_;
  std::vector<float> out_, gradient_;
};

CaseEntry roi_align_entry(const std::string& name, const std::string& shape, bool has_backward) {
  constexpr double kMultiplyAdds = 512.0 * 49 * 16 * 256;
  return {.name = name,
          .shape = shape,
          .flops = (has_backward ? 4 : 2) * kMultiplyAdds,
          .tolerance = 1e-3,
          .peers = {"torchvision"},
          .make = [=](const CaseSetting& setting) {
            return std::make_unique<RoiAlignCase>(has_backward, setting.num_threads);
          }};
}

CaseEntry nms_entry(const std::string& name, const std::string& shape, std::int64_t n,
                    std::int64_t num_classes, float largest) {
  return {.name = name,
          .shape = shape,
          .peers = {"torchvision"},
          .make = [=](const CaseSetting& setting) {
            return std::make_unique<NmsCase>(make_boxes(n, num_classes, largest), setting);
          }};
}

}  // namespace

std::vector<CaseEntry> detection_cases() {
  return {
      nms_entry("nms/8732", "8,732 boxes", 8732, 1, 60),
      nms_entry("nms/8732-small", "8,732 small boxes", 8732, 1, 30),
      nms_entry("nms/80x1000", "80 classes of 1,000 boxes", 80'000, 80, 60),
      {.name = "overlaps/20x120k",
       .shape = "20 boxes, 120,000 anchors",
       .bytes = 4.0 * 20 * 120'000,
       .tolerance = 1e-6,
       .peers = {"torchvision"},
       .make = [](const CaseSetting& setting) { return std::make_unique<OverlapsCase>(setting); }},
      {.name = "matching/20x120k",
       .shape = "20 boxes, 120,000 anchors",
       .bytes = 4.0 * 20 * 120'000,
       .peers = {"torchvision"},
       .make = [](const CaseSetting& setting) { return std::make_unique<MatchingCase>(setting); }},
      {.name = "box_codes/120k",
       .shape = "120,000 boxes, there and back",
       .bytes = 96.0 * 120'000,
       .tolerance = 1e-4,
       .peers = {"torchvision"},
       .make = [](const CaseSetting& setting) { return std::make_unique<BoxCodesCase>(setting); }},
      roi_align_entry("roi_align/forward", "512x7x7x256, 2x2 samples", false),
      roi_align_entry("roi_align/both", "512x7x7x256, forward and backward", true)};
}

}  // namespace trireme::kernels::bench
