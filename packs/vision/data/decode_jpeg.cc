// A part of a JPEG image. Columns: libjpeg-turbo decodes whole blocks, and pixels at the border of those
// that it decodes are upsampled without their neighbours; so a block more is asked for on either side, and
// left out. Rows: those above are skipped with what smooth upsampling needs of them kept.
//
//        x - margin     x               x + width     + margin
//     ---|--------------|===============|-------------|---       decoded; = copied

// clang-format off: libjpeg's headers want stdio's before them
#include <cstdio>
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <string>

#include "packs/vision/data/decode.h"
#include "trireme/error.h"

namespace trireme::vision::internal {
namespace {

constexpr int kJpegChannels = 3;

/// What libjpeg calls where something is wrong; it may not return, and no exception may pass it.
struct ErrorManager {
  jpeg_error_mgr base;  // first: libjpeg knows of this alone
  std::jmp_buf back;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void jump_back(j_common_ptr info) {
  auto* manager = reinterpret_cast<ErrorManager*>(info->err);
  manager->base.format_message(info, manager->message);
  std::longjmp(manager->back, 1);
}

/// Warnings say that data is damaged, and the pixels invented; but for a few that say less.
void take_message(j_common_ptr info, int level) {
  if (level >= 0) return;  // traces
  switch (info->err->msg_code) {
    case JWRN_ADOBE_XFORM:        // an unknown colour transform
    case JWRN_BOGUS_PROGRESSION:  // scans in an odd order
    case JWRN_EXTRANEOUS_DATA:    // bytes between segments
    case JWRN_JFIF_MAJOR:         // a later version of the header
      return;
    default:
      jump_back(info);
  }
}

/// Printed naive conversion of CMYK; Adobe writes each ink inverted.
void convert_cmyk_row(const std::uint8_t* cmyk, std::int64_t width, bool is_inverted,
                      std::uint8_t* rgb) {
  const auto light = [&](int ink) { return is_inverted ? ink : 255 - ink; };
  for (std::int64_t i = 0; i < width; ++i, cmyk += 4, rgb += kJpegChannels) {
    for (int c = 0; c < kJpegChannels; ++c) {
      rgb[c] = static_cast<std::uint8_t>((light(cmyk[c]) * light(cmyk[3]) + 127) / 255);
    }
  }
}

/// One image. Confined to its thread.
class JpegReader {
 public:
  JpegReader() {
    info_.err = jpeg_std_error(&errors_.base);
    errors_.base.error_exit = jump_back;
    errors_.base.emit_message = take_message;
    guarded([&] { jpeg_create_decompress(&info_); });
  }
  ~JpegReader() { jpeg_destroy_decompress(&info_); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  ImageSize read_header(std::span<const std::byte> encoded) {
    guarded([&] {
      jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(encoded.data()),
                   static_cast<unsigned long>(encoded.size()));
      jpeg_read_header(&info_, TRUE);
      const bool is_cmyk = info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
      info_.out_color_space = is_cmyk ? JCS_CMYK : JCS_RGB;
    });
    return {.height = info_.image_height, .width = info_.image_width};
  }

  void read(Pixels& pixels) {
    std::vector<std::uint8_t> row;
    guarded([&] { jpeg_start_decompress(&info_); });
    const JDIMENSION offset = crop_columns(pixels.box);
    row.resize(static_cast<std::size_t>(info_.output_width) *
               static_cast<std::size_t>(info_.output_components));
    guarded([&] { read_rows(pixels, row.data(), offset); });
  }

 private:
  /// Runs calls of libjpeg; what they refuse is thrown. `work` owns nothing: it may be left by a jump.
  template <typename Work>
  void guarded(const Work& work) {
    if (setjmp(errors_.back) != 0) {
      throw Error(ErrorKind::kCorruptData, std::string("JPEG: ") + errors_.message);
    }
    work();
  }

  /// Returns  where the box begins in the rows that are decoded.
  JDIMENSION crop_columns(const PixelBox& box) {
    const std::int64_t margin = std::int64_t{info_.max_h_samp_factor} * DCTSIZE;
    const std::int64_t begin = std::max<std::int64_t>(box.x - margin, 0);
    const std::int64_t end = std::min<std::int64_t>(box.x + box.width + margin, info_.output_width);
    auto first = static_cast<JDIMENSION>(begin);
    auto width = static_cast<JDIMENSION>(end - begin);
    guarded([&] { jpeg_crop_scanline(&info_, &first, &width); });
    return static_cast<JDIMENSION>(box.x) - first;
  }

  void read_rows(Pixels& pixels, std::uint8_t* row, JDIMENSION offset) {
    const PixelBox& box = pixels.box;
    jpeg_skip_scanlines(&info_, static_cast<JDIMENSION>(box.y));
    const bool is_cmyk = info_.out_color_space == JCS_CMYK;
    for (std::int64_t y = 0; y < box.height; ++y) {
      JSAMPROW rows[] = {row};
      jpeg_read_scanlines(&info_, rows, 1);
      const std::uint8_t* from = row + std::size_t{offset} * info_.output_components;
      std::uint8_t* to = pixels.rgb.data() + y * box.width * kJpegChannels;
      if (is_cmyk) {
        convert_cmyk_row(from, box.width, info_.saw_Adobe_marker != 0, to);
      } else {
        std::memcpy(to, from, static_cast<std::size_t>(box.width * kJpegChannels));
      }
    }
    jpeg_abort_decompress(&info_);
  }

  ErrorManager errors_{};
  jpeg_decompress_struct info_{};
};

}  // namespace

Pixels decode_jpeg(std::span<const std::byte> encoded, const ChooseBox& choose) {
  JpegReader reader;
  Pixels pixels = make_pixels(reader.read_header(encoded), choose);
  reader.read(pixels);
  return pixels;
}

}  // namespace trireme::vision::internal
