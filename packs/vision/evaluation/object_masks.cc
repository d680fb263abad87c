#include "packs/vision/evaluation/object_masks.h"

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "packs/vision/coco/paste.h"
#include "trireme/engine/metrics/outputs.h"
#include "trireme/error.h"

namespace trireme::metrics {
namespace {

constexpr const char* kForms =
    "give bool [samples, objects, height, width], floats [samples, objects, side, side] or "
    "integers [samples, objects, runs]";

bool is_soft(const at::Tensor& masks) { return masks.is_floating_point(); }
bool is_of_pixels(const at::Tensor& masks) { return masks.scalar_type() == at::kBool; }

bool has_a_form(const at::Tensor& masks) {
  if (is_of_pixels(masks)) return masks.dim() == 4;
  if (is_soft(masks)) return masks.dim() == 4 && masks.size(2) == masks.size(3);
  return masks.dim() == 3 && at::isIntegralType(masks.scalar_type(), /*includeBool=*/false);
}

at::Tensor dense(const at::Tensor& masks) {
  if (is_of_pixels(masks)) return masks.contiguous();
  return masks.to(is_soft(masks) ? at::kFloat : at::kLong).contiguous();
}

}  // namespace

ObjectMasks::ObjectMasks(const Batch& outputs, const std::string& masks, const std::string& labels)
    : name_(masks) {
  const at::Tensor &given = output_of(outputs, masks), &named = output_of(outputs, labels);
  const bool fits =
      has_a_form(given) && named.dim() == 2 && given.sizes().slice(0, 2) == named.sizes();
  if (!fits) refuse_shapes(outputs, masks, labels, kForms);
  masks_ = dense(given);
  num_of_sample_ = given.size(1);
}

vision::ImageSize ObjectMasks::common_size() const {
  if (!is_of_pixels(masks_)) return {};
  return {masks_.size(2), masks_.size(3)};
}

vision::Rle ObjectMasks::mask_of(std::int64_t i, const vision::Box& box,
                                 vision::ImageSize size) const {
  try {
    if (is_of_pixels(masks_)) return of_pixels(i, size);
    return is_soft(masks_) ? of_soft_mask(i, box, size) : of_runs(i, size);
  } catch (const Error& error) {
    throw Error(ErrorKind::kInvalidArgument,
                fmt::format("output '{}': sample {}, object {}, in an image of {} pixels: {}",
                            name_, i / num_of_sample_, i % num_of_sample_, vision::to_text(size),
                            error.message()));
  }
}

vision::Rle ObjectMasks::of_pixels(std::int64_t i, vision::ImageSize size) const {
  const std::int64_t height = masks_.size(2), width = masks_.size(3);
  if (size.height > height || size.width > width) {
    throw Error(ErrorKind::kInvalidArgument,
                fmt::format("masks have {} x {} pixels, fewer than that", height, width));
  }
  const bool* pixels = masks_.const_data_ptr<bool>() + i * height * width;
  std::vector<std::uint8_t> own;
  own.reserve(static_cast<std::size_t>(size.height * size.width));
  for (std::int64_t y = 0; y < height; ++y) {
    const std::span row(pixels + y * width, static_cast<std::size_t>(width));
    const auto inside =
        y < size.height ? row.first(static_cast<std::size_t>(size.width)) : row.first(0);
    own.insert(own.end(), inside.begin(), inside.end());
    if (std::ranges::find(row.subspan(inside.size()), true) != row.end()) {
      throw Error(ErrorKind::kInvalidArgument,
                  fmt::format("the mask has pixels beyond it, in row {}", y));
    }
  }
  return vision::from_pixels(size, own);
}

vision::Rle ObjectMasks::of_soft_mask(std::int64_t i, const vision::Box& box,
                                      vision::ImageSize size) const {
  const std::int64_t side = masks_.size(3);
  const float* values = masks_.const_data_ptr<float>() + i * side * side;
  return vision::paste(size, {.values = {values, static_cast<std::size_t>(side * side)},
                              .side = side,
                              .left = static_cast<float>(box.x),
                              .top = static_cast<float>(box.y),
                              .right = static_cast<float>(box.x + box.width),
                              .bottom = static_cast<float>(box.y + box.height)});
}

vision::Rle ObjectMasks::of_runs(std::int64_t i, vision::ImageSize size) const {
  const std::int64_t most = masks_.size(2);
  const std::span counts(masks_.const_data_ptr<std::int64_t>() + i * most,
                         static_cast<std::size_t>(most));
  const auto end = std::ranges::find(counts, -1);
  return vision::from_counts(size, {counts.begin(), end});
}

}  // namespace trireme::metrics
