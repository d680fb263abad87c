#pragma once

#include <span>

#include "packs/vision/coco/rle.h"

namespace trireme::vision {

/// The mask that pycocotools makes of a polygon, bit for bit (rleFrPoly).
///
/// Vertices are rounded to a grid five times as fine, trunc(5 x + 0.5), and joined by lines that
/// step along their longer axis. Where such a line passes the middle of a pixel column c (from
/// 5 c + 2 to 5 c + 3), the pixels of the column from row ceil((v - 2) / 5) on, v the smaller of
/// the two y there, change between inside and outside (held to [0, height]).
///
/// xy       x and y in turn, in pixels, of each vertex; the last is joined with the first.
/// Errors   kCorruptData where the number of values is odd, less than 4, or one is not within
///          +-1e8; what `from_counts` says of the size.
/// Cost     of the polygon's width in pixels, not its length: only these crossings are computed.
Rle from_polygon(ImageSize size, std::span<const double> xy);

/// As the polygon of its corners.
Rle from_box(ImageSize size, const Box& box);

}  // namespace trireme::vision
