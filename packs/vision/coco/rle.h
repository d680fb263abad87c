#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "packs/vision/data/image_size.h"

namespace trireme::vision {

/// "480 x 640": height, width.
std::string to_text(ImageSize size);

/// Its corner of least x and y, and its extent, in pixels; no extent is negative but by mistake.
struct Box {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;

  bool operator==(const Box&) const = default;
};

/// A binary mask by its runs of ones, along the columns of the image one after the other: run i is
/// the pixels [bounds[2i], bounds[2i + 1]), where pixel (x, y) has position x * height + y.
///
/// bounds   strictly ascending, an even number, none beyond size.num_pixels(), which is below 2^32.
///          So two masks are equal exactly where their fields are.
///
/// What COCO files hold, counts, are the lengths of the runs of zeros and ones in turn, the first
/// of zeros: their differences.
struct Rle {
  ImageSize size;
  std::vector<std::uint32_t> bounds;

  bool operator==(const Rle&) const = default;
};

/// Errors   kCorruptData where the size has no pixels or 2^32 or more, a count is negative or the
///          counts do not sum to the pixels of the image. A count of 0 joins its neighbours.
Rle from_counts(ImageSize size, std::span<const std::int64_t> counts);

/// None is 0 but, where the first pixel is 1, the first.
std::vector<std::uint32_t> to_counts(const Rle& rle);

/// The compressed counts of COCO files: from the fourth on as the difference from the one before
/// the last, each in groups of 5 bits from the lowest, with a bit for "more follow", plus 48.
///
/// Errors   kCorruptData where a character is none of '0' to 'o', a count is cut off or has more
///          than 12 characters; those of `from_counts`.
Rle parse_rle(ImageSize size, std::string_view text);
std::string to_text(const Rle& rle);

/// pixels   [height][width], row after row; 0 or not.
/// Errors   kInvalidArgument where there are more or fewer pixels.
Rle from_pixels(ImageSize size, std::span<const std::uint8_t> pixels);
std::vector<std::uint8_t> to_pixels(const Rle& rle);

/// Number of ones.
std::int64_t area(const Rle& rle);

/// The smallest box that holds all ones; zeros where there are none.
Box bounding_box(const Rle& rle);

/// Of one mask or more, all of one size; else kInvalidArgument.
Rle union_of(std::span<const Rle> masks);
Rle intersection_of(std::span<const Rle> masks);

namespace internal {

/// Of the runs that a mask's bounds describe.
std::int64_t area(std::span<const std::uint32_t> bounds);
Box bounding_box(std::int64_t height, std::span<const std::uint32_t> bounds);

/// Number of pixels that are in both.
std::int64_t overlap(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b);

/// kCorruptData where an image has no pixels or too many for 32 bits.
void check_size(ImageSize size);

/// Begins or ends a run at `position`, which is at or after the last bound: two at one place cancel
/// out.
inline void toggle(std::vector<std::uint32_t>& bounds, std::uint32_t position) {
  if (!bounds.empty() && bounds.back() == position) {
    bounds.pop_back();
  } else {
    bounds.push_back(position);
  }
}

}  // namespace internal
}  // namespace trireme::vision
