#pragma once

#include <cstdint>
#include <vector>

#include "packs/vision/data/boxed_images.h"
#include "packs/vision/data/decode.h"

namespace trireme::vision {

/// A random crop of an image with boxes for training, as SSD draws it. One of seven kinds, each as likely:
/// the whole image; a crop that overlaps with a box by at least 0.1, 0.3, 0.5, 0.7 or 0.9 (intersection
/// by union); any. A crop's sides are 0.3 to 1 of the image's, neither part more than twice the other. One
/// crop is drawn of a kind, then another kind, until the crop overlaps as asked and a box has its
/// centre in it; of an image without boxes the first is taken. After 50 draws the whole image is.
///
/// boxes    in pixels.
/// stream   of all draws; the same one gives the same crop.
/// Source   Liu et al., "SSD: single shot multibox detector", ECCV 2016, section 2.2, "Data augmentation".
PixelBox random_box_crop(ImageSize image, const std::vector<LabelledBox>& boxes,
                         std::uint64_t stream);

/// The boxes whose centre is in the crop, cut off at its sides, as parts of those; left and right change places where
/// it is flipped.
std::vector<LabelledBox> boxes_in(const PixelBox& crop, bool is_flipped,
                                  const std::vector<LabelledBox>& boxes);

}  // namespace trireme::vision
