#include "packs/vision/data/decode.h"

#include <algorithm>
#include <array>
#include <string>

#include "trireme/error.h"

namespace trireme::vision {
namespace {

constexpr std::int64_t kMostPixels = std::int64_t{1} << 27;
constexpr std::array<unsigned char, 3> kJpegBegin = {0xFF, 0xD8, 0xFF};
constexpr std::array<unsigned char, 8> kPngBegin = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};

template <std::size_t Size>
bool begins_with(std::span<const std::byte> bytes, const std::array<unsigned char, Size>& begin) {
  const auto is_same = [](std::byte a, unsigned char b) { return a == std::byte{b}; };
  return bytes.size() >= Size && std::ranges::equal(bytes.first(Size), begin, is_same);
}

std::string to_text(const PixelBox& box) {
  return std::to_string(box.width) + " x " + std::to_string(box.height) + " pixels at (" +
         std::to_string(box.x) + ", " + std::to_string(box.y) + ")";
}

}  // namespace

namespace internal {

Pixels make_pixels(ImageSize size, const ChooseBox& choose) {
  if (size.num_pixels() > kMostPixels) {
    throw Error(ErrorKind::kCorruptData, "the image has " + std::to_string(size.width) + " x " +
                                             std::to_string(size.height) +
                                             " pixels; at most 2^27 are decoded");
  }
  const PixelBox box = choose(size);
  const bool is_within = box.x >= 0 && box.y >= 0 && box.width >= 1 && box.height >= 1 &&
                         box.width <= size.width - box.x && box.height <= size.height - box.y;
  if (!is_within) {
    throw Error(ErrorKind::kInvalidArgument, to_text(box) + " are not within an image of " +
                                                 std::to_string(size.width) + " x " +
                                                 std::to_string(size.height));
  }
  return {box, std::vector<std::uint8_t>(static_cast<std::size_t>(box.width * box.height * 3))};
}

}  // namespace internal

Pixels decode_image(std::span<const std::byte> encoded, const ChooseBox& choose) {
  if (begins_with(encoded, kJpegBegin)) return internal::decode_jpeg(encoded, choose);
  if (begins_with(encoded, kPngBegin)) return internal::decode_png(encoded, choose);
  throw Error(ErrorKind::kCorruptData, "expected a JPEG or PNG image, got " +
                                           std::to_string(encoded.size()) +
                                           " bytes that begin as neither");
}

Pixels decode_image(std::span<const std::byte> encoded) {
  return decode_image(encoded, [](ImageSize size) {
    return PixelBox{.x = 0, .y = 0, .width = size.width, .height = size.height};
  });
}

}  // namespace trireme::vision
