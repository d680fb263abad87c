#include "packs/speech/data/spec_augment.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "trireme/base/random.h"
#include "trireme/error.h"

namespace trireme::speech {
namespace {

/// Places [begin, begin + width).
struct Mask {
  std::int64_t begin, width;
};

/// Numbers of one stream, one after the other.
class MaskDraws {
 public:
  explicit MaskDraws(std::uint64_t stream) : stream_(stream) {}

  /// Of `size` places, at most `most`.
  Mask next(std::int64_t size, std::int64_t most) {
    const std::int64_t width = up_to(std::min(size, most));
    return {.begin = up_to(size - width), .width = width};
  }

 private:
  /// From 0 to `last`, each as likely but for a part of last / 2^64.
  std::int64_t up_to(std::int64_t last) {
    const std::uint64_t word = stream_seed(stream_, {count_++});
    return static_cast<std::int64_t>(word % static_cast<std::uint64_t>(last + 1));
  }

  std::uint64_t stream_;
  std::uint64_t count_ = 0;
};

}  // namespace

void check(const SpecAugmentOptions& options) {
  constexpr std::int64_t kMost = 1 << 20;
  for (const auto& [name, value] : {std::pair{"n_time_masks", options.n_time_masks},
                                    {"time_mask_param", options.time_mask_param},
                                    {"n_freq_masks", options.n_freq_masks},
                                    {"freq_mask_param", options.freq_mask_param}}) {
    if (value >= 0 && value <= kMost) continue;
    throw Error(
        ErrorKind::kInvalidArgument,
        "SpecAugment: " + std::string(name) + " is from 0 to 2^20; got " + std::to_string(value));
  }
  if (options.p >= 0 && options.p <= 1) return;
  throw Error(ErrorKind::kInvalidArgument,
              "SpecAugment: p is from 0 to 1; got " + std::to_string(options.p));
}

void mask_frames(const SpecAugmentOptions& options, std::uint64_t stream, FrameShape shape,
                 float* x) {
  const auto [frames, features] = shape;
  MaskDraws draws(stream);
  for (std::int64_t i = 0; i < options.n_freq_masks; ++i) {
    const Mask mask = draws.next(features, options.freq_mask_param);
    for (std::int64_t t = 0; t < frames; ++t) {
      std::fill_n(x + t * features + mask.begin, mask.width, 0.0F);
    }
  }
  auto most = static_cast<std::int64_t>(std::floor(options.p * static_cast<double>(frames)));
  if (options.time_mask_param > 0) most = std::min(most, options.time_mask_param);
  for (std::int64_t i = 0; i < options.n_time_masks; ++i) {
    const Mask mask = draws.next(frames, most);
    std::fill_n(x + mask.begin * features, mask.width * features, 0.0F);
  }
}

}  // namespace trireme::speech
