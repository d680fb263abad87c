#pragma once

// clang-format off: libjpeg's header wants stdio's before it
#include <cstdio>
#include <jpeglib.h>
// clang-format on
#include <png.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "packs/vision/data/decode.h"

namespace trireme::vision {

/// An image with soft shapes and edges, rows of `channels` bytes a pixel; another one for each seed.
inline std::vector<std::uint8_t> paint(ImageSize size, int channels, int seed = 0) {
  std::vector<std::uint8_t> levels;
  for (std::int64_t y = 0; y < size.height; ++y) {
    for (std::int64_t x = 0; x < size.width; ++x) {
      const bool is_inside = (x / 9 + y / 7 + seed) % 3 == 0;
      for (int c = 0; c < channels; ++c) {
        levels.push_back(static_cast<std::uint8_t>((x * (3 + c) + y * (5 - c) + seed * 11) % 200 +
                                                   (is_inside ? 55 : 0)));
      }
    }
  }
  return levels;
}

struct JpegForm {
  int channels = 3;                      ///< 1: grey, 4: CMYK.
  std::array<int, 2> sampling = {2, 2};  ///< Of brightness against colour: 2, 2 is 4:2:0.
  bool is_progressive = false;
  int quality = 90;
};

inline std::string to_jpeg(ImageSize size, const std::vector<std::uint8_t>& levels,
                           const JpegForm& form = {}) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long count = 0;
  jpeg_mem_dest(&info, &bytes, &count);
  info.image_width = static_cast<JDIMENSION>(size.width);
  info.image_height = static_cast<JDIMENSION>(size.height);
  info.input_components = form.channels;
  info.in_color_space =
      form.channels == 1 ? JCS_GRAYSCALE : (form.channels == 4 ? JCS_CMYK : JCS_RGB);
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, form.quality, TRUE);
  if (form.channels == 3) {
    info.comp_info[0].h_samp_factor = form.sampling[0];
    info.comp_info[0].v_samp_factor = form.sampling[1];
  }
  if (form.is_progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  for (std::int64_t y = 0; y < size.height; ++y) {
    auto* row = const_cast<std::uint8_t*>(levels.data()) + y * size.width * form.channels;
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string file(reinterpret_cast<char*>(bytes), count);
  std::free(bytes);
  return file;
}

/// format   PNG_FORMAT_RGB, PNG_FORMAT_GRAY, PNG_FORMAT_RGBA and the like: as many bytes a pixel.
inline std::string to_png(ImageSize size, const std::vector<std::uint8_t>& levels,
                          png_uint_32 format = PNG_FORMAT_RGB) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(size.width);
  image.height = static_cast<png_uint_32>(size.height);
  image.format = format;
  png_alloc_size_t count = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string file(count, '\0');
  png_image_write_to_memory(&image, file.data(), &count, 0, levels.data(), 0, nullptr);
  file.resize(count);
  return file;
}

inline Pixels decode(const std::string& file) {
  return decode_image(std::as_bytes(std::span(file)));
}

inline Pixels decode(const std::string& file, PixelBox box) {
  return decode_image(std::as_bytes(std::span(file)), [&](ImageSize) { return box; });
}

/// A part of an image that was decoded whole.
inline std::vector<std::uint8_t> part_of(const Pixels& whole, PixelBox box) {
  std::vector<std::uint8_t> part;
  for (std::int64_t y = 0; y < box.height; ++y) {
    const auto row = whole.rgb.begin() + ((box.y + y) * whole.box.width + box.x) * 3;
    part.insert(part.end(), row, row + box.width * 3);
  }
  return part;
}

}  // namespace trireme::vision
