#include "packs/vision/models/ssd_detections.h"

#include <ATen/core/grad_mode.h>
#include <torch/types.h>

#include <algorithm>

#include "packs/vision/kernels/boxes.h"
#include "packs/vision/kernels/nms.h"
#include "packs/vision/kernels/ssd_matching.h"

namespace trireme::vision {
namespace {

/// Default boxes with a class each that they may stand for.
struct Candidates {
  std::vector<float> boxes, scores;
  std::vector<std::int64_t> classes;
};

/// codes [A, 4], default_boxes [A, 4], scores [A, K], all contiguous.
Candidates candidates_of(const float* codes, const torch::Tensor& default_boxes,
                         const torch::Tensor& scores_AK, double least_score) {
  const std::int64_t count = scores_AK.size(0), num_classes = scores_AK.size(1);
  std::vector<float> boxes(static_cast<std::size_t>(4 * count));
  decode_boxes(kSsdCoding, codes, default_boxes.const_data_ptr<float>(), count, boxes.data());
  for (float& at : boxes) at = std::clamp(at, 0.0F, 1.0F);
  Candidates found;
  const auto* scores = scores_AK.const_data_ptr<float>();
  for (std::int64_t a = 0; a < count; ++a) {
    for (std::int64_t k = 1; k < num_classes; ++k) {
      const float score = scores[a * num_classes + k];
      if (!(score > least_score)) continue;
      found.boxes.insert(found.boxes.end(), boxes.begin() + 4 * a, boxes.begin() + 4 * (a + 1));
      found.scores.push_back(score);
      found.classes.push_back(k);
    }
  }
  return found;
}

}  // namespace

std::vector<std::vector<Detection>> ssd_detections(const SsdOutput& output,
                                                   const torch::Tensor& default_boxes,
                                                   const SsdDetectionOptions& options) {
  const at::NoGradGuard guard;
  const auto codes_BA4 = output.codes_BA4.to(torch::kFloat).contiguous();
  const auto scores_BAK = output.logits_BAK.to(torch::kFloat).softmax(2).contiguous();
  const auto anchors = default_boxes.contiguous();
  std::vector<std::vector<Detection>> images;
  for (std::int64_t b = 0; b < codes_BA4.size(0); ++b) {
    const auto codes_A4 = codes_BA4[b];
    const Candidates found = candidates_of(codes_A4.const_data_ptr<float>(), anchors, scores_BAK[b],
                                           options.least_score);
    const auto kept = batched_nms(found.boxes, found.scores, found.classes,
                                  {.threshold = options.overlap, .max_kept = options.most});
    auto& detections = images.emplace_back();
    for (const std::int64_t i : kept) {
      const float* box = found.boxes.data() + 4 * i;
      const auto at = static_cast<std::size_t>(i);
      detections.push_back(
          {.box =
               {.x1 = box[0], .y1 = box[1], .x2 = box[2], .y2 = box[3], .label = found.classes[at]},
           .score = found.scores[at]});
    }
  }
  return images;
}

}  // namespace trireme::vision
