#include <algorithm>
#include <string>
#include <vector>

#include "packs/volume/data/nifti.h"
#include "packs/volume/kernels/components.h"
#include "packs/volume/kernels/crop.h"
#include "packs/volume/kernels/sliding_window.h"
#include "packs/volume/metrics/dice.h"
#include "tests/judges/judge.h"

namespace trireme::judges {
namespace {

using volume::Connectivity;
using volume::VolumeShape;
using volume::Voxel;

/// Of a tensor's last three dimensions.
VolumeShape shape_of(const Tensors& inputs, const std::string& name) {
  const auto& sides = inputs.at(name).shape;
  const std::size_t n = sides.size();
  return {sides[n - 3], sides[n - 2], sides[n - 1]};
}

/// [3] i64
VolumeShape shape_in(const Tensors& inputs, const std::string& name) {
  const auto sides = inputs.get<std::int64_t>(name);
  return {sides[0], sides[1], sides[2]};
}

void add_voxels(Tensors& outputs, const std::string& name, const std::vector<Voxel>& voxels) {
  auto out = outputs.add<std::int64_t>(name, {std::ssize(voxels), 3}).begin();
  for (const Voxel& voxel : voxels) out = std::ranges::copy(voxel, out).out;
}

template <typename Label>
Tensors components_of(const Tensors& inputs) {
  const VolumeShape shape = shape_of(inputs, "labels");
  Tensors outputs;
  const auto map = outputs.add<std::int32_t>("map", {shape.depth, shape.height, shape.width});
  const auto found = volume::connected_components(
      shape, inputs.get<Label>("labels").data(),
      static_cast<Connectivity>(inputs.number("connectivity")), map.data());
  auto out = outputs.add<std::int64_t>("components", {std::ssize(found), 8}).begin();
  for (const auto& [label, size, box] : found) {
    *out++ = label;
    *out++ = size;
    out = std::ranges::copy(box.begin, out).out;
    out = std::ranges::copy(box.end, out).out;
  }
  return outputs;
}

/// labels [z, y, x] u8 or i32, option connectivity -> map, components [n][8]
Tensors components(const Tensors& inputs) {
  return inputs.at("labels").dtype == Dtype::kU8 ? components_of<std::uint8_t>(inputs)
                                                 : components_of<std::int32_t>(inputs);
}

template <typename Label>
Tensors dice_of(const Tensors& inputs) {
  using View = volume::VolumeView<Label>;
  const auto counts =
      volume::dice_counts(static_cast<std::int64_t>(inputs.number("classes")),
                          View{shape_of(inputs, "predicted"), inputs.get<Label>("predicted")},
                          View{shape_of(inputs, "expected"), inputs.get<Label>("expected")});
  Tensors outputs;
  auto out = outputs.add<double>("counts", {std::ssize(counts), 5}).begin();
  for (const auto& each : counts) {
    for (const double number : {static_cast<double>(each.both), static_cast<double>(each.predicted),
                                static_cast<double>(each.expected), each.dice(), each.iou()}) {
      *out++ = number;
    }
  }
  outputs.add<double>("mean", {1})[0] = volume::mean_dice(std::span(counts).subspan(1));
  return outputs;
}

/// predicted, expected [z, y, x] u8 or i32, option classes -> counts [classes][5], mean of the
/// foreground
Tensors dice(const Tensors& inputs) {
  return inputs.at("predicted").dtype == Dtype::kU8 ? dice_of<std::uint8_t>(inputs)
                                                    : dice_of<std::int32_t>(inputs);
}

/// probabilities [classes, z, y, x], expected [z, y, x] -> dice [classes][2]
Tensors soft_dice(const Tensors& inputs) {
  const auto sums = volume::soft_dice_sums(
      inputs.at("probabilities").shape[0],
      {shape_of(inputs, "probabilities"), inputs.get<float>("probabilities")},
      {shape_of(inputs, "expected"), inputs.get<std::uint8_t>("expected")}, kernels::on_threads(2));
  Tensors outputs;
  auto out = outputs.add<double>("dice", {std::ssize(sums), 2}).begin();
  for (const auto& each : sums) {
    *out++ = each.dice(1e-6);
    *out++ = each.dice_of_squares(1e-6);
  }
  return outputs;
}

/// volume [3], patch [3], option overlap -> positions [n][3]
Tensors window_positions(const Tensors& inputs) {
  Tensors outputs;
  add_voxels(outputs, "positions",
             volume::window_positions(
                 {.patch = shape_in(inputs, "patch"), .overlap = inputs.number("overlap")},
                 shape_in(inputs, "volume")));
  return outputs;
}

/// logits [n][classes, patch], positions [n][3], volume [3] -> means [classes, volume], labels
Tensors sliding_window(const Tensors& inputs) {
  const VolumeShape volume = shape_in(inputs, "volume");
  const auto logits = inputs.get<float>("logits");
  const auto positions = inputs.get<std::int64_t>("positions");
  const std::int64_t num_classes = inputs.at("logits").shape[1];
  const volume::WindowWeights weights({.patch = shape_of(inputs, "logits")});
  const std::int64_t window = num_classes * weights.patch().count();
  std::vector<float> norm(volume.count());
  Tensors outputs;
  const auto means =
      outputs.add<float>("means", {num_classes, volume.depth, volume.height, volume.width});
  for (std::size_t w = 0; w < positions.size() / 3; ++w) {
    weights.accumulate(volume, {positions[3 * w], positions[3 * w + 1], positions[3 * w + 2]},
                       num_classes, logits.data() + w * window, means.data(), norm.data());
  }
  const auto labels =
      outputs.add<std::uint8_t>("labels", {volume.depth, volume.height, volume.width});
  volume::argmax_classes(volume, num_classes, means.data(), labels.data());
  volume::average_windows(volume, num_classes, norm.data(), means.data());
  return outputs;
}

/// labels [z, y, x] u8, patch [3], options seed, draws -> begins [draws][3], labels [draws]
Tensors crops(const Tensors& inputs) {
  const volume::CropOptions options{.patch = shape_in(inputs, "patch")};
  const auto foreground = volume::find_foreground(options, shape_of(inputs, "labels"),
                                                  inputs.get<std::uint8_t>("labels").data());
  const auto seed = static_cast<std::uint64_t>(inputs.number("seed"));
  const auto num_draws = static_cast<std::int64_t>(inputs.number("draws"));
  std::vector<Voxel> begins;
  Tensors outputs;
  for (std::int32_t& label : outputs.add<std::int32_t>("labels", {num_draws})) {
    const volume::Crop crop = choose_crop(options, foreground, seed, begins.size());
    begins.push_back(crop.begin);
    label = crop.label;
  }
  add_voxels(outputs, "begins", begins);
  return outputs;
}

template <typename T>
void add_volume_of(Tensors& outputs, const std::string& name,
                   const volume::NiftiVolume<T>& volume) {
  const auto& [shape, num_volumes, spacing, affine, orientation, datatype, slope, intercept] =
      volume.header;
  std::ranges::copy(
      volume.values,
      outputs.add<T>(name, {num_volumes, shape.depth, shape.height, shape.width}).begin());
  std::ranges::copy(spacing, outputs.add<double>("spacing", {3}).begin());
  auto out = outputs.add<double>("affine", {3, 4}).begin();
  for (const auto& row : affine) out = std::ranges::copy(row, out).out;
  std::ranges::copy(orientation, outputs.add<std::uint8_t>("orientation", {3}).begin());
}

/// Options file, labels (1 or 0) -> values [n, z, y, x], spacing [3], affine [3][4], orientation
Tensors nifti(const Tensors& inputs) {
  const std::string& file = inputs.options.at("file");
  Tensors outputs;
  add_volume_of(outputs, "values", volume::read_nifti(file));
  if (inputs.number("labels") == 1) {
    add_volume_of(outputs, "labels", volume::read_nifti_labels(file));
  }
  return outputs;
}

}  // namespace

void add_volume(Operations& operations) {
  operations["components"] = components;
  operations["crops"] = crops;
  operations["dice"] = dice;
  operations["nifti"] = nifti;
  operations["sliding_window"] = sliding_window;
  operations["soft_dice"] = soft_dice;
  operations["window_positions"] = window_positions;
}

}  // namespace trireme::judges
