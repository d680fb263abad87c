#include "packs/vision/data/decoded_images.h"

#include <algorithm>
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
    : options_(std::move(options)),
      room_(std::max(std::int64_t{0}, options_.max_bytes),
            options_.folder.empty() ? KeptRoom::Kind::kMemory : KeptRoom::Kind::kFile) {
  if (options_.max_bytes < 0) {
    throw Error(ErrorKind::kInvalidArgument, "decoded images are kept in 0 bytes or more, got " +
                                                 std::to_string(options_.max_bytes));
  }
  if (options_.times < 0) {
    throw Error(ErrorKind::kInvalidArgument,
                "decoded images are dropped after 1 visit or more, or 0 for never, got " +
                    std::to_string(options_.times));
  }
  if (options_.max_bytes > 0 && !options_.folder.empty()) file_.emplace(options_.folder);
}

std::int64_t DecodedImages::epoch_of(data::Sample sample) const {
  return options_.times == 0 ? 0 : sample.visit / options_.times;
}

bool DecodedImages::is_last_visit(data::Sample sample) const {
  return options_.times > 0 && (sample.visit + 1) % options_.times == 0;
}

std::shared_ptr<const Pixels> DecodedImages::get(data::Sample sample, const Encoded& image,
                                                 const ChooseBox& choose) {
  const auto naming = [&](const auto& work) {
    try {
      return work();
    } catch (const Error& error) {
      throw Error(error.kind(), image.name() + ": " + error.message());
    }
  };
  if (auto found = naming([&] { return find(sample, choose); })) return found;
  const std::vector<std::byte> bytes = image.read();
  return naming([&] { return decode(sample, bytes, choose); });
}

std::shared_ptr<const Pixels> DecodedImages::decode(data::Sample sample,
                                                    std::span<const std::byte> bytes,
                                                    const ChooseBox& choose) {
  const data::ReadTimer timer("decode");
  std::shared_ptr<const KeptRoom::Part> part;
  try {
    auto pixels = std::make_shared<const Pixels>(decode_image(bytes, [&](ImageSize size) {
      const PixelBox box = choose(size);
      if (!is_last_visit(sample)) part = room_.take(bytes_of(size));
      return part ? whole(size) : box;
    }));
    if (part) keep(sample, pixels, std::move(part));
    return pixels;
  } catch (const Error&) {
    if (!part) throw;
  }
  // Damaged somewhere: the part that is wanted may be sound.
  return std::make_shared<const Pixels>(decode_image(bytes, choose));
}

std::shared_ptr<const Pixels> DecodedImages::find(data::Sample sample, const ChooseBox& choose) {
  Kept kept;
  {
    const std::lock_guard lock(mutex_);
    drop_older(epoch_of(sample));
    const auto found = kept_.find(sample.index);
    if (found == kept_.end()) return nullptr;
    kept = found->second;
    if (is_last_visit(sample)) kept_.erase(found);
  }
  const PixelBox box = choose(kept.size);
  if (kept.pixels) return kept.pixels;
  const data::ReadTimer timer("kept");
  // Rows lie one after the other.
  auto rows = std::make_shared<Pixels>();
  rows->box = {.y = box.y, .width = kept.size.width, .height = box.height};
  const std::int64_t row_bytes = kPixelBytes * kept.size.width;
  rows->rgb.resize(static_cast<std::size_t>(box.height * row_bytes));
  file_->read(kept.part->offset() + static_cast<std::uint64_t>(box.y * row_bytes),
              std::as_writable_bytes(std::span(rows->rgb)));
  return rows;
}

/// Images whose last visit went to another rank, as in the last block of an epoch.
void DecodedImages::drop_older(std::int64_t epoch) {
  if (epoch <= epoch_) return;
  epoch_ = epoch;
  std::erase_if(kept_, [&](const auto& item) { return item.second.epoch < epoch; });
}

/// The part is free again where another thread was first.
void DecodedImages::keep(data::Sample sample, const std::shared_ptr<const Pixels>& pixels,
                         std::shared_ptr<const KeptRoom::Part> part) {
  const std::lock_guard lock(mutex_);
  if (is_full_ || kept_.contains(sample.index)) return;
  if (file_) {
    try {
      file_->write(part->offset(), std::as_bytes(std::span(pixels->rgb)));
    } catch (const Error&) {
      is_full_ = true;
      return;
    }
  }
  kept_.emplace(sample.index, Kept{.size = size_of(*pixels),
                                   .pixels = file_ ? nullptr : pixels,
                                   .part = std::move(part),
                                   .epoch = epoch_of(sample)});
}

std::int64_t DecodedImages::num_kept() const {
  const std::lock_guard lock(mutex_);
  return std::ssize(kept_);
}

}  // namespace trireme::vision
