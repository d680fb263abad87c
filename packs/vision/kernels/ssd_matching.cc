#include "packs/vision/kernels/ssd_matching.h"

#include <algorithm>
#include <string>

#include "packs/vision/kernels/matching.h"
#include "trireme/error.h"

namespace trireme::vision {

std::vector<std::int64_t> ssd_matches(const SsdTruth& truth, float threshold) {
  const std::int64_t num_boxes = std::ranges::find(truth.labels, 0) - truth.labels.begin();
  const std::int64_t num_anchors = truth.num_anchors();
  std::vector<float> overlaps(static_cast<std::size_t>(num_boxes * num_anchors));
  box_overlaps(truth.boxes, num_boxes, truth.anchors.data(), num_anchors, overlaps.data());
  std::vector<std::int64_t> matches(static_cast<std::size_t>(num_anchors));
  match_ssd(threshold, overlaps, num_boxes, matches);
  return matches;
}

void for_each_image(std::int64_t num_images, const kernels::Spread& spread,
                    const kernels::Piece& work) {
  spread(num_images, [&](std::int64_t b) {
    try {
      work(b);
    } catch (const Error& error) {
      throw Error(error.kind(), "image " + std::to_string(b) + ": " + error.message());
    }
  });
}

}  // namespace trireme::vision
