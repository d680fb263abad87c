#pragma once

#include <array>
#include <cstdint>

namespace trireme::vision {

/// How far colours may move at random. Each is 0 for: not at all.
struct ColorJitterOptions {
  double brightness = 0.125;  ///< A factor within 1 -+ so much, as the next two.
  double contrast = 0.5;      ///< Distance from the image's mean grey.
  double saturation = 0.5;    ///< Distance from the pixel's own grey.
  double hue = 0.05;  ///< A turn about the grey axis within so much of a full one, both ways.
};

/// kInvalidArgument, naming the option, where one is out of range.
void check(const ColorJitterOptions& options);

/// Colours as one map: out = matrix * (red, green, blue) + offset, in grey levels 0 to 255.
struct ColorMap {
  std::array<std::array<double, 3>, 3> matrix = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
  std::array<double, 3> offset = {};

  std::array<double, 3> operator()(const std::array<double, 3>& color) const;
};

/// Brightness, contrast, saturation and hue, one after the other; nothing is cut off in between.
///
/// mean     colour of the image, in levels.
/// stream   of all draws; the same one gives the same map.
ColorMap random_colors(const ColorJitterOptions& options, const std::array<double, 3>& mean,
                       std::uint64_t stream);

}  // namespace trireme::vision
