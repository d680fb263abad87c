#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "packs/vision/data/image_size.h"

namespace trireme::vision {

/// Columns [x, x + width) and rows [y, y + height) of an image.
struct PixelBox {
  std::int64_t x = 0, y = 0;
  std::int64_t width = 0, height = 0;
  bool operator==(const PixelBox&) const = default;
};

/// A part of an image, as red, green and blue bytes: rgb[(row * box.width + column) * 3 + c], row 0 being
/// row box.y of the image.
struct Pixels {
  PixelBox box;
  std::vector<std::uint8_t> rgb;
};

/// Which part of an image of this size is wanted: a box of at least a pixel, within the image.
using ChooseBox = std::function<PixelBox(ImageSize)>;

/// Decodes the part of a JPEG or PNG image that `choose` asks for. Which of both it is, its first bytes
/// say. The pixels are those of the whole image decoded, bit by bit, wherever the box lies.
///
/// JPEG     as libjpeg-turbo's defaults have it (exact DCT, smooth upsampling): what PIL and torchvision
///          give. Grey values become equal colours; CMYK and YCCK are read as Adobe writes them. Columns
///          and rows beside the box cost a part of the time, rows below it nothing.
/// PNG      palettes and grey values become colours, 16 bits are scaled to 8, transparency is left out.
///          The whole image is decoded.
/// Neither the orientation in an Exif header nor colour profiles and gamma are applied.
///
/// Errors   kCorruptData for bytes that are no image, are cut off or damaged, as far as that is seen in
///          the part that is decoded: below the box a JPEG is not looked at; for an image of more than
///          2^27 pixels. kInvalidArgument for a box that is not within the image. Those of `choose`.
Pixels decode_image(std::span<const std::byte> encoded, const ChooseBox& choose);

/// The whole image.
Pixels decode_image(std::span<const std::byte> encoded);

namespace internal {
Pixels decode_jpeg(std::span<const std::byte> encoded, const ChooseBox& choose);
Pixels decode_png(std::span<const std::byte> encoded, const ChooseBox& choose);

/// Space for the box that `choose` asks for; refuses sizes and boxes that decode_image refuses.
Pixels make_pixels(ImageSize size, const ChooseBox& choose);
}  // namespace internal

}  // namespace trireme::vision
