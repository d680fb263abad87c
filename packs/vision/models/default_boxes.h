#pragma once

#include <cstdint>
#include <vector>

namespace trireme::vision {

/// One map of features of an SSD, and the default boxes at each of its places.
struct BoxLevel {
  std::int64_t side = 0;  ///< Places along each side.
  bool is_halved = true;  ///< From the level before, by a stride of 2; else its border is cut off.
  double step = 0;        ///< From one centre to the next, as a part of the image's side.
  std::vector<double> widths, heights;  ///< Of the boxes at a place, as such parts.

  std::int64_t boxes_per_place() const { return static_cast<std::int64_t>(widths.size()); }
};

/// The levels of an SSD for images of a size: the first has an eighth of it, rounded up; while a level has more
/// than 5 places a side the next has half as many, rounded up; then two fewer, down to 1 or 2.
///
/// Boxes of level 0 are 0.07 of the image, those of the others 0.15 to 1.05, evenly. At each place are a square of
/// this side s, one of sqrt(s s'), s' being the next level's, and boxes of the area of s with aspects 2 and 1/2;
/// but for the first and the last two levels also 3 and 1/3. Of 300 pixels: levels of 38, 19, 10, 5, 3, 1 and 8732
/// boxes.
///
/// size     32 to 2048 pixels, else kInvalidArgument.
/// Source   Liu et al., "SSD: single shot multibox detector", ECCV 2016, section 2.2; the numbers are those of
///          MLPerf's reference for COCO.
std::vector<BoxLevel> box_levels(std::int64_t size);

/// All default boxes: level by level, row by row, place by place.
///
/// Returns   [A][4] x1, y1, x2, y2 as parts of the image's sides; centres and sides are in it, corners may lie
///           outside.
std::vector<float> default_boxes(const std::vector<BoxLevel>& levels);

}  // namespace trireme::vision
