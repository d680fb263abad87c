#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <string>
#include <vector>

#include "packs/vision/data/decode.h"
#include "trireme/error.h"

namespace trireme::vision::internal {
namespace {

constexpr std::int64_t kPngChannels = 3;

/// One image. Confined to its thread.
class PngReader {
 public:
  explicit PngReader(std::span<const std::byte> encoded) : rest_(encoded) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, jump_back, [](auto, auto) {});
    info_ = png_ ? png_create_info_struct(png_) : nullptr;
    if (info_) return;
    png_destroy_read_struct(&png_, nullptr, nullptr);
    throw Error(ErrorKind::kResourceExhausted, "PNG: no memory for a reader");
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  /// Up to the pixels, which are to be three bytes each.
  ImageSize read_header() {
    guarded([&] {
      png_set_read_fn(png_, this, take_bytes);
      png_read_info(png_, info_);
      png_set_expand(png_);
      png_set_scale_16(png_);
      png_set_strip_alpha(png_);
      png_set_gray_to_rgb(png_);
      png_set_interlace_handling(png_);
      png_read_update_info(png_, info_);
    });
    return size();
  }

  void read(Pixels& pixels) {
    const auto [height, width] = size();
    std::vector<std::uint8_t> whole(static_cast<std::size_t>(width * height * kPngChannels));
    std::vector<png_bytep> rows;
    for (std::int64_t y = 0; y < height; ++y) {
      rows.push_back(whole.data() + y * width * kPngChannels);
    }
    guarded([&] {
      png_read_image(png_, rows.data());
      png_read_end(png_, nullptr);
    });
    const PixelBox& box = pixels.box;
    for (std::int64_t y = 0; y < box.height; ++y) {
      std::memcpy(pixels.rgb.data() + y * box.width * kPngChannels,
                  rows[static_cast<std::size_t>(box.y + y)] + box.x * kPngChannels,
                  static_cast<std::size_t>(box.width * kPngChannels));
    }
  }

 private:
  /// libpng does not go on, and no exception may pass it.
  [[noreturn]] static void jump_back(png_structp png, png_const_charp message) {
    auto* self = static_cast<PngReader*>(png_get_error_ptr(png));
    std::snprintf(self->message_, sizeof self->message_, "%s", message);
    std::longjmp(self->back_, 1);
  }

  static void take_bytes(png_structp png, png_bytep to, std::size_t count) {
    auto* self = static_cast<PngReader*>(png_get_io_ptr(png));
    if (count > self->rest_.size()) png_error(png, "the file is cut off");
    std::memcpy(to, self->rest_.data(), count);
    self->rest_ = self->rest_.subspan(count);
  }

  /// Runs calls of libpng; what they refuse is thrown. `work` owns nothing: it may be left by a jump.
  template <typename Work>
  void guarded(const Work& work) {
    if (setjmp(back_) != 0) {
      throw Error(ErrorKind::kCorruptData, std::string("PNG: ") + message_);
    }
    work();
  }

  ImageSize size() const {
    return {.height = png_get_image_height(png_, info_), .width = png_get_image_width(png_, info_)};
  }

  std::span<const std::byte> rest_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::jmp_buf back_{};
  char message_[256] = {};
};

}  // namespace

Pixels decode_png(std::span<const std::byte> encoded, const ChooseBox& choose) {
  PngReader reader(encoded);
  Pixels pixels = make_pixels(reader.read_header(), choose);
  reader.read(pixels);
  return pixels;
}

}  // namespace trireme::vision::internal
