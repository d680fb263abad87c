#include "packs/volume/kernels/crop.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "trireme/base/random.h"
#include "trireme/error.h"

namespace trireme::volume {
namespace {

constexpr std::uint64_t kCropStream = 0x63726F70;  // "crop": draws of others with the same seed

void check(const CropOptions& options) {
  check_shape("crop: the patch", options.patch);
  if (!(options.foreground_share >= 0 && options.foreground_share <= 1)) {
    throw Error(ErrorKind::kInvalidArgument, "crop: foreground_share is " +
                                                 std::to_string(options.foreground_share) +
                                                 ", expected within [0, 1]");
  }
  if (options.num_objects < 1) {
    throw Error(
        ErrorKind::kInvalidArgument,
        "crop: num_objects is " + std::to_string(options.num_objects) + ", expected 1 or more");
  }
}

std::int64_t volume_of(const VolumeBox& box) {
  std::int64_t volume = 1;
  for (int axis = 0; axis < 3; ++axis) volume *= box.end[axis] - box.begin[axis];
  return volume;
}

template <typename Label>
Foreground foreground_of(const CropOptions& options, const VolumeShape& shape,
                         const Label* labels) {
  check(options);
  check_shape("crop: the case", shape);
  std::map<std::int32_t, std::vector<Component>> by_label;
  for (Component& found : connected_components(shape, labels, options.connectivity)) {
    by_label[found.label].push_back(found);
  }
  Foreground foreground{shape, {}};
  for (auto& [label, objects] : by_label) {
    std::ranges::stable_sort(objects, std::ranges::greater(),
                             [](const Component& object) { return volume_of(object.box); });
    objects.resize(std::min<std::size_t>(objects.size(), options.num_objects));
    objects.shrink_to_fit();
    foreground.classes.push_back({label, std::move(objects)});
  }
  return foreground;
}

/// Philox's words for a sample, one after the other.
class Draws {
 public:
  Draws(std::uint64_t seed, std::uint64_t sample_index)
      : key_(stream_seed(seed, {kCropStream})), sample_index_(sample_index) {}

  std::uint32_t word() {
    if (used_ % 4 == 0) {
      words_ =
          philox({low(sample_index_), high(sample_index_), used_ / 4, 0}, {low(key_), high(key_)});
    }
    return words_[used_++ % 4];
  }

  /// Of [0, n).
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(word() * static_cast<unsigned __int128>(n) >> 32);
  }

 private:
  static std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
  static std::uint32_t high(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }

  std::uint64_t key_;
  std::uint64_t sample_index_;
  std::uint32_t used_ = 0;
  std::array<std::uint32_t, 4> words_ = {};
};

}  // namespace

Foreground find_foreground(const CropOptions& options, const VolumeShape& shape,
                           const std::uint8_t* labels) {
  return foreground_of(options, shape, labels);
}

Foreground find_foreground(const CropOptions& options, const VolumeShape& shape,
                           const std::int32_t* labels) {
  return foreground_of(options, shape, labels);
}

Crop choose_crop(const CropOptions& options, const Foreground& foreground, std::uint64_t seed,
                 std::uint64_t sample_index) {
  check(options);
  check_shape("crop: the case", foreground.shape);
  const Voxel patch = options.patch.sides(), volume = foreground.shape.sides();
  Crop crop;
  VolumeBox target{{}, volume};
  Draws draws(seed, sample_index);
  const bool is_at_object = draws.word() < options.foreground_share * 0x1p32;
  if (is_at_object && !foreground.classes.empty()) {
    const auto& [label, objects] = foreground.classes[draws.below(std::ssize(foreground.classes))];
    crop.label = label;
    target = objects[draws.below(std::ssize(objects))].box;
  }
  for (int axis = 0; axis < 3; ++axis) {
    const std::int64_t last = volume[axis] - patch[axis];
    if (last < 0) {
      throw Error(ErrorKind::kInvalidArgument, "crop: the patch " + to_text(options.patch) +
                                                   " does not fit into the case " +
                                                   to_text(foreground.shape) + "; pad the case");
    }
    // Both ends flush; whichever of box and patch is longer, what lies between is allowed.
    const auto [low, high] = std::minmax({target.begin[axis], target.end[axis] - patch[axis]});
    const std::int64_t first = std::max<std::int64_t>(low, 0);
    crop.begin[axis] = first + draws.below(std::min(high, last) - first + 1);
  }
  return crop;
}

ForegroundCache::ForegroundCache(std::int64_t num_cases,
                                 std::function<Foreground(std::int64_t)> find)
    : num_cases_(num_cases), find_(std::move(find)) {
  if (num_cases < 0) {
    throw Error(ErrorKind::kInvalidArgument,
                "foreground cache: " + std::to_string(num_cases) + " cases");
  }
  slots_ = std::make_unique<Slot[]>(num_cases);
}

const Foreground& ForegroundCache::at(std::int64_t case_index) {
  if (case_index < 0 || case_index >= num_cases_) {
    throw Error(ErrorKind::kInvalidArgument, "foreground cache: no case " +
                                                 std::to_string(case_index) + ", there are " +
                                                 std::to_string(num_cases_));
  }
  Slot& slot = slots_[case_index];
  const std::lock_guard lock(slot.mutex);
  if (!slot.foreground) slot.foreground = find_(case_index);
  return *slot.foreground;
}

}  // namespace trireme::volume
