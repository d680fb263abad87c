#include "benchmarks/kernels/volume_cases.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>

#include "benchmarks/kernels/random_values.h"
#include "packs/volume/kernels/components.h"
#include "packs/volume/kernels/crop.h"
#include "packs/volume/kernels/sliding_window.h"
#include "packs/volume/metrics/dice.h"

namespace trireme::kernels::bench {
namespace {

/// A computed tomogram as 3D U-Net resamples them.
constexpr volume::VolumeShape kShape{210, 333, 333};

std::vector<std::int64_t> dimensions(const volume::VolumeShape& shape) {
  return {shape.depth, shape.height, shape.width};
}

/// Two kidneys, label 1, each with a tumour, label 2, of wavy surface; and specks of one to eight
/// voxels, as predictions have them. `shift` moves all along x.
void draw_kidneys(std::span<std::uint8_t> labels, std::int64_t shift) {
  struct Ellipsoid {
    double z, y, x, radius_z, radius_yx;
    std::uint8_t label;
  };
  const auto d = static_cast<double>(shift);
  for (const auto& [cz, cy, cx, rz, r, label] :
       {Ellipsoid{100, 170, 90 + d, 55, 32, 1}, Ellipsoid{110, 165, 240 + d, 58, 34, 1},
        Ellipsoid{80, 150, 85 + d, 18, 17, 2}, Ellipsoid{130, 180, 250 + d, 9, 8, 2}}) {
    for (std::int64_t i = 0; i < kShape.count(); ++i) {
      const auto [z, y, x] = kShape.voxel_at(i);
      const double dz = (static_cast<double>(z) - cz) / rz, dy = (static_cast<double>(y) - cy) / r,
                   dx = (static_cast<double>(x) - cx) / r;
      const double distance = dz * dz + dy * dy + dx * dx;
      if (distance > 1.5) continue;
      const double wave = 0.1 * std::sin(9 * dz) * std::sin(7 * dy) * std::sin(8 * dx);
      if (distance + wave < 1) labels[i] = label;
    }
  }
  std::mt19937_64 random(1);
  for (int i = 0; i < 200; ++i) {
    const auto first = static_cast<std::int64_t>(random() % (labels.size() - 8));
    std::fill_n(labels.begin() + first, 1 + random() % 8, static_cast<std::uint8_t>(1 + i % 2));
  }
}

void draw_two_kidneys(std::span<std::uint8_t> labels) { draw_kidneys(labels, 0); }

/// Thousands of balls of both labels, some of which touch, as of cells or nodules.
void draw_balls(std::span<std::uint8_t> labels) {
  std::mt19937_64 random(3);
  const auto below = [&](std::int64_t n) { return static_cast<std::int64_t>(random() % n); };
  for (int i = 0; i < 5000; ++i) {
    const std::int64_t r = 2 + below(8);
    const volume::Voxel c = {below(kShape.depth), below(kShape.height), below(kShape.width)};
    for (std::int64_t z = std::max<std::int64_t>(c[0] - r, 0);
         z < std::min(c[0] + r + 1, kShape.depth); ++z) {
      for (std::int64_t y = std::max<std::int64_t>(c[1] - r, 0);
           y < std::min(c[1] + r + 1, kShape.height); ++y) {
        const std::int64_t left = r * r - (z - c[0]) * (z - c[0]) - (y - c[1]) * (y - c[1]);
        if (left < 0) continue;
        const auto half = static_cast<std::int64_t>(std::sqrt(static_cast<double>(left)));
        const std::int64_t begin = std::max<std::int64_t>(c[2] - half, 0);
        const std::int64_t end = std::min(c[2] + half + 1, kShape.width);
        std::fill_n(labels.begin() + (z * kShape.height + y) * kShape.width + begin, end - begin,
                    static_cast<std::uint8_t>(1 + i % 2));
      }
    }
  }
}

/// Voxels that do not depend on each other, a tenth of them of each label: short runs alone.
void draw_noise(std::span<std::uint8_t> labels) {
  std::mt19937 random(4);
  for (std::uint8_t& label : labels) {
    const std::uint32_t draw = random() % 10;
    label = static_cast<std::uint8_t>(draw < 2 ? 1 + draw : 0);
  }
}

struct ComponentsForm {
  void (*draw)(std::span<std::uint8_t> labels);
  bool has_map = false;
};

class ComponentsCase final : public Case {
 public:
  ComponentsCase(const ComponentsForm& form, const CaseSetting& setting)
      : spread_(on_threads(setting.num_threads)) {
    form.draw(inputs_.add<std::uint8_t>("labels", dimensions(kShape)));
    if (form.has_map) map_.emplace(kShape.count());
  }

  const Tensors& inputs() const override { return inputs_; }

  void run() override {
    components_ = volume::connected_components(kShape, inputs_.get<std::uint8_t>("labels").data(),
                                               volume::Connectivity::kCorners,
                                               map_ ? map_->data() : nullptr, spread_);
  }

  /// By size and box, since libraries number components in their own ways.
  Tensors outputs() const override {
    std::vector<std::array<std::int64_t, 7>> rows;
    for (const auto& [label, size, box] : components_) {
      const auto& [begin, end] = box;
      rows.push_back({size, begin[0], begin[1], begin[2], end[0], end[1], end[2]});
    }
    std::ranges::sort(rows);
    Tensors outputs;
    auto out = outputs.add<std::int64_t>("components", {std::ssize(rows), 7}).begin();
    for (const auto& row : rows) out = std::ranges::copy(row, out).out;
    return outputs;
  }

 private:
  Tensors inputs_;
  const Spread spread_;
  std::optional<std::vector<std::int32_t>> map_;
  std::vector<volume::Component> components_;
};

CaseEntry components_entry(const std::string& variant, const std::string& shape,
                           const ComponentsForm& form) {
  const auto voxels = static_cast<double>(kShape.count());
  return {.name = "components/" + variant,
          .shape = "210 x 333 x 333, " + shape,
          .bytes = form.has_map ? 5 * voxels : voxels,
          .peers = {"cc3d", "scipy"},
          .make = [form](const CaseSetting& setting) {
            return std::make_unique<ComponentsCase>(form, setting);
          }};
}

/// Crops of 128^3, one after the other, from boxes that were found before.
class CropsCase final : public Case {
 public:
  CropsCase() {
    const auto labels = inputs_.add<std::uint8_t>("labels", dimensions(kShape));
    draw_kidneys(labels, 0);
    foreground_ = volume::find_foreground(kOptions, kShape, labels.data());
    std::ranges::copy(kOptions.patch.sides(), inputs_.add<std::int64_t>("patch", {3}).begin());
    inputs_.options["share"] = std::to_string(kOptions.foreground_share);
    inputs_.options["crops"] = std::to_string(kCrops);
  }

  const Tensors& inputs() const override { return inputs_; }

  void run() override {
    num_at_objects_ = 0;
    sums_ = {};
    for (int sample = 0; sample < kCrops; ++sample) {
      const volume::Crop crop = choose_crop(kOptions, foreground_, 1, sample);
      num_at_objects_ += crop.label != 0 ? 1 : 0;
      for (int axis = 0; axis < 3; ++axis) sums_[axis] += crop.begin[axis];
    }
  }

  /// What does not depend on the random numbers.
  Tensors outputs() const override {
    Tensors outputs;
    outputs.add<double>("share", {1})[0] = static_cast<double>(num_at_objects_) / kCrops;
    const auto means = outputs.add<double>("means", {3});
    for (int axis = 0; axis < 3; ++axis) means[axis] = static_cast<double>(sums_[axis]) / kCrops;
    return outputs;
  }

 private:
  static constexpr int kCrops = 10'000;
  static constexpr volume::CropOptions kOptions{.patch = {128, 128, 128}};

  Tensors inputs_;
  volume::Foreground foreground_;
  int num_at_objects_ = 0;
  volume::Voxel sums_ = {};
};

class DiceCase final : public Case {
 public:
  explicit DiceCase(const CaseSetting& setting) : spread_(on_threads(setting.num_threads)) {
    draw_kidneys(inputs_.add<std::uint8_t>("predicted", dimensions(kShape)), 2);
    draw_kidneys(inputs_.add<std::uint8_t>("expected", dimensions(kShape)), 0);
  }

  const Tensors& inputs() const override { return inputs_; }

  void run() override {
    using Labels = volume::VolumeView<std::uint8_t>;
    counts_ = volume::dice_counts(3, Labels{kShape, inputs_.get<std::uint8_t>("predicted")},
                                  Labels{kShape, inputs_.get<std::uint8_t>("expected")}, spread_);
  }

  Tensors outputs() const override {
    Tensors outputs;
    const auto dice = outputs.add<double>("dice", {3});
    for (int c = 0; c < 3; ++c) dice[c] = counts_[c].dice();
    return outputs;
  }

 private:
  Tensors inputs_;
  const Spread spread_;
  std::vector<volume::DiceCounts> counts_;
};

class SoftDiceCase final : public Case {
 public:
  explicit SoftDiceCase(const CaseSetting& setting) : spread_(on_threads(setting.num_threads)) {
    draw_kidneys(inputs_.add<std::uint8_t>("expected", dimensions(kShape)), 0);
    const auto probabilities =
        inputs_.add<float>("probabilities", {3, kShape.depth, kShape.height, kShape.width});
    fill_even(probabilities, 1, 0, 0.5F);
  }

  const Tensors& inputs() const override { return inputs_; }

  void run() override {
    sums_ = volume::soft_dice_sums(3, {kShape, inputs_.get<float>("probabilities")},
                                   {kShape, inputs_.get<std::uint8_t>("expected")}, spread_);
  }

  Tensors outputs() const override {
    Tensors outputs;
    const auto dice = outputs.add<double>("dice", {3});
    for (int c = 0; c < 3; ++c) dice[c] = sums_[c].dice();
    return outputs;
  }

 private:
  Tensors inputs_;
  Spread spread_;
  std::vector<volume::SoftDiceSums> sums_;
};

/// A volume of 3x3x3 windows of 128^3, all with the logits of one. In these a class stands out, the
/// same one in all windows over a voxel, which are multiples of 64 apart: so that no argmax depends
/// on rounding.
class SlidingWindowCase final : public Case {
 public:
  explicit SlidingWindowCase(const CaseSetting& setting)
      : spread_(on_threads(setting.num_threads)),
        windows_(volume::window_positions(options_, kVolume)),
        sum_(kClasses * kVolume.count()),
        norm_(kVolume.count()),
        labels_(kVolume.count()) {
    const std::int64_t side = options_.patch.width;
    const auto logits = inputs_.add<float>("logits", {kClasses, side, side, side});
    fill_normal(logits, 1);
    for (std::int64_t i = 0; i < options_.patch.count(); ++i) {
      const auto [z, y, x] = options_.patch.voxel_at(i);
      logits[(z + y + x) % 64 % kClasses * options_.patch.count() + i] += 16;
    }
    const auto positions = inputs_.add<std::int64_t>("positions", {std::ssize(windows_), 3});
    for (std::size_t w = 0; w < windows_.size(); ++w) {
      std::ranges::copy(windows_[w], positions.begin() + static_cast<std::int64_t>(3 * w));
    }
    std::ranges::copy(dimensions(kVolume), inputs_.add<std::int64_t>("volume", {3}).begin());
  }

  const Tensors& inputs() const override { return inputs_; }

  void run() override {
    std::ranges::fill(sum_, 0.0F);
    std::ranges::fill(norm_, 0.0F);
    const volume::WindowWeights weights(options_);
    for (const volume::Voxel& begin : windows_) {
      weights.accumulate(kVolume, begin, kClasses, inputs_.get<float>("logits").data(), sum_.data(),
                         norm_.data(), spread_);
    }
    volume::average_windows(kVolume, kClasses, norm_.data(), sum_.data(), spread_);
    volume::argmax_classes(kVolume, kClasses, sum_.data(), labels_.data(), spread_);
  }

  Tensors outputs() const override {
    Tensors outputs;
    const std::vector<std::int64_t> sides = dimensions(kVolume);
    std::ranges::copy(labels_, outputs.add<std::uint8_t>("labels", sides).begin());
    std::ranges::copy(
        sum_, outputs.add<float>("means", {kClasses, kVolume.depth, kVolume.height, kVolume.width})
                  .begin());
    return outputs;
  }

 private:
  static constexpr std::int64_t kClasses = 3;
  static constexpr volume::VolumeShape kVolume{256, 256, 256};

  const volume::SlidingWindowOptions options_{.patch = {128, 128, 128}};
  Tensors inputs_;
  Spread spread_;
  std::vector<volume::Voxel> windows_;
  std::vector<float> sum_, norm_;
  std::vector<std::uint8_t> labels_;
};

}  // namespace

std::vector<CaseEntry> volume_cases() {
  const auto voxels = static_cast<double>(kShape.count());
  return {
      components_entry("boxes", "2 labels", {draw_two_kidneys}),
      components_entry("map", "2 labels", {draw_two_kidneys, true}),
      components_entry("balls", "5,000 balls", {draw_balls, true}),
      components_entry("noise", "noise", {draw_noise, true}),
      {.name = "crops/10k",
       .shape = "10,000 of 128^3, boxes cached",
       .tolerance = 0.03,  // means over the crops
       .peers = {"numpy", "numpy_each"},
       .make = [](const CaseSetting&) { return std::make_unique<CropsCase>(); }},
      {.name = "dice/labels",
       .shape = "210 x 333 x 333, 3 classes",
       .bytes = 2 * voxels,
       .tolerance = 1e-12,
       .peers = {"numpy", "torch"},
       .make = [](const CaseSetting& setting) { return std::make_unique<DiceCase>(setting); }},
      {.name = "soft_dice/f32",
       .shape = "210 x 333 x 333, 3 classes",
       .bytes = 13 * voxels,
       .tolerance = 1e-5,
       .peers = {"numpy", "torch"},
       .make = [](const CaseSetting& setting) { return std::make_unique<SoftDiceCase>(setting); }},
      {.name = "sliding_window/27",
       .shape = "256^3, 3 classes, 27 windows",
       .bytes = 27 * 44 * std::pow(128, 3) + 57 * std::pow(256, 3),
       .tolerance = 1e-5,
       .peers = {"numpy", "torch"},
       .make = [](const CaseSetting& setting) {
         return std::make_unique<SlidingWindowCase>(setting);
       }}};
}

}  // namespace trireme::kernels::bench
