#include "packs/vision/data/decoded_images.h"

#include <span>
#include <string>
#include <utility>

#include "trireme/data/read_parts.h"
#include "trireme/error.h"

namespace trireme::vision {
namespace {

constexpr std::int64_t kPixelBytes = 3;

std::int64_t bytes_of(ImageSize size) { return kPixelBytes * size.height * size.width; }

ImageSize size_of(const Pixels& whole) {
  return {.height = whole.box.height, .width = whole.box.width};
}

PixelBox whole(ImageSize size) { return {.width = size.width, .height = size.height}; }

}  // namespace

DecodedImages::DecodedImages(KeepOptions options)
    : options_(std::move(options)), free_bytes_(options_.max_bytes) {
  if (options_.max_bytes < 0) {
    throw Error(ErrorKind::kInvalidArgument,
                "decoded images are kept in 0 bytes or more, got " + std::to_string(free_bytes_));
  }
  if (options_.max_bytes > 0 && !options_.folder.empty()) file_.emplace(options_.folder);
}

std::shared_ptr<const Pixels> DecodedImages::get(std::int64_t index, const Encoded& image,
                                                 const ChooseBox& choose) {
  const auto naming = [&](const auto& work) {
    try {
      return work();
    } catch (const Error& error) {
      throw Error(error.kind(), image.name() + ": " + error.message());
    }
  };
  if (auto found = naming([&] { return find(index, choose); })) return found;
  const std::vector<std::byte> bytes = image.read();
  return naming([&] { return decode(index, bytes, choose); });
}

std::shared_ptr<const Pixels> DecodedImages::decode(std::int64_t index,
                                                    std::span<const std::byte> bytes,
                                                    const ChooseBox& choose) {
  const data::ReadTimer timer("decode");
  std::int64_t reserved = 0;
  try {
    auto pixels = std::make_shared<const Pixels>(decode_image(bytes, [&](ImageSize size) {
      const PixelBox box = choose(size);
      if (!reserve(bytes_of(size))) return box;
      reserved = bytes_of(size);
      return whole(size);
    }));
    if (reserved > 0) keep(index, pixels);
    return pixels;
  } catch (const Error&) {
    if (reserved == 0) throw;
    reserve(-reserved);
  }
  // Damaged somewhere: the part that is wanted may be sound.
  return std::make_shared<const Pixels>(decode_image(bytes, choose));
}

std::shared_ptr<const Pixels> DecodedImages::find(std::int64_t index,
                                                  const ChooseBox& choose) const {
  Kept kept;
  {
    const std::lock_guard lock(mutex_);
    const auto found = kept_.find(index);
    if (found == kept_.end()) return nullptr;
    kept = found->second;
  }
  const PixelBox box = choose(kept.size);
  if (kept.pixels) return kept.pixels;
  const data::ReadTimer timer("kept");
  // Rows lie one after the other.
  auto rows = std::make_shared<Pixels>();
  rows->box = {.y = box.y, .width = kept.size.width, .height = box.height};
  const std::int64_t row_bytes = kPixelBytes * kept.size.width;
  rows->rgb.resize(static_cast<std::size_t>(box.height * row_bytes));
  file_->read(kept.offset + static_cast<std::uint64_t>(box.y * row_bytes),
              std::as_writable_bytes(std::span(rows->rgb)));
  return rows;
}

/// Takes of what is left, or gives back; whether there was room.
bool DecodedImages::reserve(std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (is_full_ || bytes > free_bytes_) return false;
  free_bytes_ -= bytes;
  return true;
}

/// What is reserved for it is given back where another thread was first.
void DecodedImages::keep(std::int64_t index, const std::shared_ptr<const Pixels>& pixels) {
  const ImageSize size = size_of(*pixels);
  const std::lock_guard lock(mutex_);
  if (is_full_) return;
  if (kept_.contains(index)) {
    free_bytes_ += bytes_of(size);
    return;
  }
  Kept kept{.size = size, .pixels = file_ ? nullptr : pixels};
  if (file_) {
    try {
      kept.offset = file_->append(std::as_bytes(std::span(pixels->rgb)));
    } catch (const Error&) {
      is_full_ = true;
      return;
    }
  }
  kept_.emplace(index, std::move(kept));
}

std::int64_t DecodedImages::num_kept() const {
  const std::lock_guard lock(mutex_);
  return std::ssize(kept_);
}

}  // namespace trireme::vision
